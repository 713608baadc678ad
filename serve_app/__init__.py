"""Ray Serve: the HTTP contract, and the deployments that extract and embed."""
