"""The LanguageModel port over a Serve deployment, and how that deployment stands."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import ray
from ray import serve
from ray.exceptions import RayError, RayTaskError
from ray.serve.exceptions import BackPressureError, RayServeException

from actors.standing import Standing
from hermes_memory.errors import HermesError, ModelFailed
from hermes_memory.ports.language_model import Completion, Question

APP, DEPLOYMENT = "hermes-model", "Model"
LOOK_S = 2.0  # how long what was seen of the deployment holds
WHAT = "the model"


def standing(num_gpus: float) -> Standing:
    """How it stands now. Asks Serve's controller and Ray, and blocks. Raises RayError and RayServeException."""
    app = serve.status().applications.get(APP)
    if app is None:
        return Standing.ABSENT
    deployment = app.deployments.get(DEPLOYMENT)
    if deployment is not None and deployment.replica_states.get("RUNNING"):  # type: ignore[call-overload]
        return Standing.READY
    if num_gpus and not _offered(num_gpus):
        return Standing.WAITING
    return Standing.FAILED if app.status == "DEPLOY_FAILED" else Standing.STARTING


def _offered(num_gpus: float) -> bool:
    """Whether one node has so many, taken or not."""
    nodes = ray.nodes()  # type: ignore[no-untyped-call]
    return any(node["Alive"] and node["Resources"].get("GPU", 0) >= num_gpus for node in nodes)


def deployed() -> Any:
    """The handle of the deployment. Asks Serve, and blocks. Raises KeyError where there is none."""
    return serve.get_deployment_handle(DEPLOYMENT, APP)


class ServedModel:
    """Asks the model's deployment. One that is not ready is not waited for: a micro-batch has better to do.

    Args:
        name: The model's name, for the evidence.
        num_gpus: What a replica asks for.
        timeout_s: For one answer, the way there included.
        look: How the deployment stands; blocks.
        find: Finds the deployment; blocks.
    """

    def __init__(
        self,
        name: str,
        *,
        num_gpus: float,
        timeout_s: float,
        look: Callable[[float], Standing] = standing,
        find: Callable[[], Any] = deployed,
    ) -> None:
        self._name, self._num_gpus, self._timeout_s = name, num_gpus, timeout_s
        self._look, self._find = look, find
        self._handle: Any = None
        self._ready_until = 0.0
        self._seen = (Standing.ABSENT, float("-inf"))
        self._looking = asyncio.Lock()

    @property
    def name(self) -> str:
        """The model's name."""
        return self._name

    async def answer(self, question: Question) -> Completion:
        """One answer. Raises as the port says."""
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._check()
                answered = await self._asked(question)
        except RayTaskError as error:
            self._forget()
            if isinstance(error.cause, HermesError):
                raise error.cause from None
            raise ModelFailed(WHAT, type(error.cause).__name__) from None
        except BackPressureError:
            raise ModelFailed(WHAT, "too many questions wait for it", LOOK_S) from None
        except TimeoutError:
            self._forget()
            raise ModelFailed(WHAT, f"no answer within {self._timeout_s:g} s") from None
        except (
            RayError,
            RayServeException,
            KeyError,
        ) as error:  # a bare KeyError: it has just been taken away
            self._forget()
            raise ModelFailed(WHAT, type(error).__name__, LOOK_S) from None
        self._ready_until = time.monotonic() + LOOK_S
        return answered

    async def _asked(self, question: Question) -> Completion:
        if self._handle is None:
            self._handle = await asyncio.to_thread(self._find)
        response = self._handle.answer.remote(question)
        try:
            answered: Completion = await response
        except asyncio.CancelledError:
            response.cancel()  # else the engine goes on for nobody
            raise
        return answered

    async def standing(self) -> Standing:
        """How the deployment stands, as of ``LOOK_S`` ago at most. Raises ModelFailed where Serve does not say."""
        async with self._looking:  # one asks for all who come meanwhile: Serve has one controller
            found, seen_at = self._seen
            if time.monotonic() - seen_at > LOOK_S:
                try:
                    found = await asyncio.to_thread(self._look, self._num_gpus)
                except (RayError, RayServeException) as error:
                    why = f"Serve does not say how it stands: {type(error).__name__}"
                    raise ModelFailed(WHAT, why) from None
                self._seen = found, time.monotonic()
            return found

    async def _check(self) -> None:
        """A handle would queue the question until there is a replica, which may be hours."""
        if time.monotonic() < self._ready_until:
            return
        found = await self.standing()
        if found is not Standing.READY:
            raise ModelFailed(WHAT, f"its deployment is {found}", LOOK_S)

    def _forget(self) -> None:
        self._handle, self._ready_until = None, 0.0
        self._seen = (Standing.ABSENT, float("-inf"))
