"""What becomes of a question on its way to vLLM's engine and back; the engine itself is played. The real one: tests/engine."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sys
from collections.abc import AsyncIterator, Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from hermes_memory.adapters.vllm_model import MUTE, RECOMMENDED, STRUCTURED, VllmModel
from hermes_memory.config import load_settings
from hermes_memory.errors import InvalidConfig, ModelFailed
from hermes_memory.ports.language_model import Finish, Question
from hermes_memory.wiring import build_vllm_model, warm_up_questions

SECRET = "what ana said"
SCHEMA = {"type": "object", "properties": {"z": {}, "a": {}}}
BLOCK, CONTEXT = 4, 64


class ClientError(Exception):
    pass


class DeadError(Exception):
    pass


@dataclasses.dataclass
class Arguments:
    model: str = ""
    structured_outputs_config: Any = None
    max_model_len: int = CONTEXT


@dataclasses.dataclass
class Sampling:
    temperature: float
    max_tokens: int
    structured_outputs: Any
    output_kind: str


class Tokenizer:
    """A token for each character; the text of the system comes first."""

    def __init__(self) -> None:
        self.said: list[Any] = []

    def apply_chat_template(self, said: list[dict[str, str]], **options: Any) -> dict[str, list[int]]:
        self.said.append((said, options))
        return {"input_ids": [ord(char) for message in said for char in message["content"] + "|"]}


class Engine:
    """What vLLM's engine shows of itself. ``answers`` say what it gives in turn; an exception is raised."""

    def __init__(self, arguments: Arguments, stat_loggers: Any) -> None:
        self.arguments, self.stat_loggers = arguments, stat_loggers
        self.vllm_config = SimpleNamespace(
            model_config=SimpleNamespace(max_model_len=arguments.max_model_len),
            cache_config=SimpleNamespace(block_size=BLOCK),
        )
        self.tokenizer = Tokenizer()
        self.asked: list[tuple[list[int], Sampling, str]] = []
        self.answers: list[Any] = []
        self.was_asked = asyncio.Event()
        self.aborted = self.stopped = 0
        self.dead = False

    def get_tokenizer(self) -> Tokenizer:
        return self.tokenizer

    async def generate(self, prompt: Any, sampling: Sampling, request_id: str) -> AsyncIterator[Any]:
        self.asked.append((prompt["prompt_token_ids"], sampling, request_id))
        self.was_asked.set()
        answer = self.answers.pop(0) if self.answers else said("{}")
        if isinstance(answer, Exception):
            raise answer
        if answer is None:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                self.aborted += 1
                raise
        yield answer

    async def check_health(self) -> None:
        if self.dead:
            raise DeadError

    def shutdown(self) -> None:
        self.stopped += 1


def said(text: str, reason: str = "stop", cached: int | None = 8) -> Any:
    answer = SimpleNamespace(text=text, finish_reason=reason, token_ids=[1, 2, 3])
    return SimpleNamespace(outputs=[answer], num_cached_tokens=cached)


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch) -> list[Engine]:
    """The engines that were started."""
    started: list[Engine] = []

    def from_engine_args(arguments: Arguments, stat_loggers: Any) -> Engine:
        if arguments.model == "broken":
            raise RuntimeError(SECRET)
        started.append(Engine(arguments, stat_loggers))
        return started[-1]

    given: dict[str, dict[str, Any]] = {
        "vllm": {}, "vllm.v1": {}, "vllm.v1.engine": {}, "vllm.engine": {}, "vllm.inputs": {},
        "vllm.v1.engine.async_llm": {"AsyncLLM": SimpleNamespace(from_engine_args=from_engine_args)},
        "vllm.v1.engine.exceptions": {"EngineDeadError": DeadError},
        "vllm.exceptions": {"VLLMClientError": ClientError},
        "vllm.engine.arg_utils": {"AsyncEngineArgs": Arguments},
        "vllm.inputs.engine": {"tokens_input": lambda tokens: {"prompt_token_ids": tokens}},
        "vllm.sampling_params": {
            "RequestOutputKind": SimpleNamespace(FINAL_ONLY="final"), "SamplingParams": Sampling,
            "StructuredOutputsParams": lambda json: json,
        },
    }  # fmt: skip
    for name, members in given.items():
        module = ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
    return started


