"""What each way into Serve costs: the same requests to the same users behind each, and behind a bare uvicorn.

Three requests: one that no actor sees (``/healthz``), one that asks an actor and no model (a profile), and a recall,
whose query is embedded. The callers are ``plain_http``'s, which cost the machine little. Every way gets a server of
its own, one after the other.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import httpx
from rich.table import Table

from bench.plain_http import HOST, flood, get, post
from bench.report import Limit, Report, table
from bench.stack import Say
from bench.texts import queries
from bench.traffic import Spread
from bench.users import Crowd, load
from hermes_memory.config import load_settings
from serve_app.options import THROUGHPUT

LIMITS = (
    Limit(
        "healthz_gain", at_least=1.5, what="answers per s of HAProxy with its switches over the stock proxy's, /healthz, 8 callers"
    ),
)  # fmt: skip
CROWD = Crowd(16, 200)
CALLERS = (1, 8)
COUNTS = {"healthz": 1500, "profile": 800, "recall": 400}
QUICK_SHARE, WARM_UP = 0.2, 60
PATIENCE_S = 120.0
CHOSEN, STOCK, FLOOR = "HAProxy, switches, no access log", "stock proxy", "plain uvicorn, no Ray"


@dataclass(frozen=True, slots=True)
class Way:
    """One way in: what the configuration says, and the environment."""

    name: str
    serve: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


HAPROXY = {"ingress": "haproxy", "expose": True}
ONE_LOOP = {
    THROUGHPUT: "1",
    "RAY_SERVE_ENABLE_DIRECT_INGRESS": "0",
}  # the switches, without a port for each replica
WAYS = (
    Way(STOCK),
    Way("stock proxy, no access log", {"access_log": False}),
    Way("stock proxy, switches, no access log", {"access_log": False}, ONE_LOOP),
    Way("HAProxy", HAPROXY, {THROUGHPUT: "0"}),
    Way("HAProxy, switches", HAPROXY),
    Way(CHOSEN, {**HAPROXY, "access_log": False}),
    Way(FLOOR),
)


@dataclass(slots=True)
class Seen:
    """What was measured of one way; spreads by request and callers."""

    name: str
    start_s: float
    stop_s: float = 0.0
    spreads: dict[str, dict[int, Spread]] = field(default_factory=dict)


def run(*, quick: bool, say: Say) -> Report:
    """Each way in turn."""
    with tempfile.TemporaryDirectory(prefix="hermes-bench-") as folder:
        data = Path(folder) / "data"
        say(f"loading {CROWD} memories")
        load(load_settings(), data, [CROWD])
        return _report([_measure(way, data, QUICK_SHARE if quick else 1.0, say) for way in WAYS])


def _measure(way: Way, data: Path, share: float, say: Say) -> Seen:
    say(way.name)
    with _server(way, data) as (port, seen):
        for name, requests in _requests().items():
            asyncio.run(flood(port, requests, 1, WARM_UP))
            seen.spreads[name] = {}
            for callers in CALLERS:
                waited, seconds = asyncio.run(flood(port, requests, callers, int(COUNTS[name] * share)))
                seen.spreads[name][callers] = Spread.of(waited, seconds)
    return seen


def _requests() -> dict[str, Iterator[bytes]]:
    names = [CROWD.name(number) for number in range(CROWD.users)]
    asked = zip(cycle(names), queries(), strict=False)
    return {
        "healthz": cycle([get("/healthz")]),
        "profile": cycle([get(f"/v1/users/{name}/profile") for name in names]),
        "recall": (post(f"/v1/users/{name}/recall", json.dumps({"query": q}).encode()) for name, q in asked),
    }


@contextmanager
def _server(way: Way, data: Path) -> Iterator[tuple[int, Seen]]:
    """Starts it, times its start and its end, and leaves nothing behind."""
    port, config = _free_port(), data.parent / "config.toml"
    config.write_text(
        "[serve]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in way.serve.items())
    )
    command = (
        ["-m", "bench.plain_http", str(data), str(port), str(config)]
        if way.name == FLOOR
        else ["-m", "hermes_cli", "serve", "--port", str(port), "--data", str(data), "--config", str(config)]
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **way.environment}
    log = (data.parent / "server.log").open("wb")
    started = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, *command], env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
    )
    try:
        _await(process, port, data.parent / "server.log")
        seen = Seen(way.name, time.monotonic() - started)
        yield port, seen
        stopping = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE_S)
        seen.stop_s = time.monotonic() - stopping
    finally:
        log.close()
        if process.poll() is None:
            process.terminate()
            process.wait(PATIENCE_S)


def _await(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until and process.poll() is None:
        try:
            if httpx.get(f"http://{HOST}:{port}/readyz", timeout=10, trust_env=False).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.2)
    raise RuntimeError(f"the server did not start:\n{log.read_text(encoding='utf-8')[-2000:]}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _report(ways: Sequence[Seen]) -> Report:
    made = Report("ingress")
    by_name = {seen.name: seen.spreads for seen in ways}
    most = CALLERS[-1]
    made.figures = {
        f"{request}_gain": by_name[CHOSEN][request][most].per_s / by_name[STOCK][request][most].per_s
        for request in COUNTS
    }
    made.tables = [_table(ways)]
    made.data = {"crowd": str(CROWD), "ways": [asdict(seen) for seen in ways]}
    return made


def _table(ways: Sequence[Seen]) -> Table:
    columns = ["way in", "request"]
    for callers in CALLERS:
        columns += [f"{callers}: p50 ms", "p99", "per s"]
    rows = [
        (
            seen.name if number == 0 else "", request,
            *(value for spread in spreads.values() for value in (spread.p50, spread.p99, spread.per_s)),
            *((seen.start_s, seen.stop_s) if number == 0 else ("", "")),
        )
        for seen in ways
        for number, (request, spreads) in enumerate(seen.spreads.items())
    ]  # fmt: skip
    return table("Ways into Serve, 1 and 8 callers", [*columns, "start s", "stop s"], rows)
