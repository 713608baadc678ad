"""One night as ``python -m jobs.nightly`` runs it, and what is killed in the middle of it."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from hermes_memory.app.night import NightRun
from hermes_memory.config import load_settings
from hermes_memory.ports.ledger import Ledger
from hermes_memory.wiring import build_ledger, embedder_info
from jobs.building import build_night
from jobs.nightly import reach
from tests.cluster.nodes import CONFIG, ROOT, STORE_BYTES, Nodes
from tests.night_kills.stories import NOW, ends, forget, load, names

KINDS = ("driver", "host", "node")
SHARDS = 4
# Slow enough to be hit in the middle, with a checkpoint every few users; a lost host is found again at once.
NIGHTLY = {"shards": SHARDS, "workers": 2, "page": 4, "in_flight": 2, "share": 0.15, "backoff_most_s": 2.0}
NIGHT_S = 120.0
LOOK_S = 0.05
LATER_S = 0.3  # at most, after the user whose turn decides the moment
EARLY, LATE = 0.05, 0.7  # shares of the users between which the moment lies
TASK = "ray::_work"


class NightFailed(Exception):
    """The job ended otherwise than it should."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One kill, and what came of it. ``other`` names users who ended otherwise than undisturbed."""

    kind: str
    seen: int
    users: int
    done: int
    seconds: float
    other: list[str]


def _configure(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "night.toml").write_text(toml_of(CONFIG | {"nightly": NIGHTLY}), encoding="utf-8")


