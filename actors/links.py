"""A call to a user host, and all that can become of it. The one place where Ray's errors are told apart."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

import ray
from ray.actor import ActorHandle
from ray.exceptions import RayError, RayTaskError

from hermes_memory.errors import HermesError


class Unreachable(HermesError):
    """No answer came, so the outcome is unknown. ``silent``: nothing at all was heard, not even of an end."""

    code = "unreachable"
    retryable = True

    def __init__(self, host: str, silent: bool) -> None:
        super().__init__(host, silent)
        self.host, self.silent = host, silent

    def __str__(self) -> str:
        return f"{self.host} {'does not answer' if self.silent else 'is gone, or not there yet'}"


class Link(Protocol):
    """The way to one host."""

    async def call(self, method: str, *arguments: Any, timeout_s: float) -> Any:
        """What the method answers. Raises the domain's errors, or Unreachable."""
        ...


class RayLink:
    """Calls the methods of a Ray actor. Whoever stops waiting takes the call back: nobody needs its answer."""

    def __init__(self, name: str, actor: ActorHandle[Any]) -> None:
        self._name, self._actor = name, actor

    async def call(self, method: str, *arguments: Any, timeout_s: float) -> Any:
        """See ``Link.call``."""
        try:
            return await self._answer(getattr(self._actor, method).remote(*arguments), timeout_s)
        except RayTaskError as error:
            raise _domain(error) from None
        except TimeoutError:
            raise Unreachable(self._name, True) from None
        except RayError:
            raise Unreachable(self._name, False) from None

    async def _answer(self, reference: Any, timeout_s: float) -> Any:
        try:
            return await asyncio.wait_for(_awaited(reference), timeout_s)
        except RayTaskError:
            raise
        except (TimeoutError, asyncio.CancelledError):
            ray.cancel(reference)
            raise


async def _awaited(reference: Any) -> Any:
    return await reference


def _domain(error: RayTaskError) -> Exception:
    """The domain's error inside Ray's, or Ray's own if it is not one of ours."""
    cause = error.cause
    return cause if isinstance(cause, HermesError) else error
