"""``hermes doctor``: what is installed, what would run where, and whether it would work."""
