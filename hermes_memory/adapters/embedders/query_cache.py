"""The vectors of the last queries: people ask the same again, and a model takes milliseconds."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence

from hermes_memory.ports.embedder import Vector, Vectors


class QueryCache:
    """Vectors by text, the longest unused go first. ``size``: how many are kept."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._known: OrderedDict[str, Vector] = OrderedDict()
        self._lock = threading.Lock()

    async def look_up(
        self, texts: Sequence[str], embed: Callable[[list[str]], Awaitable[Vectors]]
    ) -> list[Vector]:
        """One vector for each text; ``embed`` is asked for those that are not known, each once."""
        found = {text: vector for text in texts if (vector := self._recall(text)) is not None}
        missing = [text for text in dict.fromkeys(texts) if text not in found]
        if missing:
            for text, vector in zip(missing, await embed(missing), strict=True):
                found[text] = vector
                self._remember(text, vector)
        return [found[text] for text in texts]

    def _recall(self, text: str) -> Vector | None:
        with self._lock:
            vector = self._known.get(text)
            if vector is not None:
                self._known.move_to_end(text)
            return vector

    def _remember(self, text: str, vector: Vector) -> None:
        with self._lock:
            self._known[text] = vector
            while len(self._known) > self._size:
                self._known.popitem(last=False)
