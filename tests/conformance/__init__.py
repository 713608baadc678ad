"""One suite per port; every adapter passes it."""
