"""What the doctor and a starting server say of who reads the turns."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from typer.testing import CliRunner

from hermes_cli.doctor import reading
from hermes_cli.doctor.findings import Finding, Level
from hermes_cli.main import app
from hermes_memory.config import Settings, load_settings
from hermes_memory.errors import InvalidConfig
from hermes_memory.wiring import check_data


class Models(BaseHTTPRequestHandler):
    """An endpoint that lists its models."""

    answers: ClassVar[tuple[int, bytes]]
    seen: ClassVar[list[tuple[str, str | None]]]

    def do_GET(self) -> None:
        type(self).seen.append((self.path, self.headers.get("Authorization")))
        status, body = self.answers
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture
def url() -> Iterator[str]:
    Models.answers, Models.seen = (200, json.dumps({"data": [{"id": "reader"}]}).encode()), []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Models)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()
    thread.join()


def settings(**extractor: Any) -> Settings:
    return load_settings(None, {"extractor": extractor})


def look(**extractor: Any) -> dict[str, Finding]:
    return {found.name: found for found in reading.look_at_extractor(settings(**extractor))}


def test_the_rules_need_nothing() -> None:
    assert look(kind="rules") == {}
    assert settings().extractor.told == "the rules, zh and en"


# an endpoint


def test_an_endpoint_that_lists_the_model(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_TEST_KEY", "sk-secret")
    found = look(kind="openai", model="reader", base_url=url, key_env="HERMES_TEST_KEY")
    assert {name: one.level for name, one in found.items()} == {"key": Level.OK, "endpoint": Level.OK}
    assert "lists reader" in found["endpoint"].detail
    assert Models.seen == [("/v1/models", "Bearer sk-secret")]
    assert not [one for one in found.values() if "sk-secret" in one.detail]


@pytest.mark.parametrize(
    ("answers", "level", "says"),
    [
        ((200, b'{"data": [{"id": "other"}]}'), Level.NOTE, "does not list reader"),
        ((200, b'{"data": []}'), Level.NOTE, "does not list reader"),
        ((404, b""), Level.NOTE, "knows no such path"),
        ((401, b""), Level.PROBLEM, "refuses the key"),
        ((500, b""), Level.PROBLEM, "status 500"),
        ((200, b"[]"), Level.PROBLEM, "lists no models"),
        ((200, b"hello"), Level.PROBLEM, "is not JSON"),
    ],
)
def test_an_endpoint_that_does_not(answers: tuple[int, bytes], level: Level, says: str, url: str) -> None:
    Models.answers = answers
    found = look(kind="openai", model="reader", base_url=url)
    assert found["key"] == Finding("extractor", "key", Level.OK, "none is sent: extractor.key_env is empty")
    assert (found["endpoint"].level, says in found["endpoint"].detail) == (level, True), found["endpoint"]
    assert len(Models.seen) == 1


def test_an_endpoint_that_is_not_there_or_not_configured() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{probe.getsockname()[1]}/v1"
    found = look(kind="openai", model="reader", base_url=nowhere)["endpoint"]
    assert (found.level, "ConnectError" in found.detail) == (Level.PROBLEM, True)
    found = look(kind="openai", base_url=nowhere)["endpoint"]
    assert (found.level, "must be named" in found.detail) == (Level.PROBLEM, True)


def test_a_key_that_is_not_there(url: str) -> None:
    found = look(kind="openai", model="reader", base_url=url, key_env="HERMES_NO_SUCH_KEY")
    assert {one.level for one in found.values()} == {Level.PROBLEM}
    assert Models.seen == []


def test_a_server_does_not_start_without_its_key(tmp_path: Path, url: str) -> None:
    given = {"kind": "openai", "model": "reader", "base_url": url, "key_env": "HERMES_NO_SUCH_KEY"}
    chosen = load_settings(None, {"embedder": {"kind": "hash", "calibration": "hash"}, "extractor": given})
    with pytest.raises(InvalidConfig, match=r"extractor\.key_env"):
        check_data(chosen, tmp_path)


# vLLM


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(reading, "version_of", lambda _: None)
    monkeypatch.setattr(reading, "gpus_here", lambda: 0.0)
    return monkeypatch


def test_a_machine_without_a_gpu_is_told_what_is_lacking(machine: pytest.MonkeyPatch) -> None:
    found = look(kind="vllm")
    assert [found[name].level for name in ("engine", "gpus", "model")] == [Level.NOTE, Level.NOTE, Level.OK]
    assert "not installed here" in found["engine"].detail
    assert found["gpus"].detail == "this machine has 0; extractor.num_gpus is 1, for each of 1 replica(s)"
    assert {one.level for one in look(kind="vllm", fallback="park", model="/no/such").values()} == {
        Level.PROBLEM
    }


def test_a_machine_that_has_it_all(machine: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine.setattr(reading, "version_of", lambda _: "0.32.0")
    machine.setattr(reading, "gpus_here", lambda: 2.0)
    (tmp_path / "config.json").write_text("{}")
    found = look(kind="vllm", model=str(tmp_path), num_gpus=2, replicas=3)
    assert {one.level for one in found.values()} == {Level.OK}
    assert (found["engine"].detail, found["model"].detail) == ("vllm 0.32.0", f"in {tmp_path}")


def test_a_cluster_is_asked_where_there_is_one(machine: pytest.MonkeyPatch) -> None:
    machine.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    machine.setattr(reading, "cluster_gpus", lambda address: 4.0 if address == "10.0.0.1:6379" else 0.0)
    assert look(kind="vllm")["gpus"].detail.startswith("a node of the cluster has 4;")

    def away(_: str) -> float:
        raise ConnectionError("10.0.0.1 said something")

    machine.setattr(reading, "cluster_gpus", away)
    found = look(kind="vllm")["gpus"]
    assert found.level is Level.PROBLEM
    assert found.detail == "the cluster at RAY_ADDRESS does not answer: ConnectionError"


def test_the_nodes_of_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    def node(gpus: float, *, alive: bool = True) -> dict[str, Any]:
        return {"Alive": alive, "Resources": {"GPU": gpus} if gpus else {}}

    nodes = [node(0), node(2), node(8, alive=False)]
    calls: list[Any] = []
    monkeypatch.setattr("ray.init", lambda address, **_: calls.append(address))
    monkeypatch.setattr("ray.nodes", lambda: nodes)
    monkeypatch.setattr("ray.shutdown", lambda: calls.append("shutdown"))
    assert reading.cluster_gpus("10.0.0.1:6379") == 2.0
    assert calls == ["10.0.0.1:6379", "shutdown"]


@pytest.mark.parametrize(("visible", "most"), [(None, 99), ("", 0), ("-1", 0), ("0", 1)])
def test_the_gpus_of_this_machine(visible: str | None, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setattr(Path, "glob", lambda *_: iter([Path("/dev/nvidia0"), Path("/dev/nvidia1")]))
    assert reading.gpus_here() == min(2, most)


# where it is shown


def test_the_doctor_shows_it(tmp_path: Path, url: str) -> None:
    config = tmp_path / "hermes.toml"
    config.write_text(
        '[embedder]\nkind = "hash"\ncalibration = "hash"\n'
        f'[extractor]\nkind = "openai"\nmodel = "reader"\nbase_url = "{url}"\nfallback = "park"\n'
    )
    asked = ["doctor", "--data", str(tmp_path / "data"), "--config", str(config), "--json"]
    result = CliRunner().invoke(app, asked)
    found = {(one["part"], one["name"]): one for one in json.loads(result.stdout)["findings"]}
    host = url.removeprefix("http://").removesuffix("/v1")
    plan = f"reader at {host}, with the prompt extract-1; where it fails turns wait; in 1 distiller(s)"
    assert found["would run", "extractor"]["detail"] == plan
    assert "lists reader" in found["extractor", "endpoint"]["detail"]


def test_a_starting_server_says_it(url: str) -> None:
    lines = reading.told(settings(kind="openai", model="reader", base_url=url))
    assert lines[0].startswith("turns are read by reader at 127.0.0.1:")
    assert lines[1:] == ["key: none is sent: extractor.key_env is empty", lines[2]]
    assert lines[2].startswith(f"endpoint: {url} answers in ")
    told = settings(kind="vllm", model="m", num_gpus=0.5).extractor.told
    assert told == (
        "m on 0.5 GPU(s) of this cluster, by vLLM, with the prompt extract-1; where it fails the rules read"
    )


@pytest.mark.parametrize(
    ("url", "where"),
    [
        ("", "at an endpoint without a usable base_url"),
        ("http://host:port/v1", "at an endpoint without a usable base_url"),
        ("http://host:99999/v1", "at an endpoint without a usable base_url"),
        ("http://[host/v1", "at an endpoint without a usable base_url"),
        ("http://user:key@host:80/v1", "at host:80"),
    ],
)
def test_an_endpoint_whose_url_is_none_is_a_finding_and_no_crash(url: str, where: str) -> None:
    chosen = settings(kind="openai", model="reader", base_url=url)
    assert f"reader {where}, with the prompt" in chosen.extractor.told
    assert {one.name: one for one in reading.look_at_extractor(chosen)}["endpoint"].level is Level.PROBLEM
    assert "key@" not in "".join(reading.told(chosen))


@pytest.mark.parametrize("kind", ["vllm", "openai"])
def test_a_prompt_that_is_not_there_is_found_before_the_server_refuses_it(kind: str, url: str) -> None:
    chosen = {"kind": kind, "model": "reader", "base_url": url}
    found = look(**chosen, prompt="extract-0")["prompt"]
    assert (found.level, "cannot be read as a prompt" in found.detail) == (Level.PROBLEM, True)
    assert "prompt" not in look(**chosen)


def test_a_folder_that_other_processes_do_not_find_is_told() -> None:
    found = look(kind="vllm", model="./reader")["model"]
    assert (found.level, "must be absolute" in found.detail) == (Level.PROBLEM, True)
