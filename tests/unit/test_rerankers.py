"""The reranker behind a chat endpoint, against a server on a real port (SPEC §7: optional, never in the way)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from hermes_memory.adapters.rerankers.chat_model import ChatReranker
from hermes_memory.adapters.rerankers.prompt_file import RerankPrompt, load_prompt
from hermes_memory.errors import HermesError, InvalidConfig, ModelFailed
from tests.openai_server import Fault, OpenAIServer, serving

PROMPT = load_prompt(files("configs").joinpath("prompts", "rerank.toml"))
TEXTS = ["我对花生过敏", "我养猫"]


@pytest.fixture
async def server() -> AsyncIterator[OpenAIServer]:
    async with serving() as made:
        yield made


@pytest.fixture
async def reranker(server: OpenAIServer) -> AsyncIterator[ChatReranker]:
    endpoint = server.endpoint(key="sk-1", what="the reranker", section="reranker", timeout_s=2.0)
    made = ChatReranker(endpoint, "judge-model", PROMPT, max_chars=12)
    yield made
    await made.aclose()
    await made.aclose()


async def test_what_is_asked(server: OpenAIServer, reranker: ChatReranker) -> None:
    server.judge = lambda question: json.dumps({"relevance": [0.9, 0]})
    assert await reranker.score('晚饭 \n"吃" 什么', [*TEXTS]) == [0.9, 0.0]
    assert await reranker.score("q", []) == []
    (body,) = server.asked
    assert server.paths == {"/v1/chat/completions": 1}
    assert (body["model"], body["temperature"]) == ("judge-model", 0.0)
    assert body["response_format"]["type"] == "json_schema"
    assert body["response_format"]["json_schema"]["schema"]["required"] == ["relevance"]
    system, user = body["messages"]
    assert (system["role"], system["content"]) == ("system", PROMPT.system)
    assert (user["role"], json.loads(user["content"])) == (
        "user",
        {"query": '晚饭 "吃" 什么', "texts": TEXTS},
    )


async def test_what_is_long_or_odd_is_clipped(server: OpenAIServer, reranker: ChatReranker) -> None:
    assert await reranker.score("\ud800 q", ["长" * 50]) == [1.0]
    assert json.loads(server.asked[0]["messages"][1]["content"]) == {"query": "? q", "texts": ["长" * 12]}


def saying(content: Any, **choice: Any) -> Fault:
    return Fault(
        change=lambda _: {"choices": [{"message": {"content": content}, "finish_reason": "stop", **choice}]}
    )


GOOD = '{"relevance": [0.5, 0.5]}'
MALFORMED: list[tuple[Fault, type[HermesError], str]] = [
    (saying("Sure! [0.5, 0.5]"), ModelFailed, "not the JSON"),
    (saying("[0.5, 0.5]"), ModelFailed, "not the JSON"),
    (saying('{"scores": [0.5, 0.5]}'), ModelFailed, "not the JSON"),
    (saying(None), ModelFailed, "not the JSON"),
    (saying('{"relevance": [0.5, '), ModelFailed, "not the JSON"),
    (saying(GOOD, finish_reason="length"), ModelFailed, "cut off"),
    (saying('{"relevance": [0.5]}'), ModelFailed, "not one relevance for each of 2 texts"),
    (saying('{"relevance": {"0": 1, "1": 1}}'), ModelFailed, "not one relevance for each of 2 texts"),
    (saying('{"relevance": [0.5, 1.5]}'), ModelFailed, r"not a number in \[0, 1\]"),
    (saying('{"relevance": [0.5, -0.1]}'), ModelFailed, r"not a number in \[0, 1\]"),
    (saying('{"relevance": [0.5, NaN]}'), ModelFailed, r"not a number in \[0, 1\]"),
    (saying('{"relevance": [0.5, true]}'), ModelFailed, r"not a number in \[0, 1\]"),
    (saying('{"relevance": [0.5, "0.5"]}'), ModelFailed, r"not a number in \[0, 1\]"),
    (Fault(change=lambda _: {"choices": []}), ModelFailed, "holds no message"),
    (Fault(change=lambda _: {"choices": ["x"]}), ModelFailed, "holds no message"),
    (Fault(change=lambda _: []), ModelFailed, "holds no message"),
    (Fault(body=b"oops"), ModelFailed, "is not JSON"),
    (Fault(status=429), ModelFailed, "status 429"),
    (Fault(status=500), ModelFailed, "status 500"),
    (Fault(status=401), InvalidConfig, r"reranker\.key_env"),
    (Fault(drop=True), ModelFailed, "RemoteProtocolError"),
]


@pytest.mark.parametrize(("fault", "error", "says"), MALFORMED, ids=range(len(MALFORMED)))
async def test_a_bad_answer_is_a_failure_and_asked_once(
    fault: Fault, error: type[HermesError], says: str, server: OpenAIServer, reranker: ChatReranker
) -> None:
    server.faults = [fault]
    with pytest.raises(error, match=says) as caught:
        await reranker.score("晚饭吃什么", TEXTS)
    assert len(server.asked) == 1
    assert "花生" not in repr(caught.value)


async def test_a_cancelled_question_lets_go(server: OpenAIServer, reranker: ChatReranker) -> None:
    server.faults = [Fault(hang=True)]
    asking = asyncio.create_task(reranker.score("q", TEXTS))
    assert await server.hanging.get() == "asked"
    asking.cancel()
    assert await server.hanging.get() == "given up"
    assert await reranker.score("q", TEXTS) == [1.0, 1.0]


# the prompt


def test_the_prompt_says_what_it_must() -> None:
    for word in ('"query"', '"texts"', '"relevance"', "never follow"):
        assert word in PROMPT.system


@pytest.mark.parametrize(
    "text", ["system = 7", 'system = " "', 'systen = "x"', "not toml [", 'system = "x"\nrequest = 1']
)
def test_a_prompt_that_cannot_be_read_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "rerank.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidConfig, match=r"^rerank\.toml"):
        load_prompt(path)
    path.unlink()
    with pytest.raises(InvalidConfig, match=r"^rerank\.toml"):
        load_prompt(path)


def test_a_prompt_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('system = """\njudge\n"""', encoding="utf-8")
    assert load_prompt(path) == RerankPrompt("judge", {})
