"""The compose file and the Dockerfile, as far as they can be held without a container engine."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import jsonschema
import pytest

from tests.unit import deploy_files

PINNED = re.compile(r"^[a-z/-]+:\d+\.\d+\.\d+(-[a-z]+)*$")
SECONDS = {"type": "string", "pattern": r"^\d+s$"}
COMPOSE: dict[str, Any] = {
    "type": "object",
    "required": ["name", "services", "volumes"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string"},
        "volumes": {"type": "object", "additionalProperties": {"type": "null"}},
        "services": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "required": ["image", "command", "environment", "ports", "volumes", "healthcheck", "restart"],
                "additionalProperties": False,
                "properties": {
                    "image": {"type": "string", "pattern": PINNED.pattern},
                    "command": {"type": "array", "items": {"type": "string"}},
                    "environment": {"type": "object", "additionalProperties": {"type": "string"}},
                    "ports": {
                        "type": "array", "items": {"type": "string", "pattern": r"^127\.0\.0\.1:\d+:\d+$"},
                    },
                    "volumes": {"type": "array", "items": {"type": "string", "pattern": r"^[a-z]+:/[a-z/]+$"}},
                    "healthcheck": {
                        "type": "object",
                        "required": ["test", "interval", "timeout", "retries"],
                        "additionalProperties": False,
                        "properties": {
                            "test": {"type": "array", "items": {"type": "string"}, "minItems": 2},
                            "interval": SECONDS, "timeout": SECONDS, "start_period": SECONDS,
                            "retries": {"type": "integer"},
                        },
                    },
                    "stop_grace_period": SECONDS,
                    "restart": {"enum": ["unless-stopped", "always", "on-failure", "no"]},
                },
            },
        },
    },
}  # fmt: skip


@pytest.fixture
def compose() -> dict[str, Any]:
    filled: dict[str, Any] = deploy_files.with_defaults(deploy_files.document("deploy/compose.yaml"))
    return filled


@pytest.fixture
def services() -> dict[str, Any]:
    return tomllib.loads(deploy_files.text("configs/services.toml"))


def test_it_has_the_shape_of_a_compose_file_and_answers_on_this_machine_only(compose: dict[str, Any]) -> None:
    jsonschema.validate(compose, COMPOSE)
    used = {volume.partition(":")[0] for one in compose["services"].values() for volume in one["volumes"]}
    assert used == set(compose["volumes"])


def test_redis_is_started_as_the_services_script_starts_it(
    compose: dict[str, Any], services: dict[str, Any]
) -> None:
    program, *arguments = compose["services"]["redis"]["command"]
    assert program == "redis-server"
    given = {
        name.removeprefix("--"): value for name, value in zip(arguments[::2], arguments[1::2], strict=True)
    }
    assert given.pop("requirepass") == ""
    here_only = {"protected-mode", "bind", "daemonize"}  # the container has an address of its own
    assert given == {
        name: value for name, value in services["redis"]["options"].items() if name not in here_only
    }
    assert (given["appendonly"], given["appendfsync"], given["maxmemory-policy"]) == (
        "yes",
        "always",
        "noeviction",
    )


def test_weaviate_is_the_one_of_the_services_script(
    compose: dict[str, Any], services: dict[str, Any]
) -> None:
    ours, theirs = compose["services"]["weaviate"], services["weaviate"]
    assert ours["image"].rpartition(":")[2] == theirs["version"]
    assert ours["environment"].items() >= theirs["environment"].items()
    assert ours["volumes"] == [f"weaviate:{ours['environment']['PERSISTENCE_DATA_PATH']}"]


def test_the_clusters_defaults_find_both(compose: dict[str, Any]) -> None:
    cluster = deploy_files.with_defaults(tomllib.loads(deploy_files.text("configs/cluster.toml")))
    ports = {port.rpartition(":")[0] for one in compose["services"].values() for port in one["ports"]}
    redis = re.fullmatch(r"redis://(\S+)/0", cluster["ledger"]["url"])
    http = re.fullmatch(r"http://(\S+)", cluster["index"]["url"])
    assert redis is not None and http is not None
    assert ports == {redis[1], http[1], f"127.0.0.1:{cluster['index']['grpc_port']}"}


def test_passwords_are_the_environments() -> None:
    file = deploy_files.text("deploy/compose.yaml")
    assert "${HERMES_REDIS_PASSWORD:-}" in file
    assert "${HERMES_WEAVIATE_KEY:-unused}" in file
    assert set(deploy_files.HERMES_VARIABLE.findall(file)) >= {"HERMES_BIND", "HERMES_WEAVIATE_GRPC_PORT"}


# the image


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions with their continued lines joined."""
    lines = [line for line in deploy_files.text("deploy/Dockerfile").splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]


def test_the_image_is_built_in_two_stages_from_one_pinned_base() -> None:
    bases = [rest.split() for word, rest in instructions() if word == "FROM"]
    assert [base[1:] for base in bases] == [["AS", "build"], []]
    assert len({base[0] for base in bases}) == 1
    assert re.fullmatch(r"python:3\.11\.\d+-slim-\w+", bases[0][0])


def test_it_runs_as_a_user_with_a_number_and_holds_no_secret() -> None:
    words = instructions()
    (user,) = [rest for word, rest in words if word == "USER"]
    uid = user.partition(":")[0]
    assert uid.isdigit() and int(uid) > 0
    after = [word for word, _ in words[words.index(("USER", user)) :]]
    assert "RUN" not in after and "COPY" not in after
    run_as = {pod["spec"]["securityContext"]["runAsUser"] for pod in _pods()}
    assert run_as == {int(uid)}
    assert not re.search(r"(?i)(password|token|secret)", deploy_files.text("deploy/Dockerfile"))


def test_it_copies_what_the_wheel_is_made_of_and_the_rest_stays_out() -> None:
    copied = {
        name
        for word, rest in instructions()
        if word == "COPY" and not rest.startswith("--from")
        for name in rest.split()[:-1]
    }
    project = tomllib.loads(deploy_files.text("pyproject.toml"))
    packages = set(project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])
    assert copied == packages | {"pyproject.toml", "README.md", "LICENSE", "constraints.txt"}
    assert all((deploy_files.ROOT / name).exists() for name in copied)
    ignored = deploy_files.text("deploy/Dockerfile.dockerignore").splitlines()
    assert {line[1:] for line in ignored if line.startswith("!")} == copied


def test_it_installs_as_every_other_node_does() -> None:
    arguments = dict(rest.split("=", 1) for word, rest in instructions() if word == "ARG")
    makefile = re.search(r"^UV_VERSION \?= (\S+)$", deploy_files.text("Makefile"), re.MULTILINE)
    assert makefile is not None
    assert arguments["UV_VERSION"] == makefile[1]
    project = tomllib.loads(deploy_files.text("pyproject.toml"))
    assert set(arguments["EXTRAS"].split(",")) <= set(project["project"]["optional-dependencies"])
    (held,) = re.findall(r"'\^\(([a-z|-]+)\)=='", deploy_files.text("deploy/Dockerfile"))
    assert f"^({held})==" in deploy_files.text("ray_cluster.yaml")


def _pods() -> list[dict[str, Any]]:
    cluster = deploy_files.manifests()["RayService"]["spec"]["rayClusterConfig"]
    return [one["template"] for one in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"])]
