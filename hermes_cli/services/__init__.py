"""Gets and starts a real redis-server and a real Weaviate: no root, no Docker, loopback only."""
