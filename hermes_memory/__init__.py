"""Hermes Memory: what a chat model should know about its user, with evidence, under two gates.

``Memory`` is the in-process handle; the server is the command ``hermes serve``. Importing this package loads
neither Ray nor a model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hermes_memory.memory import Memory

__all__ = ["Memory", "__version__"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "Memory":
        from hermes_memory.memory import Memory

        return Memory
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
