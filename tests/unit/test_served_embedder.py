"""The embedder over a Serve handle: what becomes of answers, errors, silence and cancelled calls. No Ray is started."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from ray.exceptions import ActorDiedError, RayError, RayTaskError
from ray.serve._private.common import DeploymentID
from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError, ReplicaUnavailableError

from actors import embedder as served
from actors.embedder import FAILURES, PAUSE_S, NotDeployed, ServedEmbedder
from hermes_memory.adapters.hash_embedder import HashEmbedder
from hermes_memory.errors import HermesError, InvalidConfig, ModelFailed
from hermes_memory.ports.embedder import EmbedderInfo
from hermes_memory.testing.embedder_suite import EmbedderSuite

SECRET = "what ana said"
GONE = (ActorDiedError(), ReplicaUnavailableError("r1"))


class Response:
    """As Serve's: awaited for the answer, cancelled by whoever has stopped waiting."""

    def __init__(self, handle: Handle, answer: Callable[[], Any]) -> None:
        self._handle, self._answer = handle, answer

    def __await__(self) -> Generator[Any, None, Any]:
        if self._handle.takes_s:
            self._handle.begun.set()
        yield from asyncio.sleep(self._handle.takes_s).__await__()
        return self._answer()

    def cancel(self) -> None:
        self._handle.cancelled += 1


class Method:
    def __init__(self, handle: Handle, name: str) -> None:
        self._handle, self._name = handle, name

    def remote(self, *arguments: Any) -> Response:
        self._handle.asked.append((self._name, *arguments))
        return Response(self._handle, lambda: self._handle.answer(self._name, *arguments))


class Handle:
    """A deployment with the hash embedder; ``troubles`` come first."""

    def __init__(self, *troubles: Exception) -> None:
        self.troubles = list(troubles)
        self.asked: list[tuple[Any, ...]] = []
        self.takes_s, self.cancelled = 0.0, 0
        self.begun = asyncio.Event()  # of a call that takes its time
        self._hash = HashEmbedder()

    def __getattr__(self, name: str) -> Method:
        return Method(self, name)

    def answer(self, name: str, *arguments: Any) -> Any:
        if self.troubles:
            raise self.troubles.pop(0)
        if name == "ready":
            return {"embedder": str(self._hash.info)}
        vectors = self._hash.embed(*arguments)
        vectors.flags.writeable = False  # as Ray hands it over
        return vectors


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def over(handle: Any, **more: Any) -> ServedEmbedder:
    given: dict[str, Any] = {
        "timeout_s": 5.0,
        "attempts": 3,
        "batch": 8,
        "max_chars": 2048,
        "find": lambda: handle,
    }
    return ServedEmbedder(HashEmbedder().info, **(given | more))


def raised(cause: Exception) -> Exception:
    """As Ray hands over what a replica raised."""
    remote: Any = RayTaskError
    error: Exception = remote("queries", f"Traceback … {SECRET}", cause).as_instanceof_cause()
    return error


async def failure(embedder: ServedEmbedder, text: str = SECRET) -> HermesError:
    with pytest.raises(HermesError) as caught:
        await embedder.queries([text])
    assert type(caught.value).__mro__[1] is not RayTaskError
    assert SECRET not in f"{caught.value!r} {caught.value}"
    assert caught.value.__cause__ is None
    return caught.value


class TestServed(EmbedderSuite):
    @pytest.fixture
    async def embedder(self) -> AsyncIterator[ServedEmbedder]:
        yield over(Handle())


async def test_queries_and_passages_are_told_apart_and_queries_remembered() -> None:
    handle = Handle()
    embedder = over(handle, batch=2)
    first = await embedder.queries(["a", "b", "a"])
    assert np.array_equal(await embedder.queries(["b", "a"]), first[[1, 0]])
    await embedder.passages(["a", "b", "c"])
    assert handle.asked == [("queries", ["a", "b"]), ("passages", ["a", "b"]), ("passages", ["c"])]
    await embedder.aclose()


async def test_what_a_replica_works_with() -> None:
    assert await over(Handle()).ready() == {"embedder": "hash (64 dimensions)"}


@pytest.mark.parametrize("gone", GONE)
async def test_a_lost_replica_costs_another_try(gone: Exception) -> None:
    handle = Handle(gone, gone)
    assert (await over(handle).queries(["a"])).shape == (1, 64)
    assert len(handle.asked) == 3


