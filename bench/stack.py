"""A server on a filled data directory of its own, and what it says about its hosts."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from bench.users import Crowd, load
from hermes_memory.config import Settings, load_settings
from serve_app.launch import Server

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Stack:
    """The running server."""

    url: str
    settings: Settings
    data: Path

    def user(self, name: str, prefix: str = "") -> str:
        """A user's address."""
        return f"{self.url}{prefix}/v1/users/{name}"

    def recall(self, name: str, query: str) -> dict[str, Any]:
        """One answer."""
        response = httpx.post(f"{self.user(name)}/recall", json={"query": query}, timeout=60, trust_env=False)
        response.raise_for_status()
        return dict(response.json())

    def hosts(self) -> list[dict[str, Any]]:
        """What every host says of itself: pid, awake, cost_bytes."""
        response = httpx.get(f"{self.url}/readyz", timeout=60, trust_env=False)
        response.raise_for_status()
        return list(response.json()["checks"]["hosts"]["hosts"])

    def total(self, what: str) -> int:
        """The sum over all hosts."""
        return sum(int(host[what]) for host in self.hosts())


@contextmanager
def running(crowds: Sequence[Crowd], overrides: Mapping[str, Any], say: Say) -> Iterator[Stack]:
    """Fill a temporary ledger, serve it on a free port, and leave nothing behind."""
    settings = load_settings(None, {**overrides, "serve": {"port": 0}})
    with tempfile.TemporaryDirectory(prefix="hermes-bench-") as folder:
        data = Path(folder)
        say(f"loading {', '.join(map(str, crowds))} memories")
        load(settings, data, crowds)
        server = Server(settings, data, say)
        server.start()
        try:
            yield Stack(server.url, server.settings, data)
        finally:
            server.stop()
