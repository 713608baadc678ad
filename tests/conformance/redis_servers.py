"""Real Redis servers for tests: started on free ports, with folders of their own, and killed at the end."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import redis

SAFE = {"appendonly": "yes", "appendfsync": "always", "maxmemory-policy": "noeviction"}
START_S = 20.0


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


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
                    assert time.monotonic() < deadline_s, (self.folder / "log").read_text()
                    time.sleep(0.02)
                else:
                    return

    def client(self) -> redis.Redis:
        return redis.Redis(port=self.port)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@contextmanager
def running(folder: Path, **options: str) -> Iterator[Server]:
    """A server with SAFE and these options, killed at the end."""
    named = {name.replace("_", "-"): value for name, value in options.items()}
    server = Server(folder, SAFE | named)
    server.start()
    try:
        yield server
    finally:
        server.kill()
