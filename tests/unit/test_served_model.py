"""The language model over a Serve handle: what becomes of answers, errors, silence and a deployment that is not there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import pytest
from ray.exceptions import ActorDiedError, RayError, RayTaskError
from ray.serve._private.common import DeploymentID
from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError, ReplicaUnavailableError

from actors import model as served
from actors.model import LOOK_S, ServedModel
from actors.standing import Standing
from hermes_memory.core.candidate import Usage
from hermes_memory.errors import InvalidConfig, ModelFailed
from hermes_memory.ports.language_model import Completion, Finish, Question
from serve_app.probes import extractor_probe
from tests.unit.test_health import ready

SECRET = "what ana said"
QUESTION = Question(system="s", user=SECRET, form="f", schema={}, max_tokens=9)
ANSWER = Completion(text="{}", finish=Finish.STOP, usage=Usage(calls=1))


def failed(trace: str, cause: Exception) -> RayTaskError:
    """What a caller gets of an exception in the replica."""
    return RayTaskError("answer", trace, cause)  # type: ignore[no-untyped-call]


class Response:
    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def __await__(self) -> Generator[Any, None, Completion]:
        yield from asyncio.sleep(self._handle.takes_s).__await__()
        if self._handle.troubles:
            raise self._handle.troubles.pop(0)
        return ANSWER

    def cancel(self) -> None:
        self._handle.cancelled += 1


class Handle:
    """A deployment; ``troubles`` come first."""

    def __init__(self, *troubles: Exception, takes_s: float = 0.0) -> None:
        self.troubles, self.takes_s = list(troubles), takes_s
        self.asked: list[Question] = []
        self.was_asked = asyncio.Event()
        self.cancelled = self.found = 0

    @property
    def answer(self) -> Any:
        return SimpleNamespace(remote=self._remote)

    def _remote(self, question: Question) -> Response:
        self.asked.append(question)
        self.was_asked.set()
        return Response(self)


class Looks:
    """How the deployment stands, a look at a time; the last one stays."""

    def __init__(self, *standings: Standing | Exception) -> None:
        self.standings, self.count = list(standings), 0

    def __call__(self, num_gpus: float) -> Standing:
        self.count += 1
        found = self.standings.pop(0) if len(self.standings) > 1 else self.standings[0]
        if isinstance(found, Exception):
            raise found
        return found


def over(
    handle: Handle, *standings: Standing | Exception, timeout_s: float = 5.0
) -> tuple[ServedModel, Looks]:
    looks = Looks(*(standings or (Standing.READY,)))

    def find() -> Handle:
        handle.found += 1
        return handle

    return ServedModel("small", num_gpus=1, timeout_s=timeout_s, look=looks, find=find), looks


async def test_an_answer_comes_through_and_is_not_looked_for_again() -> None:
    handle = Handle()
    model, looks = over(handle)
    assert [await model.answer(QUESTION) for _ in range(3)] == [ANSWER] * 3
    assert (model.name, handle.asked) == ("small", [QUESTION] * 3)
    assert (looks.count, handle.found) == (1, 1)


@pytest.mark.parametrize("standing", [standing for standing in Standing if standing is not Standing.READY])
async def test_a_deployment_that_is_not_ready_is_not_waited_for(standing: Standing) -> None:
    handle = Handle()
    model, _ = over(handle, standing)
    with pytest.raises(ModelFailed, match=str(standing)) as raised:
        await model.answer(QUESTION)
    assert (raised.value.after_s, handle.asked) == (LOOK_S, [])


@pytest.mark.parametrize(
    ("trouble", "kind", "words"),
    [
        (failed("trace", ModelFailed("the model", "the engine is dead", 7.0)), ModelFailed, "dead"),
        (failed("trace", InvalidConfig("extractor", "refused")), InvalidConfig, "refused"),
        (failed(SECRET, ValueError(SECRET)), ModelFailed, "ValueError"),
        (ActorDiedError(), ModelFailed, "ActorDiedError"), (ReplicaUnavailableError("r"), ModelFailed, "Replica"),
        (DeploymentUnavailableError(DeploymentID("d")), ModelFailed, "Deployment"), (RayError(SECRET), ModelFailed, "RayError"),
        (KeyError(SECRET), ModelFailed, "KeyError"),
    ],
)  # fmt: skip
async def test_what_goes_wrong_is_one_of_ours_and_looked_at_anew(
    trouble: Exception, kind: type[Exception], words: str
) -> None:
    handle = Handle(trouble)
    model, looks = over(handle)
    with pytest.raises(kind, match=words) as raised:
        await model.answer(QUESTION)
    assert SECRET not in str(raised.value)
    assert await model.answer(QUESTION) == ANSWER
    assert (looks.count, handle.found) == (2, 2)


async def test_a_pause_that_the_engine_asks_for_is_kept() -> None:
    model, _ = over(Handle(failed("", ModelFailed("the model", "busy", 7.0))))
    with pytest.raises(ModelFailed) as raised:
        await model.answer(QUESTION)
    assert raised.value.after_s == 7.0


async def test_one_that_is_busy_is_there() -> None:
    handle = Handle(BackPressureError(num_queued_requests=1, max_queued_requests=1))
    model, _ = over(handle)
    with pytest.raises(ModelFailed, match="too many") as raised:
        await model.answer(QUESTION)
    assert raised.value.after_s == LOOK_S
    await model.answer(QUESTION)
    assert handle.found == 1


async def test_a_late_answer_is_taken_back() -> None:
    handle = Handle(takes_s=60)
    model, _ = over(handle, timeout_s=0.01)
    with pytest.raises(ModelFailed, match="no answer within"):
        await model.answer(QUESTION)
    assert handle.cancelled == 1


async def test_whoever_stops_waiting_takes_the_question_back() -> None:
    handle = Handle(takes_s=60)
    model, _ = over(handle)
    asking = asyncio.create_task(model.answer(QUESTION))
    await handle.was_asked.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert handle.cancelled == 1


async def test_many_look_once_in_a_while() -> None:
    model, looks = over(Handle(), Standing.STARTING)
    await asyncio.gather(*(model.answer(QUESTION) for _ in range(5)), return_exceptions=True)
    assert [await model.standing() for _ in range(3)] == [Standing.STARTING] * 3
    assert looks.count == 1


async def test_a_serve_that_is_mute_is_not_waited_for() -> None:
    def mute(_: float) -> Standing:
        time.sleep(0.5)
        return Standing.READY

    model = ServedModel("small", num_gpus=1, timeout_s=0.01, look=mute, find=Handle)
    with pytest.raises(ModelFailed, match="no answer within"):
        await model.answer(QUESTION)


async def test_a_serve_that_does_not_say_is_a_model_that_failed() -> None:
    model, _ = over(Handle(), RayError(SECRET))
    with pytest.raises(ModelFailed, match="does not say") as raised:
        await model.answer(QUESTION)
    assert SECRET not in str(raised.value)


# readiness


@pytest.mark.parametrize(
    ("standing", "status"),
    [(Standing.READY, "ready"), (Standing.STARTING, "degraded"), (Standing.WAITING, "degraded")],
)
async def test_readiness_names_the_extractor_and_goes_on_without_it(standing: Standing, status: str) -> None:
    model, _ = over(Handle(), standing)
    code, body = await ready({"extractor": extractor_probe(model.name, model.standing)})
    check = body["checks"]["extractor"]
    assert (code, body["status"], check["needed"]) == (200, status, False)
    assert (check["ok"], check["kind"], check["model"]) == (standing is Standing.READY, "vllm", "small")
    assert check["state"] == standing.value


# how it stands


def app(status: str = "DEPLOYING", **states: int) -> Any:
    return SimpleNamespace(
        status=status, deployments={served.DEPLOYMENT: SimpleNamespace(replica_states=states)}
    )


def node(gpus: float, *, alive: bool = True) -> dict[str, Any]:
    return {"Alive": alive, "Resources": {"CPU": 4.0} | ({"GPU": gpus} if gpus else {})}


@pytest.mark.parametrize(
    ("found", "nodes", "wanted", "expected"),
    [
        (None, [node(1)], 1, Standing.ABSENT),
        (app("RUNNING", RUNNING=1), [node(1)], 1, Standing.READY),
        (app("UNHEALTHY", RUNNING=1, STARTING=1), [node(1)], 1, Standing.READY),
        (app(STARTING=1), [], 1, Standing.WAITING),
        (app(STARTING=1), [node(0), node(1, alive=False)], 1, Standing.WAITING),
        (app(STARTING=1), [node(1), node(1)], 2, Standing.WAITING),
        (app(STARTING=1), [node(0), node(1)], 1, Standing.STARTING),
        (app(STARTING=1), [node(0)], 0, Standing.STARTING),
        (app("DEPLOY_FAILED"), [node(1)], 1, Standing.FAILED),
        (SimpleNamespace(status="DEPLOYING", deployments={}), [node(1)], 1, Standing.STARTING),
    ],
)
def test_how_the_deployment_stands(
    found: Any, nodes: list[Any], wanted: float, expected: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    applications = {} if found is None else {served.APP: found}
    monkeypatch.setattr("ray.serve.status", lambda: SimpleNamespace(applications=applications))
    monkeypatch.setattr("ray.nodes", lambda: nodes)
    assert served.standing(wanted) is expected


def test_the_deployment_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ray.serve.get_deployment_handle", lambda *names: names)
    assert served.deployed() == (served.DEPLOYMENT, served.APP)
