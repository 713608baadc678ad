"""The cluster launcher's file: valid for Ray, and in agreement with the configuration and the lock."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from ray.autoscaler._private.util import prepare_config, validate_config

from hermes_memory.config import load_settings
from tests.unit import deploy_files

FILE = "ray_cluster.yaml"


@pytest.fixture
def config() -> dict[str, Any]:
    return deploy_files.document(FILE)


def test_ray_takes_it(config: dict[str, Any]) -> None:
    prepared = prepare_config(config)
    validate_config(prepared)
    types = prepared["available_node_types"]
    assert {name: (kind["min_workers"], kind["max_workers"]) for name, kind in types.items()} == {
        "head": (0, 0), "cpu_worker": (2, 8), "gpu_worker": (0, 4),
    }  # fmt: skip
    assert config["max_workers"] == sum(kind["max_workers"] for kind in types.values())


def test_ray_would_refuse_a_broken_one(config: dict[str, Any]) -> None:
    config["available_node_types"]["cpu_worker"]["min_workers"] = 99
    with pytest.raises(ValueError, match="max_workers"):
        validate_config(prepare_config(config))


def test_hosts_stand_on_cpu_nodes_only_and_the_least_of_them_carry_all(config: dict[str, Any]) -> None:
    actors = load_settings(Path("cluster")).actors
    types = config["available_node_types"]
    having = {name for name, kind in types.items() if actors.node_resource in kind["resources"]}
    assert having == {"cpu_worker"}
    cpu = types["cpu_worker"]
    assert cpu["min_workers"] * cpu["resources"][actors.node_resource] >= actors.hosts
    assert types["head"]["resources"]["CPU"] == 0
    assert "extractor" in types["gpu_worker"]["resources"]


def test_every_node_installs_with_the_same_uv_into_the_same_python(config: dict[str, Any]) -> None:
    makefile = re.search(r"^UV_VERSION \?= (\S+)$", deploy_files.text("Makefile"), re.MULTILINE)
    assert makefile is not None
    gpu = config["available_node_types"]["gpu_worker"]["worker_setup_commands"]
    assert gpu[:2] == config["setup_commands"][:2]
    assert f"uv=={makefile[1]} " in gpu[0].replace(")", " ")
    assert "--python 3.11 " in gpu[1]
    assert "[redis,weaviate]" in config["setup_commands"][-1]
    assert "[redis,weaviate,vllm]" in gpu[-1]


def test_what_serve_pickles_is_held_on_gpu_nodes_and_is_in_the_lock(config: dict[str, Any]) -> None:
    (held,) = [
        line
        for line in config["available_node_types"]["gpu_worker"]["worker_setup_commands"]
        if line.startswith("grep")
    ]
    names = re.search(r"\^\((.*)\)==", held)
    assert names is not None
    lock = deploy_files.text("constraints.txt")
    for name in names[1].split("|"):
        assert re.search(rf"^{name}==", lock, re.MULTILINE), name


@pytest.mark.parametrize("command", ["head_start_ray_commands", "worker_start_ray_commands"])
def test_every_node_starts_with_tokens_switches_and_addresses(command: str, config: dict[str, Any]) -> None:
    start = config[command][-1]
    for name, value in {**deploy_files.SWITCHES, "RAY_AUTH_MODE": "token"}.items():
        assert f" {name}={value} " in start
    assert " . ~/cluster.env; " in start
    assert set(config["file_mounts"]) == {"~/hermes-memory", "~/.ray/auth_token", "~/cluster.env"}


def test_the_head_is_where_the_workers_look_for_it(config: dict[str, Any]) -> None:
    assert "--head --port=6379 " in config["head_start_ray_commands"][-1]
    assert "--address=$RAY_HEAD_IP:6379 " in config["worker_start_ray_commands"][-1]
    assert "--dashboard-host=127.0.0.1" in config["head_start_ray_commands"][-1]


def test_the_example_of_the_environment_names_what_the_configuration_reads() -> None:
    lines = [line for line in deploy_files.text("deploy/cluster.env.example").splitlines() if line[:1] != "#"]
    assert {line.partition("=")[0] for line in lines} == deploy_files.addresses()
    assert not any(re.match(r"HERMES_\w*(PASSWORD|KEY)=.", line) for line in lines)


def test_no_image_is_left_to_ray(config: dict[str, Any]) -> None:
    for kind in config["available_node_types"].values():
        assert kind["node_config"]["ImageId"].startswith("ami-")
