"""A real `hermes serve` as a child process: started, killed, started again; and the clients that talk to it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

READY_S = 90.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class ServerProcess:
    """`hermes serve` on ``data``; ``config`` is TOML text."""

    data: Path
    config: str = ""
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self.data.parent / f"{self.data.name}.log"

    def spawn(self) -> subprocess.Popen[bytes]:
        arguments = [
            sys.executable,
            "-m",
            "hermes_cli",
            "serve",
            "--port",
            str(self.port),
            "--data",
            str(self.data),
        ]
        if self.config:
            path = self.data.parent / f"{self.data.name}.toml"
            path.write_text(self.config, encoding="utf-8")
            arguments += ["--config", str(path)]
        with self.log.open("ab") as log:
            return subprocess.Popen(
                arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def start(self) -> float:
        """Start and wait until ready; returns the seconds it took."""
        started, before = time.monotonic(), self.log.stat().st_size if self.log.exists() else 0
        self.process = self.spawn()
        while time.monotonic() - started < READY_S:
            if self.process.poll() is not None:
                break
            try:
                announced = b"answers at" in self.log.read_bytes()[before:]  # not an orphan of the last run
                if (
                    announced
                    and httpx.get(f"{self.url}/readyz", timeout=5, trust_env=False).status_code == 200
                ):
                    return time.monotonic() - started
            except httpx.HTTPError:
                pass
            time.sleep(0.2)
        raise AssertionError(f"not ready after {READY_S} s:\n{self.log.read_text()[-4000:]}")

    def stop(self) -> int:
        """Interrupt as Ctrl-C does; returns the exit status."""
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)

    def kill(self) -> None:
        """SIGKILL the driver alone, as a crash would."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)

    def kill_group(self) -> None:
        """SIGKILL the driver and everything it ever started."""
        assert self.process is not None
        self.process.kill()
        for process in self.family():
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        self.process.wait(10)

    def family(self) -> list[psutil.Process]:
        """Every living process that carries this data directory in its environment."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.pid != os.getpid() and process.environ().get("HERMES_DATA_DIR") == str(
                    self.data.resolve()
                ):
                    found.append(process)
            except (psutil.Error, OSError):
                continue
        return found

    def host_pids(self) -> list[int]:
        """The processes of the user hosts; waits while one of them is on its way back."""
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline:
            try:
                checks = httpx.get(f"{self.url}/readyz", timeout=30, trust_env=False).json()["checks"]
            except httpx.HTTPError:
                checks = {}
            hosts = checks.get("hosts", {}).get("hosts", [])
            if hosts and all(host["ok"] for host in hosts):
                return [host["pid"] for host in hosts]
            time.sleep(0.2)
        raise AssertionError("the hosts do not come back")

    def client(self, timeout_s: float = 60) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=timeout_s, trust_env=False)


def say(client: httpx.Client, user: str, text: str, session: str, **fields: Any) -> dict[str, Any]:
    """Send one user message and wait until it is settled."""
    message = {"role": "user", "content": text} | fields
    answer = client.post(
        f"/v1/users/{user}/messages",
        params={"wait": "true"},
        json={"session_id": session, "messages": [message]},
    )
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    assert body["status"] == "done", body
    return body


def records(client: httpx.Client, user: str, **params: str) -> list[dict[str, Any]]:
    """Every memory of a user."""
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        query = params | {"limit": "200"} | ({"cursor": cursor} if cursor else {})
        page = client.get(f"/v1/users/{user}/memories", params=query).json()
        found += page["memories"]
        cursor = page["next_cursor"]
        if cursor is None:
            return found
