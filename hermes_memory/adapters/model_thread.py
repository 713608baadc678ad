"""A model on a worker thread of its own; the event loop never waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

M = TypeVar("M")
T = TypeVar("T")


class ModelThread(Generic[M]):
    """Loads a model on first use and runs everything that is asked of it, one after the other.

    An engine works on all cores for one text and spreads a batch over them, so a second thread would only get in
    its way. A load that fails is tried again with the next call. Work that is cancelled before its turn is dropped.

    Args:
        load: Makes the model; runs on the thread.
        name: Of the thread.
    """

    def __init__(self, load: Callable[[], M], name: str) -> None:
        self._load = load
        self._name = name
        self._model: M | None = None
        self._worker = self._new_worker()

    async def run(self, work: Callable[[M], T]) -> T:
        """What ``work`` makes of the model, on the thread."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, self._run, work)

    def close(self) -> None:
        """Let the thread go; what still waits is given up. Whoever asks afterwards has a new thread started."""
        worker, self._worker = self._worker, self._new_worker()
        worker.shutdown(wait=False, cancel_futures=True)

    def _new_worker(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(max_workers=1, thread_name_prefix=self._name)

    def _run(self, work: Callable[[M], T]) -> T:
        if self._model is None:
            self._model = self._load()
        return work(self._model)
