"""Real Redis servers for tests: started on free ports, with folders of their own, and killed at the end."""

from __future__ import annotations

import contextlib
import random
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import redis

SAFE = {"appendonly": "yes", "appendfsync": "always", "maxmemory-policy": "noeviction"}
START_S = 20.0


def free_port() -> int:
    """Below 50,000: the bus of a Cluster takes the port that is higher by 10,000."""
    while True:
        port = random.randrange(20_000, 30_000)
        with socket.socket() as sock, contextlib.suppress(OSError):
            sock.bind(("127.0.0.1", port))
            return port


@dataclass
class Server:
    """One server process; ``options`` are lines of its configuration."""

    folder: Path
    options: dict[str, str] = field(default_factory=lambda: dict(SAFE))
    port: int = field(default_factory=free_port)
    program: tuple[str, ...] = ("redis-server",)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        config = self.folder / "redis.conf"
        if not config.exists():
            own = {"port": str(self.port), "bind": "127.0.0.1", "dir": str(self.folder), "save": '""'}
            lines = [f"{name} {value}" for name, value in (own | self.options).items()]
            config.write_text("\n".join(lines) + "\n")
        log = (self.folder / "log").open("ab")
        program = shutil.which(self.program[0])
        assert program, f"{self.program[0]} is not installed"
        command = [program, str(config), *self.program[1:]]
        self.process = subprocess.Popen(command, stdout=log, stderr=log)
        log.close()
        self._wait()

    def _wait(self) -> None:
        deadline_s = time.monotonic() + START_S
        with self.client() as client:
            while True:
                try:
                    client.ping()
                except redis.ConnectionError:
                    assert self.process is not None
                    alive = self.process.poll() is None and time.monotonic() < deadline_s
                    assert alive, (self.folder / "log").read_text()
                    time.sleep(0.02)
                else:
                    return

    def client(self) -> Any:
        return redis.Redis(host="127.0.0.1", port=self.port)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@contextlib.contextmanager
def in_memory(**options: str) -> Iterator[Server]:
    """As ``running``, in a folder that no disk is waited for where there is one: for tests of what, not of how long."""
    shared = Path("/dev/shm")
    with (
        tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder,
        running(Path(folder), **options) as server,
    ):
        yield server


@contextlib.contextmanager
def running(folder: Path, **options: str) -> Iterator[Server]:
    """A server with SAFE and these options, killed at the end."""
    named = {name.replace("_", "-"): value for name, value in options.items()}
    server = Server(folder, SAFE | named)
    try:
        server.start()
        yield server
    finally:
        server.kill()
