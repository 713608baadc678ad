"""The Embedder port over a Serve deployment: for a model that stands on GPU nodes (ARCHITECTURE §5)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from numpy.typing import NDArray
from ray import serve
from ray.exceptions import RayError, RayTaskError
from ray.serve.exceptions import BackPressureError, RayServeException, ReplicaUnavailableError

from hermes_memory.adapters.embedders.batching import BatchingEmbedder
from hermes_memory.adapters.embedders.reading import WHAT
from hermes_memory.errors import HermesError, ModelFailed
from hermes_memory.ports.embedder import EmbedderInfo
from hermes_memory.runtime.breaker import Breaker

APP, DEPLOYMENT = "hermes-embedder", "Embedder"

FAILURES = 3  # calls in a row that got no answer; then nobody waits for one
PAUSE_S = 2.0  # for so long

Find = Callable[[], Any]


class NotDeployed(RayServeException):
    """Serve runs, and has no such deployment."""


def deployed() -> Any:
    """The handle of the deployment. Asks Serve, and blocks. Raises RayServeException where there is none."""
    try:
        return serve.get_deployment_handle(DEPLOYMENT, APP)
    except KeyError:
        raise NotDeployed from None


class ServedEmbedder(BatchingEmbedder):
    """Asks the deployment; repeated queries are not asked again.

    A vector depends on its text alone, so a call whose replica was lost is asked again. What a replica says of its model
    comes through; a deployment that is away, busy or late is a ModelFailed, and after a few of them in a row it is left
    alone for a moment, so that callers need not wait to be told the same.

    Args:
        info: Name and dimension of the model that is served.
        timeout_s: For one call, all tries together.
        attempts: Tries of a call whose replica was lost.
        batch: Most texts in one call.
        max_chars: How much of a text is sent.
        find: Finds the deployment.
        now: The time.
    """

    def __init__(
        self,
        info: EmbedderInfo,
        *,
        timeout_s: float,
        attempts: int,
        batch: int,
        max_chars: int,
        cache_size: int = 1024,
        find: Find = deployed,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        super().__init__(info, batch=batch, max_chars=max_chars, cache_size=cache_size)
        self._timeout_s, self._attempts = timeout_s, attempts
        self._find, self._now = find, now
        self._handle: Any = None
        self._breaker = Breaker(FAILURES, PAUSE_S)

    async def aclose(self) -> None:
        """Nothing is held."""

    async def ready(self) -> dict[str, Any]:
        """What a replica works with. Raises ModelFailed."""
        return dict(await self._asked("ready"))

    async def _embed(self, texts: list[str], query: bool) -> NDArray[Any]:
        rows: NDArray[Any] = await self._asked("queries" if query else "passages", texts)
        return rows

    async def _asked(self, method: str, *arguments: Any) -> Any:
        if not self._breaker.lets(self._now()):
            raise ModelFailed(WHAT, "its deployment is away", PAUSE_S)
        try:
            async with asyncio.timeout(self._timeout_s):
                answer = await self._tried(method, *arguments)
        except asyncio.CancelledError:
            self._breaker.given_up()
            raise
        except BackPressureError:
            self._breaker.given_up()  # it is there
            raise ModelFailed(WHAT, "too many calls wait for it", PAUSE_S) from None
        except TimeoutError:
            self._breaker.failed(self._now())
            raise ModelFailed(WHAT, f"nothing within {self._timeout_s:g} s", PAUSE_S) from None
        except RayTaskError as error:
            self._breaker.succeeded()
            raise _domain(error) from None
        except HermesError:
            self._breaker.succeeded()
            raise
        except (RayError, RayServeException) as error:
            self._breaker.failed(self._now())
            raise ModelFailed(WHAT, type(error).__name__, PAUSE_S) from None
        self._breaker.succeeded()
        return answer

    async def _tried(self, method: str, *arguments: Any) -> Any:
        for tries in range(1, self._attempts + 1):
            try:
                return await self._once(method, *arguments)
            except (RayTaskError, BackPressureError):
                raise
            except (RayError, ReplicaUnavailableError):  # its replica was lost, or could not be reached
                if tries == self._attempts:
                    raise
        raise AssertionError

    async def _once(self, method: str, *arguments: Any) -> Any:
        if self._handle is None:
            self._handle = await asyncio.to_thread(self._find)
        response = getattr(self._handle, method).remote(*arguments)
        try:
            return await response
        except asyncio.CancelledError:
            response.cancel()  # else the replica goes on for nobody
            raise


def _domain(error: RayTaskError) -> HermesError:
    """The domain's error inside Ray's; of another only the name of its kind, for its words may quote a text."""
    cause = error.cause
    return cause if isinstance(cause, HermesError) else ModelFailed(WHAT, type(cause).__name__)
