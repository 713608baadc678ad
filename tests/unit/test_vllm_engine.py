"""vLLM's engine as an adapter's: loaded once and apart from the loop, its failures told in our words. vLLM is not needed."""

from __future__ import annotations

import asyncio
import builtins
import os
import sys
import threading
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

from hermes_memory.adapters import vllm_engine
from hermes_memory.adapters.vllm_engine import VllmEngine
from hermes_memory.errors import HermesError, InvalidConfig, ModelFailed

SECRET = "what ana said"


class Engine:
    """As AsyncLLM: answers in pieces, and once it has died it is ``errored`` for good."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.arguments = arguments
        self.errored = False
        self.closed = 0
        self.troubles: list[Exception] = []
        self.aborted = 0

    async def encode(self, text: str) -> AsyncIterator[str]:
        await asyncio.sleep(0)
        if self.troubles:
            raise self.troubles.pop()
        try:
            yield "begun"
            await asyncio.sleep(60 if text == "slow" else 0)
        except asyncio.CancelledError:
            self.aborted += 1
            raise
        yield text

    def shutdown(self) -> None:
        self.closed += 1


class Loader:
    def __init__(self) -> None:
        self.made: list[Engine] = []
        self.threads: list[str] = []
        self.troubles: list[Exception] = []

    def __call__(self, arguments: Mapping[str, Any]) -> Engine:
        self.threads.append(threading.current_thread().name)
        if self.troubles:
            raise self.troubles.pop()
        self.made.append(Engine(arguments))
        return self.made[-1]


@pytest.fixture
def load() -> Loader:
    return Loader()


@pytest.fixture
def engine(load: Loader) -> VllmEngine:
    return VllmEngine({"model": "m"}, what="the embedder", section="embedder", load=load)


async def asked(engine: VllmEngine, text: str) -> Any:
    return await engine.last(lambda llm: llm.encode(text))


async def test_it_is_loaded_once_for_all_who_wait_and_not_on_the_loop(
    engine: VllmEngine, load: Loader
) -> None:
    assert load.made == []
    assert await asyncio.gather(*(asked(engine, text) for text in "abc")) == ["a", "b", "c"]
    (made,) = load.made
    assert made.arguments == {"model": "m"}
    assert load.threads != [threading.current_thread().name]


async def test_who_gives_up_waiting_for_it_does_not_end_it_for_others(
    engine: VllmEngine, load: Loader
) -> None:
    first = asyncio.create_task(asked(engine, "a"))
    await asyncio.sleep(0)
    first.cancel()
    assert await asked(engine, "b") == "b"
    assert len(load.made) == 1


async def test_a_request_that_nobody_waits_for_is_aborted(engine: VllmEngine, load: Loader) -> None:
    await asked(engine, "a")
    waiting = asyncio.create_task(asked(engine, "slow"))
    await asyncio.sleep(0.01)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert load.made[0].aborted == 1


async def test_a_request_that_fails_is_told_without_its_words(engine: VllmEngine, load: Loader) -> None:
    await asked(engine, "a")
    load.made[0].troubles = [ValueError(SECRET)]
    with pytest.raises(ModelFailed) as caught:
        await asked(engine, "b")
    assert caught.value.args == ("the embedder", "ValueError", 0.0)
    assert await asked(engine, "c") == "c"
    assert len(load.made) == 1


async def test_an_answer_that_never_came(engine: VllmEngine) -> None:
    async def nothing(_: Any) -> AsyncIterator[str]:
        for piece in "":
            yield piece

    with pytest.raises(ModelFailed, match="it ended without an answer"):
        await engine.last(nothing)


async def test_one_that_has_died_is_said_to_and_started_anew(engine: VllmEngine, load: Loader) -> None:
    await asked(engine, "a")
    dead = load.made[0]
    dead.errored, dead.troubles = True, [RuntimeError("x"), RuntimeError("y")]
    answers = await asyncio.gather(asked(engine, "b"), asked(engine, "c"), return_exceptions=True)
    assert [error.args for error in answers if isinstance(error, ModelFailed)] == [
        ("the embedder", "the engine has died", vllm_engine.RESTART_S)
    ] * 2
    assert dead.closed == 1
    assert await asked(engine, "d") == "d"
    assert len(load.made) == 2


@pytest.mark.parametrize("trouble", [InvalidConfig("embedder.engine", "has x"), ModelFailed("it", "no")])
async def test_a_load_that_fails_is_tried_again(
    engine: VllmEngine, load: Loader, trouble: HermesError
) -> None:
    load.troubles = [trouble]
    with pytest.raises(type(trouble)):
        await asked(engine, "a")
    assert await asked(engine, "a") == "a"


async def test_closing_ends_it_and_may_come_twice(engine: VllmEngine, load: Loader) -> None:
    engine.close()
    await asked(engine, "a")
    engine.close()
    engine.close()
    assert load.made[0].closed == 1
    assert await asked(engine, "b") == "b"


async def test_one_that_is_closed_while_it_loads_is_ended_when_it_has(load: Loader) -> None:
    let = threading.Event()

    def slow(arguments: Mapping[str, Any]) -> Engine:
        let.wait(5)
        return load(arguments)

    engine = VllmEngine({}, what="x", section="x", load=slow)
    waiting = asyncio.create_task(asked(engine, "a"))
    await asyncio.sleep(0.01)
    engine.close()
    let.set()
    with pytest.raises(ModelFailed, match="it is stopping"):
        await waiting
    assert load.made[0].closed == 1


# vLLM itself, as far as it can be told without it


@dataclass
class Arguments:
    model: str
    dtype: str = "auto"

    def __post_init__(self) -> None:
        if self.dtype == "nonsense":
            raise ValueError(self.dtype)


def with_vllm(monkeypatch: pytest.MonkeyPatch, start: Any) -> None:
    """A module of that name whose engine starts with ``start``."""
    names = (
        "vllm",
        "vllm.engine",
        "vllm.engine.arg_utils",
        "vllm.v1",
        "vllm.v1.engine",
        "vllm.v1.engine.async_llm",
    )
    for name in names:
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["vllm.engine.arg_utils"].AsyncEngineArgs = Arguments  # type: ignore[attr-defined]
    made = type("AsyncLLM", (), {"from_engine_args": staticmethod(start)})
    sys.modules["vllm.v1.engine.async_llm"].AsyncLLM = made  # type: ignore[attr-defined]
    for name in vllm_engine.ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)


async def test_vllm_starts_quietly_with_processes_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    with_vllm(monkeypatch, lambda given: Engine({"model": given.model}))
    engine = VllmEngine({"model": "m"}, what="the embedder", section="embedder")
    assert await asked(engine, "a") == "a"
    assert vllm_engine.ENVIRONMENT.items() <= os.environ.items()
    for name in vllm_engine.ENVIRONMENT:
        monkeypatch.delenv(name)


def refuses(error: Exception) -> Any:
    def start(_: Any) -> None:
        raise error

    return start


@pytest.mark.parametrize(
    ("arguments", "start", "kind", "says"),
    [
        (
            {"model": "m", "max_modl_len": 5},
            None,
            InvalidConfig,
            r"embedder\.engine: is no argument .*: max_modl_len",
        ),
        ({"model": "m", "dtype": "nonsense"}, None, InvalidConfig, r"embedder\.model: .* ValueError"),
        ({"model": "m"}, refuses(OSError(SECRET)), InvalidConfig, r"embedder\.model: .* OSError"),
        ({"model": "m"}, refuses(ValueError(SECRET)), InvalidConfig, r"embedder\.model: .* ValueError"),
        ({"model": "m"}, refuses(RuntimeError(SECRET)), ModelFailed, r"does not start: RuntimeError"),
    ],
)
async def test_what_vllm_refuses_is_the_configurations_fault(
    arguments: dict[str, Any], start: Any, kind: type[HermesError], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_vllm(monkeypatch, start)
    with pytest.raises(kind, match=says) as caught:
        await asked(VllmEngine(arguments, what="the embedder", section="embedder"), "a")
    assert SECRET not in str(caught.value)


async def test_without_vllm_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] == "vllm":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(
        InvalidConfig, match=r"embedder\.kind: needs vLLM: pip install 'hermes-memory\[vllm\]'"
    ):
        await asked(VllmEngine({"model": "m"}, what="the embedder", section="embedder"), "a")
