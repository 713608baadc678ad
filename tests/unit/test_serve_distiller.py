"""The way to the Distiller deployment: what becomes of a replica's failure, of silence and of a lost one. No Ray is started."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import pytest
from ray import serve
from ray.exceptions import ActorDiedError, RayTaskError

from actors.distiller import ServeDistiller
from hermes_memory.config import load_settings
from hermes_memory.core.candidate import Extraction, ExtractionRequest
from hermes_memory.errors import ExtractionFailed, HermesError, ModelFailed
from hermes_memory.ports.distiller import Distilled
from hermes_memory.wiring import distil_timeout_s

NOTHING = Distilled(Extraction(extractor="x"), np.zeros((0, 4), np.float32))
SECRET = "what ana said"


class Response:
    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def __await__(self) -> Generator[Any, None, Any]:
        yield from asyncio.sleep(self._handle.takes_s).__await__()
        return self._handle.answer()

    def cancel(self) -> None:
        self._handle.cancelled += 1


class Handle:
    """A deployment whose calls take a while and then do as they are told."""

    def __init__(self, answer: Callable[[], Any], takes_s: float = 0.0) -> None:
        self.answer, self.takes_s = answer, takes_s
        self.asked: list[str] = []
        self.cancelled = 0

    def __getattr__(self, name: str) -> Handle:
        self.asked.append(name)
        return self

    def remote(self, _: Any) -> Response:
        return Response(self)


def distiller(handle: Handle, distil_s: float = 5.0, embed_s: float = 5.0) -> ServeDistiller:
    made = ServeDistiller(distil_s, embed_s)
    made._handle = handle
    return made


def raising(error: BaseException) -> Callable[[], Any]:
    def answer() -> Any:
        raise error

    return answer


def task_error(cause: Exception) -> Exception:
    error: Any = RayTaskError
    raised: Exception = error("distil", f"Traceback … {SECRET}", cause).as_instanceof_cause()
    return raised


async def test_what_a_replica_makes_is_passed_on() -> None:
    handle = Handle(lambda: NOTHING)
    assert await distiller(handle).distil(ExtractionRequest(turns=())) is NOTHING
    assert str(await distiller(handle).embed(["a"])) == str(NOTHING)
    assert handle.asked == ["distil", "embed"]


async def test_an_extractors_failure_keeps_its_pause_and_its_tokens() -> None:
    handle = Handle(raising(task_error(ExtractionFailed("busy", 90.0, 1_200))))
    with pytest.raises(ExtractionFailed) as caught:
        await distiller(handle).distil(ExtractionRequest(turns=()))
    assert type(caught.value) is ExtractionFailed
    assert (caught.value.why, caught.value.after_s, caught.value.tokens) == ("busy", 90.0, 1_200)


async def test_an_embedder_that_asks_to_be_left_alone_is() -> None:
    away = ModelFailed("the embedder", "its deployment is away", 2.0)
    with pytest.raises(ExtractionFailed) as caught:
        await distiller(Handle(raising(task_error(away)))).distil(ExtractionRequest(turns=()))
    assert (caught.value.why, caught.value.after_s) == (away.detail, 2.0)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (
            task_error(ModelFailed("the embedder", "status 500")),
            "the embedder gave no usable answer: status 500",
        ),
        (task_error(ValueError(SECRET)), "ValueError"),
        (ActorDiedError(), "ActorDiedError"),
    ],
)
async def test_every_other_failure_is_one_too_without_its_words(error: Exception, says: str) -> None:
    with pytest.raises(ExtractionFailed) as caught:
        await distiller(Handle(raising(error))).distil(ExtractionRequest(turns=()))
    assert isinstance(caught.value, HermesError)
    assert (caught.value.why, SECRET in repr(caught.value)) == (says, False)


async def test_an_extraction_is_waited_for_longer_than_an_embedding() -> None:
    slow = distiller(Handle(lambda: NOTHING, 0.2), distil_s=5.0, embed_s=0.05)
    assert await slow.distil(ExtractionRequest(turns=())) is NOTHING
    slow._handle = Handle(lambda: NOTHING, 0.2)
    with pytest.raises(ExtractionFailed, match="TimeoutError"):
        await slow.embed(["a"])


async def test_what_nobody_waits_for_any_more_is_taken_back_from_the_replica() -> None:
    """Else it goes on asking a language model, which is paid for, and the batch is tried again beside it."""
    late = Handle(lambda: NOTHING, takes_s=60)
    with pytest.raises(ExtractionFailed, match="TimeoutError"):
        await distiller(late, distil_s=0.01).distil(ExtractionRequest(turns=()))
    stopped = Handle(lambda: NOTHING, takes_s=60)
    asking = asyncio.create_task(distiller(stopped).distil(ExtractionRequest(turns=())))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert (late.cancelled, stopped.cancelled) == (1, 1)


async def test_a_serve_that_does_not_say_where_the_replicas_are_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(serve, "get_deployment_handle", lambda *_: time.sleep(0.5))
    with pytest.raises(ExtractionFailed, match="TimeoutError"):
        await ServeDistiller(0.01, 0.01).embed(["a"])


@pytest.mark.parametrize(
    ("extractor", "seconds"),
    [
        ({"kind": "rules"}, 30.0),
        ({"kind": "vllm", "timeout_s": 40.0}, 3 * 80.0 + 30.0),
        ({"kind": "openai", "timeout_s": 60.0, "attempts": 3}, 3 * (4 * 60.0 + 20.0) + 30.0),
    ],
)
def test_the_time_fits_all_that_is_asked(extractor: dict[str, Any], seconds: float) -> None:
    assert distil_timeout_s(load_settings(None, {"extractor": extractor})) == seconds
