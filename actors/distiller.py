"""The Distiller port over a Serve deployment: hosts load no model, they ask for one (ARCHITECTURE §4)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from ray import serve
from ray.exceptions import RayError
from ray.serve.exceptions import RayServeException

from hermes_memory.core.candidate import ExtractionRequest
from hermes_memory.errors import ExtractionFailed
from hermes_memory.ports.distiller import Distilled
from hermes_memory.ports.embedder import Vectors

APP, DEPLOYMENT = "hermes", "Distiller"


class ServeDistiller:
    """Calls the Distiller deployment; a lost replica or a late answer is an ExtractionFailed, and tried again."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._handle: Any = None

    async def distil(self, request: ExtractionRequest) -> Distilled:
        """Candidates with their vectors."""
        result: Distilled = await self._call("distil", request)
        return result

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Passage vectors, shape (len(texts), dimension)."""
        result: Vectors = await self._call("embed", list(texts))
        return result

    async def _call(self, method: str, argument: Any) -> Any:
        try:
            if self._handle is None:
                self._handle = await asyncio.to_thread(serve.get_deployment_handle, DEPLOYMENT, APP)
            return await asyncio.wait_for(getattr(self._handle, method).remote(argument), self._timeout_s)
        except (RayError, RayServeException, TimeoutError) as error:
            self._handle = None
            raise ExtractionFailed(type(error).__name__) from None
