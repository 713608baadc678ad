"""vLLM's own OpenAI-compatible server in front of the same engine: ChatModel asks it as it would ask anybody's."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from hermes_memory.adapters.chat_model import ChatModel
from hermes_memory.adapters.openai_endpoint import Endpoint
from hermes_memory.adapters.vllm_model import STRUCTURED
from hermes_memory.config import load_settings
from hermes_memory.errors import InvalidConfig
from hermes_memory.ports.language_model import Finish, Question
from hermes_memory.wiring import warm_up_questions
from tests.cluster.harness import free_port
from tests.engine.cluster import LOAD_S
from tests.engine.place import running
from tests.engine.playing import play
from tests.engine.settings import CONTEXT, fast_type, overrides

NAME, KEY = "small", "sk-made-up"
TURNS = 4
EXTRACTION, OPINION = warm_up_questions(load_settings())


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port, log = free_port(), tmp_path_factory.mktemp("server") / "log"
    command = [
        sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--host", "127.0.0.1", "--port", str(port),
        "--model", str(running().model), "--served-model-name", NAME, "--api-key", KEY, "--enforce-eager",
        "--max-model-len", str(CONTEXT), "--dtype", fast_type(),
        "--structured-outputs-config", json.dumps(STRUCTURED), "--enable-prompt-tokens-details",
    ]  # fmt: skip
    with log.open("wb") as said:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True,
            env=dict(os.environ),
        )  # fmt: skip
    try:
        _wait(process, f"http://127.0.0.1:{port}/health", log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        try:
            process.wait(30)
        finally:
            _end(process)


def _wait(process: subprocess.Popen[bytes], health: str, log: Path) -> None:
    deadline = time.monotonic() + LOAD_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(health, timeout=5, trust_env=False).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.5)
    raise AssertionError(
        f"vLLM's server does not answer:\n{log.read_text(encoding='utf-8', errors='replace')[-4000:]}"
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """The engine's processes too, where the server did not end them."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def chat(url: str, *, key: str = KEY, model: str = NAME) -> ChatModel:
    endpoint = Endpoint(url, key=key, what="the extractor's model", section="extractor", timeout_s=120.0)
    return ChatModel(endpoint, model)


async def test_the_answer_keeps_to_the_schema_and_the_static_part_is_read_once(url: str) -> None:
    model = chat(url)
    asked = replace(EXTRACTION, max_tokens=96)
    try:
        first, second = await model.answer(asked), await model.answer(_of(asked, "I live in Oslo."))
        verdicts = await model.answer(replace(OPINION, max_tokens=64))
        cut = await model.answer(replace(asked, max_tokens=2))
    finally:
        await model.aclose()
    for completion in (first, second):
        assert completion.finish in {Finish.STOP, Finish.LENGTH}
        if completion.finish is Finish.STOP:
            json.loads(completion.text)
    assert set(json.loads(verdicts.text)) == {"verdicts"}
    assert second.usage.tokens_in > second.usage.tokens_cached > 0
    assert cut.finish is Finish.LENGTH


def _of(question: Question, text: str) -> Question:
    turns = json.dumps([{"t": "T1", "who": "user", "when": "2026-01-02 10:00", "text": text}])
    return replace(question, user=question.user.replace('"turns":[]', f'"turns":{turns}'))


async def test_turns_are_read_over_it_and_nothing_is_made_up(url: str, tmp_path: Path) -> None:
    model = chat(url)
    try:
        played = await play(model, TURNS, tmp_path, await asyncio.to_thread(load_settings, None, overrides()))
    finally:
        await model.aclose()
    assert (played.turns, set(played.jobs)) == (TURNS, {"done"})
    assert played.answers == played.seen.usage.calls > 0
    assert played.seen.usage.invalid == played.unusable
    assert played.verdict.clean, played.verdict


@pytest.mark.parametrize(("key", "model"), [("sk-wrong", NAME), (KEY, "another")])
async def test_what_it_refuses_is_not_asked_again(url: str, key: str, model: str) -> None:
    asking = chat(url, key=key, model=model)
    try:
        with pytest.raises(InvalidConfig):
            await asking.answer(OPINION)
    finally:
        await asking.aclose()
