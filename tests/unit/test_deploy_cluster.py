"""The shipped configuration of a cluster, and that Serve's file says what `serve build` would make of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ray.serve import Application
from ray.serve._private.build_app import build_app
from ray.serve.deployment import deployment_to_schema
from ray.serve.schema import ServeDeploySchema

from actors import distiller, model
from hermes_memory.config import Settings, load_settings
from hermes_memory.errors import InvalidConfig
from serve_app import deployments, model_deployment, options
from tests.unit import deploy_files


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*deploy_files.addresses(), "HERMES_CONFIG", "HERMES_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)


def cluster() -> Settings:
    return load_settings(Path("cluster"))


def described(name: str = "serve") -> dict[str, Any]:
    return deploy_files.document(f"configs/{name}.yaml")


# Each file with the configuration that its apps are made of.
FILES = {"serve": "cluster", "serve-gpu": "cluster-gpu", "serve-gpus": "cluster-gpus"}


@pytest.mark.parametrize("name", FILES)
def test_serve_takes_the_file_as_it_is(name: str) -> None:
    ServeDeploySchema.model_validate(described(name))


@pytest.mark.parametrize("name", FILES)
def test_the_file_says_what_serve_build_would_write(name: str) -> None:
    app, *others = described(name)["applications"]
    assert (app["import_path"], app["route_prefix"]) == ("serve_app.deployments:build", "/")
    assert app["name"] == distiller.APP  # by this name the hosts find the distiller
    made = rendered(deployments.build(app["args"]), app["name"])
    assert {one["name"]: one for one in app["deployments"]} == made
    assert distiller.DEPLOYMENT in made
    assert {one["args"]["config"] for one in (app, *others)} == {FILES[name]}


def rendered(app: Application, name: str) -> dict[str, Any]:
    """The deployments of an app as Serve would write them into its file."""
    made = [
        deployment_to_schema(one).model_dump(exclude_unset=True, exclude_none=True)
        for one in build_app(app, name=name).deployments
    ]
    return {one["name"]: one for one in made}


@pytest.mark.parametrize("name", ["serve-gpu", "serve-gpus"])
def test_the_language_model_is_an_app_of_its_own_that_asks_for_gpus(name: str) -> None:
    _, app = described(name)["applications"]
    assert (app["import_path"], app["route_prefix"]) == ("serve_app.model_deployment:build", None)
    assert app["name"] == model.APP  # by this name the distillers find it
    made = rendered(model_deployment.build(app["args"]), app["name"])
    assert (
        {one["name"]: one for one in app["deployments"]} == made == {model.DEPLOYMENT: made[model.DEPLOYMENT]}
    )
    assert made[model.DEPLOYMENT]["ray_actor_options"] == {"num_cpus": 0.0, "num_gpus": 1.0}


def test_one_gpu_node_is_one_line_and_several_are_one_more() -> None:
    plain, one, many = (load_settings(Path(name)) for name in ("cluster", "cluster-gpu", "cluster-gpus"))
    assert replace(one, extractor=plain.extractor) == plain
    assert replace(one.extractor, kind="rules") == plain.extractor
    assert replace(many.extractor, max_replicas=1) == one.extractor
    lines = deploy_files.text("configs/cluster-gpu.toml").splitlines()
    assert [line for line in lines if line and not line.startswith("#")][1:] == [lines[-1]]
    pool = deploy_files.document("ray_cluster.yaml")["available_node_types"]["gpu_worker"]
    assert many.extractor.max_replicas == pool["max_workers"]


def test_a_configuration_without_a_model_deploys_none() -> None:
    with pytest.raises(InvalidConfig, match=r"extractor\.kind"):
        model_deployment.build({"config": "cluster"})


@pytest.mark.parametrize("name", FILES)
def test_the_file_listens_and_logs_as_the_configuration_says(name: str) -> None:
    settings, file = cluster(), described(name)
    assert file["http_options"] == options.http_options(settings.serve)
    assert file["logging_config"] == options.logging_config(settings)
    assert all(app["logging_config"] == options.logging_config(settings) for app in file["applications"])
    assert file["proxy_location"] == "EveryNode"


def test_the_cluster_keeps_nothing_on_its_nodes_and_is_reached_through_the_fast_ingress() -> None:
    settings = cluster()
    assert settings.ledger.kind == "redis"
    assert (settings.serve.ingress, settings.serve.expose) == ("haproxy", True)
    options.check_exposure(settings.serve)


def test_its_addresses_are_the_environments_and_its_secrets_stay_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours = {
        "HERMES_REDIS_URL": "redis://far:1/2",
        "HERMES_REDIS_PASSWORD": "hush-1",
        "HERMES_WEAVIATE_URL": "http://far:3",
        "HERMES_WEAVIATE_GRPC_PORT": "4",
        "HERMES_WEAVIATE_KEY": "hush-2",
    }
    assert set(ours) == deploy_files.addresses()
    for name, value in ours.items():
        monkeypatch.setenv(name, value)
    settings: Any = cluster()
    assert (settings.ledger.url, settings.ledger.password_env) == ("redis://far:1/2", "HERMES_REDIS_PASSWORD")
    index = settings.index
    assert (index.url, index.grpc_port, index.key_env) == ("http://far:3", 4, "HERMES_WEAVIATE_KEY")
    assert "hush" not in repr(settings)


def test_without_a_secret_none_is_asked_for() -> None:
    settings: Any = cluster()
    assert (settings.ledger.password_env, settings.index.key_env) == ("", "")


def test_the_app_takes_its_configuration_from_the_environment_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own.toml"
    own.write_text("[serve]\ningress_replicas = 3\n", encoding="utf-8")
    monkeypatch.setenv("HERMES_CONFIG", str(own))
    (ingress,) = [
        one for one in build_app(deployments.build({}), name="a").deployments if one.name == "Ingress"
    ]
    assert ingress.num_replicas == 3
