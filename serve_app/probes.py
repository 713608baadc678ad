"""How each dependency is asked whether it is there (API, Operators). A probe raises, or answers with details.

The product cannot work without its ledger, and not without any user host. Without the distiller turns are taken in and
wait; without the index recall answers from the actors, and what it must learn waits in the outbox. Without an embedder
that is served apart recall is refused, and everything else goes on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from actors.standing import Standing
from hermes_memory.ports.index import VectorIndex
from hermes_memory.ports.ledger import Ledger
from hermes_memory.ports.metrics import code_of
from serve_app.services import Probe

SPARE = frozenset({"distiller", "embedder", "extractor", "index"})

HostStats = Callable[[], Awaitable[Mapping[str, Mapping[str, Any] | BaseException]]]


def store_probe(store: Ledger, kind: str) -> Probe:
    """The ledger, by its own ping; ``kind`` is what it is called in the configuration."""

    async def probe() -> dict[str, Any]:
        await store.ping()
        return {"kind": kind}

    return probe


def index_probe(index: VectorIndex, kind: str) -> Probe:
    """The long-term index; it is connected to when it is first asked for, for it may be away when the app starts."""
    opened = False

    async def probe() -> dict[str, Any]:
        nonlocal opened
        if not opened:
            await index.open()
            opened = True
        await index.ping()
        return {"kind": kind}

    return probe


def extractor_probe(model: str, standing: Callable[[], Awaitable[Standing]]) -> Probe:
    """The cluster's own language model: ready, starting, waiting for a GPU …; without it turns wait or go by rules."""

    async def probe() -> dict[str, Any]:
        found = await standing()
        return {"ok": found is Standing.READY, "kind": "vllm", "model": model, "state": found.value}

    return probe


def hosts_probe(stats: HostStats) -> Probe:
    """Every standing host by its name. One that is away is a matter of its own users, and soon back: degraded."""

    async def probe() -> dict[str, Any]:
        answers = await stats()
        hosts = [_host(name, answer) for name, answer in answers.items()]
        here = [host["ok"] for host in hosts]
        return {"ok": any(here) or not hosts, "degraded": not all(here), "hosts": hosts}

    return probe


def _host(name: str, answer: Mapping[str, Any] | BaseException) -> dict[str, Any]:
    if isinstance(answer, BaseException):
        return {"host": name, "ok": False, "code": code_of(answer)}
    return {"host": name, "ok": True, **answer}
