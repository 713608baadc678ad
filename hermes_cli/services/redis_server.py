"""A redis-server of this machine: what it is started with, and whether it answers."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from pathlib import Path

from hermes_cli.services.processes import Launch
from hermes_cli.services.settings import RedisSettings

NAME = "redis"
ANSWER_S = 2.0


def redis_url_of(port: int) -> str:
    """The address for clients."""
    return f"redis://127.0.0.1:{port}/0"


def redis_launch(
    binary: Path, folder: Path, port: int, settings: RedisSettings, options: Mapping[str, str] | None = None
) -> Launch:
    """``options`` are Redis's own, on top of the settings' ones."""
    chosen = {"port": str(port), "dir": str(folder.absolute()), **settings.options, **(options or {})}
    argv = [str(binary)]
    for name, value in chosen.items():
        argv += [f"--{name}", value]
    return Launch(
        name=NAME, argv=tuple(argv), environment={}, folder=folder, ready_s=settings.ready_s,
        answers=lambda pid: process_behind("127.0.0.1", port) == pid,
    )  # fmt: skip


def process_behind(host: str, port: int) -> int | None:
    """The process id of the Redis that answers there; None if none does, or while it loads its data."""
    try:
        with socket.create_connection((host, port), timeout=ANSWER_S) as connection:
            connection.sendall(b"PING\r\nINFO server\r\n")
            said = b""
            while b"process_id:" not in said and b"-" != said[:1]:
                if not (part := connection.recv(65536)):
                    return None
                said += part
            said += connection.recv(65536) if b"\r\n" not in said.partition(b"process_id:")[2] else b""
    except OSError:
        return None
    found = re.search(rb"process_id:(\d+)", said)
    return int(found[1]) if found and said.startswith(b"+PONG") else None
