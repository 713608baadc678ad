"""The language model's Serve app: how it is rendered, what a person is told of it, what its replica does. No Ray."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from ray import serve
from ray.serve._private.build_app import build_app

from actors import model as served
from actors.model import APP, DEPLOYMENT, ServedModel
from actors.standing import Standing
from hermes_memory.adapters.vllm_model import RECOMMENDED, BatchWatch, Loaded
from hermes_memory.config import Settings, document_of, load_settings
from hermes_memory.core.candidate import Usage
from hermes_memory.errors import InvalidConfig, ModelFailed
from hermes_memory.ports.language_model import Completion, Finish, Question
from serve_app import launch, model_deployment
from serve_app.deployments import MODEL_GRACE_S, served_model
from serve_app.model_deployment import Model, bind, build, deploy, told_of_model
from serve_app.options import of_model

SECRET = "what ana said"
QUESTION = Question(system="s", user=SECRET, form="f", schema={}, max_tokens=9)


def settings(**extractor: Any) -> Settings:
    return load_settings(None, {"extractor": {"kind": "vllm"} | extractor})


DOCUMENT = document_of(settings())

# the rendered configuration


def test_so_many_replicas_with_so_many_gpus_each() -> None:
    assert of_model(settings(num_gpus=2, replicas=3, timeout_s=45.0).extractor, 10.0) == {
        "num_replicas": 3,
        "max_ongoing_requests": 256,
        "max_queued_requests": 256,
        "graceful_shutdown_wait_loop_s": 0.2,
        "graceful_shutdown_timeout_s": 45.0,
        "health_check_period_s": 2.0,
        "health_check_timeout_s": 30.0,
        "ray_actor_options": {"num_cpus": 0.0, "num_gpus": 2},
    }


def test_with_room_it_scales_itself_by_what_is_under_way() -> None:
    rendered = of_model(settings(max_replicas=4, target_ongoing_requests=7).extractor, 99.0)
    assert rendered["num_replicas"] is None
    assert rendered["autoscaling_config"] == {
        "min_replicas": 1, "max_replicas": 4, "target_ongoing_requests": 7,
    }  # fmt: skip
    assert rendered["graceful_shutdown_timeout_s"] == 99.0


def test_a_most_below_the_least_is_the_least() -> None:
    assert of_model(settings(replicas=2, max_replicas=1).extractor, 1.0)["num_replicas"] == 2


def test_its_name_is_the_one_that_callers_look_for() -> None:
    assert [one.name for one in build_app(bind(settings()), name=APP).deployments] == [DEPLOYMENT]


def test_the_environment_names_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "own.toml"
    own.write_text('[extractor]\nkind = "vllm"\nreplicas = 3\n', encoding="utf-8")
    monkeypatch.setenv("HERMES_CONFIG", str(own))
    assert [one.num_replicas for one in build_app(build(), name=APP).deployments] == [3]
    monkeypatch.delenv("HERMES_CONFIG")
    with pytest.raises(InvalidConfig, match="must be vllm"):
        build()


# who asks it


def test_only_the_kind_vllm_asks_the_clusters_own_model() -> None:
    assert served_model(load_settings()) is None
    model = served_model(settings(model="/models/small", timeout_s=9.0))
    assert isinstance(model, ServedModel)
    assert (model.name, model._timeout_s) == ("small", 9.0 + MODEL_GRACE_S)


# what a person is told


@pytest.mark.parametrize(
    ("standing", "extractor", "said"),
    [
        (Standing.READY, {}, f"the language model {RECOMMENDED} is ready"),
        (Standing.WAITING, {}, "no node of this cluster offers a GPU; turns are read by the rules meanwhile"),
        (
            Standing.WAITING,
            {"num_gpus": 2, "fallback": "park"},
            "no node of this cluster offers 2 GPUs; turns wait",
        ),
        (
            Standing.STARTING,
            {},
            "is being loaded, which takes minutes; turns are read by the rules meanwhile",
        ),
    ],
)
def test_a_person_is_told_what_becomes_of_turns(
    standing: Standing, extractor: dict[str, Any], said: str
) -> None:
    line = told_of_model(settings(**extractor), standing)
    assert said in line
    assert ("/readyz" in line) == (standing is not Standing.READY)


def test_it_is_deployed_beside_the_main_app_and_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(serve, "run_many", lambda targets, **how: seen.append((targets, how)))
    deploy(settings())
    ((target,), how) = seen[0]
    assert (target.name, target.route_prefix) == (APP, None)
    assert how == {"wait_for_ingress_deployment_creation": False, "wait_for_applications_running": False}


def test_a_server_starts_it_and_says_what_it_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    deployed: list[Settings] = []
    monkeypatch.setattr(served, "standing", lambda _: Standing.WAITING)
    monkeypatch.setattr(model_deployment, "deploy", deployed.append)
    launch.Server(load_settings(), tmp_path, said.append)._start_model()
    assert (said, deployed) == ([], [])
    launch.Server(settings(), tmp_path, said.append)._start_model()
    assert (said, deployed) == ([told_of_model(settings(), Standing.WAITING)], [settings()])


# a replica


class Engine:
    """A VllmModel that is played."""

    name = "small"

    def __init__(self) -> None:
        self.batch, self.loaded = BatchWatch(), Loaded("small", 64, 4)
        self.done: list[str] = []
        self.trouble: Exception | None = None
        self.cold = False

    async def start(self) -> None:
        self.done.append("start")

    async def warm_up(self, questions: Any) -> Loaded:
        self.done.append(f"warm up {len(questions)}")
        if self.cold:
            raise ModelFailed("the model", "no answer within 60 s")
        self.loaded = Loaded("small", 64, 4, (8, 3))
        return self.loaded

    async def answer(self, question: Question) -> Completion:
        if self.trouble is not None:
            raise self.trouble
        return Completion(text=question.user, finish=Finish.STOP, usage=Usage(calls=1))

    async def check(self) -> None:
        if self.trouble is not None:
            raise self.trouble

    def close(self) -> None:
        self.done.append("close")


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    played = Engine()
    monkeypatch.setattr(model_deployment, "_place", lambda: ("abc", "node-1"))
    monkeypatch.setattr(model_deployment, "configure", lambda *_: None)
    monkeypatch.setattr(model_deployment, "build_vllm_model", lambda *_: played)
    monkeypatch.setattr(model_deployment, "warm_up_questions", lambda _: (QUESTION, QUESTION))
    return played


async def made() -> Model:
    model = Model.__new__(Model)
    await model.__init__(DOCUMENT)  # type: ignore[misc]  # as Serve does
    return model


async def test_it_is_ready_when_the_engine_is_loaded_and_warm(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        model = await made()
    assert engine.done == ["start", "warm up 2"]
    assert "small is ready: loaded in" in caplog.text
    assert "blocks of 4, static prompts of (8, 3) tokens" in caplog.text
    assert SECRET not in caplog.text
    found = await model.ready()
    expected = {"model": "small", "context": 64, "block": 4, "prefix": [8, 3], "widest": 0, "node": "node-1"}
    assert found.items() >= expected.items()
    await model.check_health()
    assert (await model.answer(QUESTION)).text == SECRET


async def test_what_the_engine_raises_is_told_without_its_words(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    model = await made()
    engine.trouble = ValueError(SECRET)
    with caplog.at_level(logging.DEBUG), pytest.raises(ModelFailed, match="ValueError") as raised:
        await model.answer(QUESTION)
    assert raised.value.__cause__ is None
    assert SECRET not in caplog.text
    engine.trouble = InvalidConfig("extractor", "refused")
    with pytest.raises(InvalidConfig):
        await model.answer(QUESTION)


async def test_it_is_not_healthy_when_the_engine_is_not(engine: Engine) -> None:
    model = await made()
    engine.trouble = ModelFailed("the model", "the engine is dead")
    with pytest.raises(ModelFailed, match="dead"):
        await model.check_health()


async def test_a_replica_that_does_not_come_up_ends_its_engine(engine: Engine) -> None:
    """Else it keeps its GPU, and every replica after it finds none free."""
    engine.cold = True
    with pytest.raises(ModelFailed):
        await made()
    assert engine.done[-1] == "close"


async def test_when_it_ends_the_engine_does(engine: Engine) -> None:
    model = await made()
    model.__del__()
    assert engine.done[-1] == "close"
    unmade = Model.__new__(Model)
    unmade.__del__()
    with pytest.raises(ModelFailed, match="not loaded"):
        await unmade.answer(QUESTION)
