"""Models that look at a query and a memory together: a cross-encoder, or a chat model that is asked."""
