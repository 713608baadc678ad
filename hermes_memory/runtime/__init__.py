"""User actors as plain objects: a mailbox each, many on one host. Ray's actors wrap the same host."""
