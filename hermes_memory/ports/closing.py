"""What an adapter may hold besides what its own port says."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class Closing(Protocol):
    """What holds threads, connections or processes."""

    async def aclose(self) -> None:
        """Let go of them. May be called twice."""
        ...
