"""The shipped configuration of a cluster, and that Serve's file says what `serve build` would make of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ray.serve._private.build_app import build_app
from ray.serve.deployment import deployment_to_schema
from ray.serve.schema import ServeDeploySchema

from actors import distiller
from hermes_memory.config import Settings, load_settings
from serve_app import deployments, options
from tests.unit import deploy_files


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*deploy_files.addresses(), "HERMES_CONFIG", "HERMES_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)


def cluster() -> Settings:
    return load_settings(Path("cluster"))


def described() -> dict[str, Any]:
    return deploy_files.document("configs/serve.yaml")


def test_serve_takes_the_file_as_it_is() -> None:
    ServeDeploySchema.model_validate(described())


def test_the_file_says_what_serve_build_would_write() -> None:
    (app,) = described()["applications"]
    assert (app["import_path"], app["route_prefix"]) == ("serve_app.deployments:build", "/")
    assert app["name"] == distiller.APP  # by this name the hosts find the distiller
    built = build_app(deployments.build(app["args"]), name=app["name"])
    made = [
        deployment_to_schema(one).model_dump(exclude_unset=True, exclude_none=True)
        for one in built.deployments
    ]
    by_name = {one["name"]: one for one in made}
    assert {one["name"]: one for one in app["deployments"]} == by_name
    assert distiller.DEPLOYMENT in by_name


def test_the_file_listens_and_logs_as_the_configuration_says() -> None:
    serve, file = cluster().serve, described()
    assert file["http_options"] == options.http_options(serve)
    assert file["logging_config"] == options.logging_config(serve)
    assert file["applications"][0]["logging_config"] == options.logging_config(serve)
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
