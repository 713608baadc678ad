"""The Distiller port over a Serve deployment: hosts load no model, they ask for one (ARCHITECTURE §4)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from ray import serve
from ray.exceptions import RayError, RayTaskError
from ray.serve.exceptions import RayServeException

from hermes_memory.core.candidate import ExtractionRequest
from hermes_memory.errors import ExtractionFailed, HermesError, ModelFailed
from hermes_memory.ports.distiller import Distilled
from hermes_memory.ports.embedder import Vectors

APP, DEPLOYMENT = "hermes", "Distiller"


class ServeDistiller:
    """Calls the Distiller deployment; a lost replica or a late answer is an ExtractionFailed, and tried again.

    Args:
        distil_s: How long an extraction may take, with all that is asked of a language model for it.
        embed_s: How long embedding may take.
    """

    def __init__(self, distil_s: float, embed_s: float) -> None:
        self._distil_s, self._embed_s = distil_s, embed_s
        self._handle: Any = None

    async def distil(self, request: ExtractionRequest) -> Distilled:
        """Candidates with their vectors."""
        result: Distilled = await self._call("distil", request, self._distil_s)
        return result

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Passage vectors, shape (len(texts), dimension)."""
        result: Vectors = await self._call("embed", list(texts), self._embed_s)
        return result

    async def _call(self, method: str, argument: Any, timeout_s: float) -> Any:
        try:
            async with asyncio.timeout(timeout_s):
                return await self._asked(method, argument)
        except RayTaskError as error:  # the replica stands and says why
            raise _as_failure(error.cause) from None
        except (RayError, RayServeException, TimeoutError) as error:
            self._handle = None
            raise ExtractionFailed(type(error).__name__) from None

    async def _asked(self, method: str, argument: Any) -> Any:
        if self._handle is None:
            self._handle = await asyncio.to_thread(serve.get_deployment_handle, DEPLOYMENT, APP)
        response = getattr(self._handle, method).remote(argument)
        try:
            return await response
        except asyncio.CancelledError:
            response.cancel()  # else the replica goes on, and asks a language model, for nobody
            raise


def _as_failure(cause: BaseException) -> ExtractionFailed:
    """What a replica raised, with the pause and the tokens that an extractor's failure tells."""
    if isinstance(cause, ExtractionFailed):
        return ExtractionFailed(*cause.args)
    if isinstance(cause, ModelFailed):
        return ExtractionFailed(cause.detail, cause.after_s)
    return ExtractionFailed(cause.detail if isinstance(cause, HermesError) else type(cause).__name__)