@dataclass(slots=True)
class Nights:
    """Nights on the cluster: each a group of users with the histories of the undisturbed group."""

    nodes: Nodes
    folder: Path
    users: int
    chance: random.Random
    undisturbed: list[str]
    number: int = 0

    @classmethod
    async def begun(cls, nodes: Nodes, folder: Path, users: int, chance: random.Random) -> Nights:
        """After a night that nothing disturbed."""
        nights = cls(nodes, folder, users, chance, [])
        await asyncio.to_thread(_configure, folder)
        calm = names("calm", users)
        await load(nodes.url, calm)
        before = await ends(nodes.url, calm)
        job = nights.start(nights._date())
        nights._over(await asyncio.to_thread(job.wait, NIGHT_S), nights._date())
        nights.undisturbed = await ends(nodes.url, calm)
        if all(old == new for old, new in zip(before, nights.undisturbed, strict=True)):
            raise NightFailed("the night changes nothing here, so that nothing would be noticed")
        await forget(nodes.url, calm)
        return nights

    async def hit(self, kind: str) -> Hit:
        """A night with a kill in it, and again where it ended with it."""
        self.number += 1
        group, date = names(f"hit{self.number}", self.users), self._date()
        self._two_nodes()
        await load(self.nodes.url, group)
        moment, later_s = int(self.users * self.chance.uniform(EARLY, LATE)), self.chance.uniform(0, LATER_S)
        began = time.monotonic()
        job = self.start(date)
        try:
            seen = await self._wait_for(date, moment, job)
            await asyncio.sleep(later_s)
            if job.poll() is not None:
                raise NightFailed("the night was over before the kill")
            await asyncio.to_thread(self._kill, kind, job)
            if kind == "driver":
                job = self.start(date)
            report = self._over(await asyncio.to_thread(job.wait, NIGHT_S), date)
        finally:
            job.kill()
            job.wait(10)
        seconds = time.monotonic() - began
        await asyncio.to_thread(self.nodes.hosts)
        found = await ends(self.nodes.url, group)
        other = [
            user for user, end, wanted in zip(group, found, self.undisturbed, strict=True) if end != wanted
        ]
        if not other:
            await forget(self.nodes.url, group)
        return Hit(
            kind=kind, seen=seen, users=self.users, done=report["users"]["done"], seconds=seconds, other=other
        )

    # the job

    def start(self, date: str) -> subprocess.Popen[bytes]:
        """The job, as ``ray job submit`` starts it on the head node."""
        words = [
            sys.executable, "-m", "jobs.nightly", "--config", str(self.folder / "night.toml"),
            "--data", str(self.nodes.data), "--date", date, "--now", NOW.isoformat(), "--report", str(self.folder),
        ]  # fmt: skip
        environment = {**os.environ, "RAY_ADDRESS": self.nodes.cluster.address}
        with (self.folder / f"{date}.log").open("ab") as log:
            return subprocess.Popen(
                words, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def _date(self) -> str:
        return f"2026-03-{self.number + 1:02d}"

    def _over(self, status: int, date: str) -> dict[str, Any]:
        """The report of a night that every user got through."""
        if status:
            log = (self.folder / f"{date}.log").read_text(encoding="utf-8")
            raise NightFailed(f"the job ended with {status}:\n{log[-4000:]}")
        report: dict[str, Any] = json.loads((self.folder / f"night-{date}.json").read_text(encoding="utf-8"))
        if report["users"]["failed"] or report["users"]["done"] < self.users:
            raise NightFailed(f"not every user was reached: {report['users']}")
        return report

    async def _wait_for(self, date: str, moment: int, job: subprocess.Popen[bytes]) -> int:
        """Until the checkpoints tell of so many users; how many it is then."""
        run, deadline = NightRun(date=date, now=NOW, since=date, shards=SHARDS), time.monotonic() + NIGHT_S
        async with self._ledger() as ledger:
            settings = load_settings(self.folder / "night.toml")
            night = build_night(settings, ledger, reach(settings, str(self.nodes.data), ledger))
            while time.monotonic() < deadline and job.poll() is None:
                seen = sum([(await night.progress(run, shard)).seen for shard in range(SHARDS)])
                if seen >= max(moment, 1):  # so that the workers are there
                    return seen
                await asyncio.sleep(LOOK_S)
        log = (self.folder / f"{date}.log").read_text(encoding="utf-8")
        raise NightFailed(f"{moment} users were never seen to:\n{log[-4000:]}")

    @asynccontextmanager
    async def _ledger(self) -> AsyncIterator[Ledger]:
        settings = load_settings(self.folder / "night.toml")
        ledger = build_ledger(settings, self.nodes.data)
        try:
            await ledger.open(embedder_info(settings))
            yield ledger
        finally:
            await ledger.close()

    # what is killed

    def _kill(self, kind: str, job: subprocess.Popen[bytes]) -> None:
        if kind == "driver":
            job.kill()
            job.wait(10)
        elif kind == "host":
            hosts = self.nodes.hosts()
            psutil.Process(hosts[self.chance.choice(sorted(hosts))]["pid"]).kill()
        else:
            self.nodes.cluster.remove_node(self._busy_node(), False)

    def _busy_node(self) -> Any:
        """A worker node on which a shard of the night is under way."""
        busy = {self.nodes.node_of(pid) for pid in working()}
        found = [node for node in self.nodes.cluster.worker_nodes if node in busy]
        if not found:
            raise NightFailed("no shard is under way on a node that may go")
        return self.chance.choice(found)

    def _two_nodes(self) -> None:
        """As many nodes for hosts as at the begin."""
        while len(self.nodes.cluster.worker_nodes) < 2:
            self.nodes.cluster.add_node(
                num_cpus=2, resources={"user_host": 4}, object_store_memory=STORE_BYTES
            )


def working() -> list[int]:
    """The processes of this user's clusters that work on a shard."""
    return [
        process.pid for process in psutil.process_iter(["cmdline"]) if TASK in " ".join(process.info["cmdline"] or ())
    ]  # fmt: skip


def toml_of(document: dict[str, Any]) -> str:
    """A configuration of sections with plain values."""
    lines = []
    for section, values in document.items():
        lines += [f"[{section}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items()), ""]
    return "\n".join(lines)
