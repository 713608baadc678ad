"""The documentation's examples and links."""