def question(user: str = "hi", max_tokens: int = 10, system: str = "read this") -> Question:
    return Question(system=system, user=user, form="f", schema=SCHEMA, max_tokens=max_tokens)


async def started(vllm: list[Engine], timeout_s: float = 5.0) -> tuple[VllmModel, Engine]:
    model = VllmModel("/models/small", timeout_s=timeout_s, arguments={})
    await model.start()
    return model, vllm[-1]


async def test_the_engine_is_told_the_question_its_schema_and_how_long_the_answer_may_be(
    vllm: list[Engine],
) -> None:
    model, engine = await started(vllm)
    engine.answers = [said('{"z": 1}')]
    completion = await model.answer(question())
    (tokens, sampling, first_id), (messages, options) = engine.asked[0], engine.tokenizer.said[0]
    assert [message["role"] for message in messages] == ["system", "user"]
    assert options["add_generation_prompt"] and not options["enable_thinking"]
    assert (sampling.temperature, sampling.max_tokens, sampling.output_kind) == (0.0, 10, "final")
    assert sampling.structured_outputs == json.dumps(SCHEMA)  # in its own order, which the answer keeps to
    assert (completion.text, completion.finish) == ('{"z": 1}', Finish.STOP)
    usage = completion.usage
    assert (usage.calls, usage.tokens_in, usage.tokens_cached, usage.tokens_out) == (1, len(tokens), 8, 3)
    await model.answer(question())
    assert engine.asked[1][2] != first_id
    assert engine.arguments.structured_outputs_config == STRUCTURED
    assert model.name == "small"


@pytest.mark.parametrize(
    ("reason", "finish"),
    [("stop", Finish.STOP), ("length", Finish.LENGTH), ("abort", Finish.OTHER), (None, Finish.OTHER)],
)
async def test_how_an_answer_ended_is_told(vllm: list[Engine], reason: Any, finish: Finish) -> None:
    model, engine = await started(vllm)
    engine.answers = [said("{", reason, cached=None)]
    completion = await model.answer(question())
    assert (completion.finish, completion.usage.tokens_cached) == (finish, 0)


async def test_an_answer_gets_what_the_question_leaves_of_the_context(vllm: list[Engine]) -> None:
    model, engine = await started(vllm)
    await model.answer(question("x" * (CONTEXT - len("read this||") - 3), max_tokens=10))
    assert engine.asked[0][1].max_tokens == 3


async def test_a_question_that_is_too_long_is_not_asked_and_not_repeated(vllm: list[Engine]) -> None:
    model, engine = await started(vllm)
    with pytest.raises(ModelFailed, match=f"holds {CONTEXT} tokens") as raised:
        await model.answer(question(SECRET * 9))
    assert SECRET not in str(raised.value)
    assert engine.asked == []


async def test_half_a_character_is_a_question_mark(vllm: list[Engine]) -> None:
    model, engine = await started(vllm)
    await model.answer(question("a\ud800b"))
    assert engine.tokenizer.said[0][0][1]["content"] == "a?b"


@pytest.mark.parametrize(
    ("trouble", "kind"),
    [
        (ClientError(SECRET), InvalidConfig), (ValueError(SECRET), InvalidConfig), (DeadError(SECRET), ModelFailed),
        (RuntimeError(SECRET), ModelFailed), (SimpleNamespace(outputs=[]), ModelFailed),
    ],
)  # fmt: skip
async def test_what_the_engine_raises_is_told_without_its_words(
    vllm: list[Engine], trouble: Any, kind: type[Exception]
) -> None:
    model, engine = await started(vllm)
    engine.answers = [trouble]
    with pytest.raises(kind) as raised:
        await model.answer(question())
    assert SECRET not in str(raised.value)


