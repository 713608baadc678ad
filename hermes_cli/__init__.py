"""The command ``hermes``."""
