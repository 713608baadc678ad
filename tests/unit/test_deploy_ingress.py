"""What the configuration makes of Serve: its switches, its ports, how its deployments scale."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest
from ray.serve._private.build_app import build_app

from hermes_memory.config import load_settings
from hermes_memory.errors import InvalidConfig
from serve_app import launch, options
from serve_app.deployments import bind
from serve_app.launch import Server

DEFAULT = load_settings().serve
HAPROXY = dataclasses.replace(DEFAULT, ingress="haproxy", expose=True)


def test_haproxy_is_refused_until_the_operator_says_that_it_may_be_reached() -> None:
    options.check_exposure(DEFAULT)
    options.check_exposure(HAPROXY)
    with pytest.raises(InvalidConfig, match="all interfaces"):
        options.check_exposure(dataclasses.replace(HAPROXY, expose=False))


def test_a_server_that_may_not_expose_itself_starts_nothing(tmp_path: Path) -> None:
    settings = load_settings(overrides={"serve": {"ingress": "haproxy"}})
    with pytest.raises(InvalidConfig, match=r"serve\.expose"):
        Server(settings, tmp_path / "data").start()
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(("ingress", "said"), [("proxy", "0"), ("haproxy", "1")])
def test_the_configuration_decides_whatever_the_environment_says(
    ingress: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (options.HA_PROXY, options.THROUGHPUT, options.DRAINING):
        monkeypatch.setenv(name, "?")
        monkeypatch.delenv(name)
    monkeypatch.setenv(options.HA_PROXY, "0" if said == "1" else "1")
    monkeypatch.setattr(launch, "_init_ray", lambda: None)
    settings = load_settings(overrides={"serve": {"ingress": ingress, "expose": True}})
    Server(settings, tmp_path)._start_ray(tmp_path)
    assert os.environ[options.HA_PROXY] == said
    assert (options.THROUGHPUT in os.environ, options.DRAINING in os.environ) == (said == "1", said == "1")


def test_an_operator_may_keep_a_switch_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(options.HA_PROXY, "0")
    monkeypatch.setenv(options.DRAINING, "7")
    monkeypatch.setenv(options.THROUGHPUT, "0")
    monkeypatch.setattr(launch, "_init_ray", lambda: None)
    settings = load_settings(overrides={"serve": {"ingress": "haproxy", "expose": True}})
    Server(settings, tmp_path)._start_ray(tmp_path)
    assert (os.environ[options.THROUGHPUT], os.environ[options.DRAINING]) == ("0", "7")


def test_what_serve_is_told() -> None:
    assert options.http_options(DEFAULT) == {"host": "127.0.0.1", "port": 8000}
    assert options.logging_config(dataclasses.replace(DEFAULT, access_log=False)) == {
        "enable_access_log": False
    }


SOME = dataclasses.replace(
    DEFAULT, ingress_replicas=2, distiller_replicas=3, target_ongoing_requests=7, replica_cpus=0.5
)


def test_a_deployment_has_so_many_replicas_where_there_is_no_room() -> None:
    taking = {"ray_actor_options": {"num_cpus": 0.5}}
    assert options.of_ingress(SOME) == {"num_replicas": 2, **taking}
    assert options.of_distiller(dataclasses.replace(SOME, max_distiller_replicas=3)) == {
        "num_replicas": 3,
        **taking,
    }


def test_a_deployment_scales_by_load_where_there_is() -> None:
    told = options.of_ingress(dataclasses.replace(SOME, max_ingress_replicas=5))
    assert told["autoscaling_config"] == {
        "min_replicas": 2, "max_replicas": 5, "target_ongoing_requests": 7,
    }  # fmt: skip
    assert options.of_distiller(dataclasses.replace(SOME, max_ingress_replicas=5))["num_replicas"] == 3


def test_serve_takes_both_kinds() -> None:
    settings = load_settings(overrides={"serve": {"max_ingress_replicas": 4, "replica_cpus": 0.5}})
    ingress, distiller = (
        next(one for one in build_app(bind(settings, "data"), name="a").deployments if one.name == name)
        for name in ("Ingress", "Distiller")
    )
    assert ingress._deployment_config.autoscaling_config.max_replicas == 4
    assert (distiller.num_replicas, distiller._deployment_config.autoscaling_config) == (1, None)
    assert ingress.ray_actor_options == distiller.ray_actor_options == {"num_cpus": 0.5}
