"""vLLM's real engine behind the app on a real cluster: where it comes up, what it answers, what it dies of.

In this order, on one cluster. The model is far too small to be good; it babbles, and that is what the gates are for.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from hermes_memory.ports.language_model import Completion, Question
from hermes_memory.wiring import model_name, warm_up_questions
from serve_app.deployments import served_model
from tests.cluster.harness import records
from tests.engine.cluster import LOAD_S, EngineCluster
from tests.engine.playing import grounded, play
from tests.engine.settings import CONTEXT

pytestmark = pytest.mark.filterwarnings("default")  # Ray runs in this process and warns of itself

TURNS = 16
WAITS = {"queued", "running"}
EARLY = "I'm allergic to peanuts, and my sister Lin lives in Porto."
LATE = "我住在杭州，养了一只叫豆豆的狗。"


def send(http: httpx.Client, user: str, text: str) -> dict[str, Any]:
    """One turn, not waited for."""
    message = {"role": "user", "content": text}
    answer = http.post(f"/v1/users/{user}/messages", json={"session_id": f"{user}-1", "messages": [message]})
    assert answer.status_code == 202, answer.text
    accepted: dict[str, Any] = answer.json()
    return accepted


def done(http: httpx.Client, job_id: str) -> dict[str, Any]:
    deadline = time.monotonic() + LOAD_S
    job: dict[str, Any] = {}
    while time.monotonic() < deadline:
        job = http.get(f"/v1/jobs/{job_id}").json()
        if job["status"] not in WAITS:
            return job
        time.sleep(0.5)
    raise AssertionError(job)


@pytest.fixture(scope="module")
def early(served: EngineCluster) -> dict[str, Any]:
    """A turn that was sent while there was no GPU."""
    with served.client() as http:
        return send(http, "early", EARLY)


@pytest.fixture(scope="module")
def gpu(served: EngineCluster, early: dict[str, Any]) -> Any:
    """The node that declares one."""
    return served.add_gpu()


@pytest.fixture(scope="module")
def replica(served: EngineCluster, gpu: Any) -> dict[str, Any]:
    return served.wait_for_model()


def test_without_a_gpu_the_app_answers_and_says_what_it_waits_for(
    served: EngineCluster, http: httpx.Client, early: dict[str, Any]
) -> None:
    assert "waits: no node of this cluster offers a GPU" in served.said
    ready = http.get("/readyz")
    check = ready.json()["checks"]["extractor"]
    assert (ready.status_code, ready.json()["status"]) == (200, "degraded")
    assert (check["ok"], check["needed"], check["state"]) == (False, False, "waiting for a GPU")
    assert check["model"] == model_name(served.settings)
    recall = http.post("/v1/users/early/recall", json={"query": "a recipe for cookies"})
    assert recall.status_code == 200
    assert http.get(f"/v1/jobs/{early['job_id']}").json()["status"] in WAITS


def test_the_replica_comes_up_on_the_node_that_offers_one(
    served: EngineCluster, gpu: Any, replica: dict[str, Any], http: httpx.Client, early: dict[str, Any]
) -> None:
    assert replica["node"] == gpu.node_id
    assert replica["context"] == CONTEXT
    assert done(http, early["job_id"])["status"] == "done"
    assert all(grounded(memory, EARLY) for memory in records(http, "early"))


def test_what_the_model_says_of_sixteen_turns_is_used_or_counted_and_nothing_of_it_is_made_up(
    served: EngineCluster, replica: dict[str, Any], tmp_path: Path
) -> None:
    model = served_model(served.settings)
    assert model is not None
    played = asyncio.run(play(model, TURNS, tmp_path, served.settings))
    print(played)
    assert played.turns == TURNS
    assert set(played.jobs) == {"done"}
    assert played.answers == played.seen.usage.calls > 0
    assert played.seen.usage.invalid == played.unusable
    assert played.seen.usage.tokens_cached > 0
    assert played.verdict.clean, played.verdict  # nothing ungrounded, lost or doubled


def test_every_full_block_of_the_static_prompts_is_cached(
    served: EngineCluster, replica: dict[str, Any]
) -> None:
    model = served_model(served.settings)
    assert model is not None
    for question, prefix in zip(warm_up_questions(served.settings), replica["prefix"], strict=True):
        mine = replace(question, user=f'{{"turns":"{time.time_ns()}"}}', max_tokens=2)
        usage = asyncio.run(model.answer(mine)).usage
        assert usage.tokens_cached >= prefix // replica["block"] * replica["block"] > 0


def test_questions_at_once_are_answered_together(served: EngineCluster, replica: dict[str, Any]) -> None:
    model = served_model(served.settings)
    assert model is not None
    question = replace(warm_up_questions(served.settings)[0], max_tokens=24)

    async def ask(number: int) -> Completion:
        return await model.answer(_another(question, number))

    async def all_of_them() -> list[Completion]:
        return await asyncio.gather(*map(ask, range(8)))

    answers = asyncio.run(all_of_them())
    assert len(answers) == 8
    assert served.wait_for_model()["widest"] >= 4  # sequences in one step of the engine


def _another(question: Question, number: int) -> Question:
    return replace(
        question, user=question.user.replace('"turns":[]', f'"turns":[{{"t":"T1","text":"tea {number}"}}]')
    )


def test_an_engine_that_is_killed_is_made_anew_and_the_turns_wait_for_it(
    served: EngineCluster, replica: dict[str, Any], http: httpx.Client
) -> None:
    engine = [
        child
        for child in psutil.Process(replica["pid"]).children(recursive=True)
        if child.name().startswith("VLLM::Engine")  # the system cuts longer ones
    ]
    assert len(engine) == 1
    engine[0].kill()
    job = send(http, "late", LATE)  # 202 while nobody can read it
    again = served.wait_for_model(but_pid=replica["pid"])
    assert again["prefix"] == replica["prefix"]
    assert done(http, job["job_id"])["status"] == "done"
    assert all(grounded(memory, LATE) for memory in records(http, "late"))
