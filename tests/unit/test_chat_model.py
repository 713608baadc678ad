"""The chat model behind an endpoint, against a server on a real port: what is sent, and what is read of the answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from hermes_memory.adapters.chat_model import ChatModel
from hermes_memory.config import Settings, load_settings
from hermes_memory.core.candidate import Usage
from hermes_memory.errors import HermesError, InvalidConfig, ModelFailed
from hermes_memory.ports.language_model import Completion, Finish, LanguageModel, Question
from hermes_memory.wiring import build_language_model
from tests.openai_server import Fault, OpenAIServer, serving

SCHEMA = {"type": "object", "properties": {"said": {"type": "string"}}, "required": ["said"]}
ASKED = Question(system="Read it.", user='{"turns": []}', form="reading", schema=SCHEMA, max_tokens=700)
SECRET = "我的秘密是海獭"


@pytest.fixture
async def server() -> AsyncIterator[OpenAIServer]:
    async with serving() as made:
        made.judge = lambda _: '{"said": "nothing"}'
        yield made


@pytest.fixture
async def model(server: OpenAIServer) -> AsyncIterator[ChatModel]:
    made = ChatModel(server.endpoint(key="sk-1", what="the reader", section="extractor"), "reader-7b")
    yield made
    await made.aclose()


async def test_what_is_asked(server: OpenAIServer, model: ChatModel) -> None:
    asked: LanguageModel = model
    assert asked.name == "reader-7b"
    assert (await asked.answer(ASKED)).text == '{"said": "nothing"}'
    assert server.paths == {"/v1/chat/completions": 1}
    assert server.asked == [
        {
            "model": "reader-7b",
            "messages": [
                {"role": "system", "content": "Read it."},
                {"role": "user", "content": '{"turns": []}'},
            ],
            "max_tokens": 700,
            "temperature": 0,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "reading", "strict": True, "schema": SCHEMA},
            },
        }
    ]
    assert server.headers[0]["authorization"] == "Bearer sk-1"


@pytest.mark.parametrize("required", [[], None])
async def test_a_schema_of_which_something_may_be_left_out_is_no_strict_one(
    server: OpenAIServer, model: ChatModel, required: list[str] | None
) -> None:
    loose = {"type": "object", "properties": {"said": {"type": "string"}}}
    nested = {"$defs": {"A": loose if required is None else {**loose, "required": required}}, **SCHEMA}
    await model.answer(Question(system="s", user="{}", form="f", schema=nested, max_tokens=64))
    assert server.asked[0]["response_format"]["json_schema"] == {
        "name": "f",
        "strict": False,
        "schema": nested,
    }


async def test_an_endpoint_that_knows_no_schema_is_asked_for_an_object(server: OpenAIServer) -> None:
    model = ChatModel(server.endpoint(), "m", answer_form="object", request={"temperature": 0.5, "seed": 7})
    await model.answer(ASKED)
    await model.aclose()
    assert server.asked[0]["response_format"] == {"type": "json_object"}
    assert (server.asked[0]["temperature"], server.asked[0]["seed"]) == (0.5, 7)


async def test_half_a_character_is_sent_as_a_question_mark_in_its_place(
    server: OpenAIServer, model: ChatModel
) -> None:
    await model.answer(Question(system="s", user='{"turn": "a\ud83dz"}', form="f", schema={}, max_tokens=64))
    assert server.asked[0]["messages"][1]["content"] == '{"turn": "a?z"}'


def saying(content: Any, ended: Any = "stop", usage: Any = None, **message: Any) -> Fault:
    choice = {
        "index": 0,
        "finish_reason": ended,
        "message": {"role": "assistant", "content": content, **message},
    }
    return Fault(change=lambda _: {"choices": [choice], "usage": usage})


ONE = Usage(calls=1)
ANSWERS: list[tuple[Fault, Completion]] = [
    (saying("{}"), Completion(text="{}", finish=Finish.STOP, usage=ONE)),
    (saying('{"sai', "length"), Completion(text='{"sai', finish=Finish.LENGTH, usage=ONE)),
    (saying(None, "length"), Completion(text="", finish=Finish.LENGTH, usage=ONE)),
    (saying(None), Completion(text="", finish=Finish.OTHER, usage=ONE)),
    (saying(""), Completion(text="", finish=Finish.STOP, usage=ONE)),
    (saying("I may not", refusal="I may not"), Completion(text="I may not", finish=Finish.OTHER, usage=ONE)),
    (saying("{}", refusal=None), Completion(text="{}", finish=Finish.STOP, usage=ONE)),
    (saying("{}", "content_filter"), Completion(text="{}", finish=Finish.OTHER, usage=ONE)),
    (saying("{}", None), Completion(text="{}", finish=Finish.OTHER, usage=ONE)),
    (saying("{}", ["stop"]), Completion(text="{}", finish=Finish.OTHER, usage=ONE)),
]


@pytest.mark.parametrize(("fault", "said"), ANSWERS, ids=range(len(ANSWERS)))
async def test_how_an_answer_ended(
    fault: Fault, said: Completion, server: OpenAIServer, model: ChatModel
) -> None:
    server.faults = [fault]
    assert await model.answer(ASKED) == said


USAGES: list[tuple[Any, Usage]] = [
    (
        {"prompt_tokens": 900, "completion_tokens": 40, "prompt_tokens_details": {"cached_tokens": 880}},
        Usage(calls=1, tokens_in=900, tokens_cached=880, tokens_out=40),
    ),
    ({"prompt_tokens": 9, "completion_tokens": 4}, Usage(calls=1, tokens_in=9, tokens_out=4)),
    ({"prompt_tokens": 9, "prompt_tokens_details": None}, Usage(calls=1, tokens_in=9)),
    ({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": None}}, Usage(calls=1, tokens_in=9)),
    (
        {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 99}},
        Usage(calls=1, tokens_in=9, tokens_cached=9),
    ),
    ({"prompt_tokens": "9", "completion_tokens": -4}, ONE),
    ({"prompt_tokens": True, "completion_tokens": 1.5}, ONE),
    ([], ONE),
    (None, ONE),
]


@pytest.mark.parametrize(("said", "usage"), USAGES, ids=range(len(USAGES)))
async def test_what_it_cost(said: Any, usage: Usage, server: OpenAIServer, model: ChatModel) -> None:
    server.faults = [saying("{}", usage=said)]
    assert (await model.answer(ASKED)).usage == usage


@pytest.mark.parametrize(("said", "lines"), [(None, 1), ({"prompt_tokens": 9, "completion_tokens": 0}, 0)])
async def test_an_endpoint_that_reports_no_tokens_is_told_of_once(
    said: Any, lines: int, server: OpenAIServer, model: ChatModel, caplog: pytest.LogCaptureFixture
) -> None:
    """A budget that nothing counts on bounds nothing: whoever set one must be able to see it."""
    server.faults = [saying("{}", usage=said), saying("{}", usage=said)]
    for _ in range(2):
        await model.answer(ASKED)
    told = [record.getMessage() for record in caplog.records if record.name.startswith("hermes_memory")]
    assert (
        told == ["the endpoint of the reader reports no tokens: budgets and costs count none of them"] * lines
    )


NO_ANSWERS: list[tuple[Fault, type[HermesError], str]] = [
    (Fault(change=lambda _: {}), ModelFailed, "holds no message"),
    (Fault(change=lambda _: {"error": SECRET}), ModelFailed, "holds no message"),
    (Fault(change=lambda _: []), ModelFailed, "holds no message"),
    (Fault(change=lambda _: SECRET), ModelFailed, "holds no message"),
    (Fault(change=lambda _: {"choices": []}), ModelFailed, "holds no message"),
    (Fault(change=lambda _: {"choices": [SECRET]}), ModelFailed, "holds no message"),
    (Fault(change=lambda _: {"choices": [{}]}), ModelFailed, "holds no message"),
    (Fault(change=lambda _: {"choices": [{"message": {}}]}), ModelFailed, "holds no message"),
    (Fault(change=lambda _: {"choices": [{"message": SECRET}]}), ModelFailed, "holds no message"),
    (saying([{"type": "text", "text": SECRET}]), ModelFailed, "holds no text"),
    (saying(7), ModelFailed, "holds no text"),
    (Fault(body=SECRET.encode()), ModelFailed, "is not JSON"),
    (Fault(status=429), ModelFailed, "status 429"),
    (Fault(status=401), InvalidConfig, r"extractor\.key_env"),
    (Fault(status=400), InvalidConfig, r"extractor: the endpoint refuses the request"),
]


@pytest.mark.parametrize(("fault", "error", "says"), NO_ANSWERS, ids=range(len(NO_ANSWERS)))
async def test_no_answer(
    fault: Fault, error: type[HermesError], says: str, server: OpenAIServer, model: ChatModel
) -> None:
    server.faults = [fault]
    with pytest.raises(error, match=says) as caught:
        await model.answer(ASKED)
    assert "海獭" not in repr(caught.value) + str(caught.value)
    assert len(server.asked) == 1


# what a configuration gives


def with_extractor(**values: Any) -> Settings:
    return load_settings(overrides={"extractor": values})


async def test_a_configured_model(server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_TEST_KEY", "sk-2")
    chosen = {"kind": "openai", "model": "reader", "base_url": server.url, "key_env": "HERMES_TEST_KEY"}
    server.faults = [Fault(status=503), Fault(status=503)]
    more = {"backoff_s": 0.0, "answer_form": "object", "attempts": 3}
    model = await asyncio.to_thread(lambda: build_language_model(with_extractor(**chosen, **more)))
    assert isinstance(model, ChatModel)
    assert model.name == "reader"
    assert (await model.answer(ASKED)).finish is Finish.STOP
    await model.aclose()
    assert len(server.asked) == 3
    assert server.asked[-1]["response_format"] == {"type": "json_object"}
    assert server.headers[-1]["authorization"] == "Bearer sk-2"


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"kind": "rules"}, r"extractor\.kind: rules asks no endpoint"),
        (
            {"kind": "openai", "base_url": "http://h/v1"},
            r"extractor\.model: must be named for the kind openai",
        ),
        ({"kind": "openai", "model": "m"}, r"extractor\.base_url: must start with http"),
        (
            {"kind": "openai", "model": "m", "base_url": "http://h/v1", "key_env": "HERMES_NO_SUCH_KEY"},
            r"extractor\.key_env: the environment variable HERMES_NO_SUCH_KEY is not set",
        ),
    ],
)
def test_what_does_not_fit_is_refused(values: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidConfig, match=says):
        build_language_model(with_extractor(**values))
