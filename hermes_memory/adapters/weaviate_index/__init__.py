"""Long-term search in Weaviate: one collection, one tenant for each user (ARCHITECTURE §3)."""

from hermes_memory.adapters.weaviate_index.index import WeaviateIndex

__all__ = ["WeaviateIndex"]
