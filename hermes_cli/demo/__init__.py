"""``hermes demo``: two short stories told to a real server."""
