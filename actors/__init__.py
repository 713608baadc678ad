"""Ray shells around the library's user hosts: the actor, where users are placed, and how callers survive crashes."""
