"""A client of the HTTP API that answers and raises like the in-process ``Memory``; loads neither Ray nor a model."""

from hermes_memory.client.client import HermesClient
from hermes_memory.client.errors import ApiError, ServerUnreachable

__all__ = ["ApiError", "HermesClient", "ServerUnreachable"]