@pytest.mark.parametrize(
    ("trouble", "says"),
    [
        (ActorDiedError(), "ActorDiedError"),
        (RayError(SECRET), "RayError"),
        (DeploymentUnavailableError(DeploymentID(SECRET)), "DeploymentUnavailableError"),
        (BackPressureError(1, 1), "too many calls wait for it"),
        (raised(ValueError(SECRET)), "ValueError"),
    ],
)
async def test_without_an_answer_it_is_a_model_that_failed(trouble: Exception, says: str) -> None:
    error = await failure(over(Handle(*[trouble] * 3)))
    assert isinstance(error, ModelFailed)
    assert error.why == says
    assert error.retryable


async def test_where_there_is_no_deployment_it_says_so_and_is_looked_for_again() -> None:
    found: list[Handle] = []

    def find() -> Handle:
        if not found:
            raise NotDeployed
        return found[0]

    embedder = over(None, find=find)
    error = await failure(embedder)
    assert (type(error), error.args) == (ModelFailed, ("the embedder", "NotDeployed", PAUSE_S))
    found.append(Handle())
    assert (await embedder.queries(["a"])).shape == (1, 64)


def test_serves_own_word_for_that(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: str) -> None:
        raise KeyError("Deployment(name='Embedder') does not exist.")

    monkeypatch.setattr("ray.serve.get_deployment_handle", unknown)
    with pytest.raises(NotDeployed):
        served.deployed()
    monkeypatch.setattr("ray.serve.get_deployment_handle", lambda *names: names)
    assert served.deployed() == ("Embedder", "hermes-embedder")


@pytest.mark.parametrize(
    "said",
    [
        ModelFailed("the embedder", "the engine has died", 5.0),
        InvalidConfig("embedder.dimension", "is 64, and x gives vectors of 384"),
    ],
)
@pytest.mark.parametrize("wrapped", [raised, lambda said: said])  # over gRPC Serve hands it over as it is
async def test_what_the_replica_says_of_its_model_comes_through(
    said: HermesError, wrapped: Callable[[Exception], Exception]
) -> None:
    handle = Handle(*[wrapped(said)] * (FAILURES + 1))
    embedder = over(handle)
    for asked in range(1, FAILURES + 2):  # it is there: nobody is turned away
        error = await failure(embedder)
        assert (type(error), error.args) == (type(said), said.args)
        assert len(handle.asked) == asked


async def test_a_wrong_dimension_is_the_configurations_fault() -> None:
    embedder = ServedEmbedder(
        EmbedderInfo("hash", 384), timeout_s=5, attempts=1, batch=8, max_chars=10, find=Handle
    )
    with pytest.raises(InvalidConfig, match=r"embedder\.dimension: is 384, and hash gives vectors of 64"):
        await embedder.queries(["a"])


async def test_silence_ends_in_time_and_takes_the_call_back() -> None:
    handle = Handle()
    handle.takes_s = 60
    error = await failure(over(handle, timeout_s=0.02))
    assert error.args == ("the embedder", "nothing within 0.02 s", PAUSE_S)
    assert handle.cancelled == 1


async def test_after_a_few_in_a_row_nobody_waits_until_one_tries_again() -> None:
    handle, clock = Handle(*[DeploymentUnavailableError(DeploymentID("x"))] * FAILURES), Clock()
    embedder = over(handle, now=clock)
    for _ in range(FAILURES):
        await failure(embedder)
    error = await failure(embedder)
    assert error.args == ("the embedder", "its deployment is away", PAUSE_S)
    assert len(handle.asked) == FAILURES
    clock.now += timedelta(seconds=PAUSE_S)
    assert (await embedder.queries(["a"])).shape == (1, 64)
    assert (await embedder.queries(["b"])).shape == (1, 64)


async def test_who_gives_up_takes_the_call_back_and_another_may_try() -> None:
    handle, clock = Handle(*[DeploymentUnavailableError(DeploymentID("x"))] * FAILURES), Clock()
    embedder = over(handle, now=clock)
    for _ in range(FAILURES):
        await failure(embedder)
    clock.now += timedelta(seconds=PAUSE_S)
    handle.takes_s = 60
    waiting = asyncio.create_task(embedder.queries(["a"]))
    await handle.begun.wait()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert (waiting.cancelled(), handle.cancelled) == (True, 1)
    handle.takes_s = 0
    assert (await embedder.queries(["a"])).shape == (1, 64)