async def test_a_late_answer_is_taken_back_and_several_of_them_are_a_sick_engine(vllm: list[Engine]) -> None:
    model, engine = await started(vllm, timeout_s=0.01)
    engine.answers = [None] * (MUTE - 1)
    for _ in range(MUTE - 1):
        with pytest.raises(ModelFailed, match="no answer within"):
            await model.answer(question())
    assert engine.aborted == MUTE - 1
    await model.check()
    await model.answer(question())  # one in time, and it counts from the beginning
    engine.answers = [None] * MUTE
    for _ in range(MUTE):
        with pytest.raises(ModelFailed):
            await model.answer(question())
    with pytest.raises(ModelFailed, match="did not come in time"):
        await model.check()


async def test_whoever_stops_waiting_takes_the_question_back(vllm: list[Engine]) -> None:
    model, engine = await started(vllm)
    engine.answers = [None]
    asking = asyncio.create_task(model.answer(question()))
    await engine.was_asked.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert engine.aborted == 1


async def test_a_dead_engine_is_not_healthy(vllm: list[Engine]) -> None:
    model, engine = await started(vllm)
    await model.check()
    engine.dead = True
    with pytest.raises(ModelFailed, match="dead"):
        await model.check()


async def test_warming_up_reads_each_static_part_and_measures_it(vllm: list[Engine]) -> None:
    model, engine = await started(vllm)
    loaded = await model.warm_up([question("{}", system="one"), question("[]", system="number two")])
    assert loaded.prefix == (len("one|"), len("number two|"))
    assert (loaded.context, loaded.block) == (CONTEXT, BLOCK)
    assert [sampling.max_tokens for _, sampling, _ in engine.asked] == [1, 1]
    assert model.loaded == loaded


async def test_the_watch_sees_what_is_worked_on_together(vllm: list[Engine]) -> None:
    model, engine = await started(vllm)
    make: Callable[..., Any] = engine.stat_loggers[0]
    logger = make("config", 0)
    for running, waiting in [(1, 0), (5, 2), (3, 0)]:
        logger.record(SimpleNamespace(num_running_reqs=running, num_waiting_reqs=waiting), None, engine_idx=0)
    logger.record(None, None)
    logger.log_engine_initialized()
    logger.log()
    logger.record_sleep_state(1, 0)
    assert (model.batch.running, model.batch.waiting, model.batch.widest) == (3, 0, 5)


async def test_it_ends_its_engine_once(vllm: list[Engine]) -> None:
    model, engine = await started(vllm)
    await model.aclose()
    model.close()
    assert engine.stopped == 1


async def test_an_engine_that_does_not_start_says_so(vllm: list[Engine]) -> None:
    with pytest.raises(ModelFailed, match="does not start: RuntimeError"):
        await VllmModel("broken", timeout_s=1.0, arguments={}).start()


async def test_the_model_is_the_one_that_the_evidence_names(vllm: list[Engine]) -> None:
    """Whatever stands in the table of the engine's arguments."""
    model = VllmModel("m", timeout_s=1.0, arguments={"max_model_len": 32, "model": "another"})
    await model.start()
    assert (vllm[-1].arguments.model, model.name) == ("m", "m")


async def test_arguments_are_those_of_the_engine(vllm: list[Engine]) -> None:
    model = VllmModel("m", timeout_s=1.0, arguments={"max_model_len": 32, "structured_outputs_config": "own"})
    await model.start()
    assert vllm[-1].arguments == Arguments("m", "own", 32)
    with pytest.raises(InvalidConfig, match="no_such_thing"):
        await VllmModel("m", timeout_s=1.0, arguments={"no_such_thing": 1}).start()


async def test_without_vllm_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vllm.engine.arg_utils", None)
    with pytest.raises(InvalidConfig, match=r"hermes-memory\[vllm\]"):
        await VllmModel("m", timeout_s=1.0, arguments={}).start()


def test_the_configuration_names_the_model_or_takes_the_recommended_one(vllm: list[Engine]) -> None:
    settings = load_settings(overrides={"extractor": {"kind": "vllm"}})
    assert build_vllm_model(settings).name == RECOMMENDED
    own = load_settings(
        overrides={"extractor": {"kind": "vllm", "model": "/models/own/", "engine": {"max_model_len": 9}}}
    )
    model = build_vllm_model(own)
    asyncio.run(model.start())
    assert (model.name, model.loaded.context) == ("own", 9)
    extraction, opinion = warm_up_questions(settings)
    assert extraction.system != opinion.system
