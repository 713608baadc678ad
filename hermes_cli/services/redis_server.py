"""A redis-server of this machine: what it is started with, and whether it answers."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from pathlib import Path

from hermes_cli.services.processes import Launch
from hermes_cli.services.settings import RedisSettings

NAME = "redis"
USUAL_PORT = 6379
ANSWER_S = 2.0
ANSWER_BYTES = 100_000
PONG = b"+PONG\r\n"


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
    said = b""
    try:
        with socket.create_connection((host, port), timeout=ANSWER_S) as connection:
            connection.sendall(b"PING\r\nINFO server\r\n")
            while not (found := re.search(rb"process_id:(\d+)\r", said)):
                part = connection.recv(4096)
                if (
                    not part
                    or len(said) > ANSWER_BYTES
                    or not (said + part).startswith(PONG[: len(said + part)])
                ):
                    return None  # it loads its data, wants a password, or is no Redis
                said += part
    except OSError:
        return None
    return int(found[1])


def listens(host: str, port: int) -> bool:
    """Whether anything takes connections there; a Redis that wants a password or TLS does not say more."""
    try:
        with socket.create_connection((host, port), timeout=ANSWER_S):
            return True
    except OSError:
        return False
