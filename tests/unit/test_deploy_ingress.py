"""What the configuration makes of Serve: its switches, its ports, how its deployments scale."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import pytest

from hermes_memory.config import ServeSettings, load_settings
from hermes_memory.errors import InvalidConfig
from serve_app import launch, options
from serve_app.launch import Server

DEFAULT = load_settings().serve
HAPROXY = dataclasses.replace(DEFAULT, ingress="haproxy", expose=True)


def test_haproxy_is_refused_until_the_operator_says_that_it_may_be_reached() -> None:
    options.check(DEFAULT)
    options.check(HAPROXY)
    with pytest.raises(InvalidConfig, match="all interfaces"):
        options.check(dataclasses.replace(HAPROXY, expose=False))


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
    assert options.ports(DEFAULT) == {"http_options": {"host": "127.0.0.1", "port": 8000}}
    assert options.logged(dataclasses.replace(DEFAULT, access_log=False)) == {"enable_access_log": False}


@pytest.mark.parametrize(
    ("least", "most", "told"),
    [
        (2, 1, {"num_replicas": 2}),
        (2, 2, {"num_replicas": 2}),
        (2, 5, {"autoscaling_config": {"min_replicas": 2, "max_replicas": 5, "target_ongoing_requests": 7}}),
    ],
)
def test_a_deployment_scales_where_there_is_room(least: int, most: int, told: dict[str, Any]) -> None:
    serve: ServeSettings = dataclasses.replace(DEFAULT, target_ongoing_requests=7)
    assert options.scale(serve, least, most) == told
