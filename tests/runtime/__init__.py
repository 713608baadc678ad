"""The in-process runtime, the server and the command, without Ray."""
