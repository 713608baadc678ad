"""Implementations of the ports; each takes plain arguments, never the configuration object."""
