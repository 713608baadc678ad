"""One user's aggregate and its use cases.

A command is decided on the last committed state and gives one commit; the runtime commits it and applies
it. Deciding is pure: the same state, command and desk give the same commit.
"""
