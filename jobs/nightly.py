"""The night as a Ray job: ``ray job submit -- python -m jobs.nightly --config cluster``, or ``hermes nightly``.

The driver hands shards to Ray tasks, each of which walks its users through their own hosts. A task whose worker or
node dies is given out again: it goes on from the shard's checkpoint. Run it with the environment of the cluster (the
image that the hosts have); a runtime environment is needed only where the code is not installed there.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from actors.crew import RayCrew
from actors.placement import build_seating
from actors.users import CallRules, SeatedUsers
from hermes_memory.app.night import Night, NightRun
from hermes_memory.config import Settings, document_of, load_settings, settings_of
from hermes_memory.errors import HermesError, OutcomeUnknown
from hermes_memory.ports.ledger import HostPool, Ledger
from hermes_memory.wiring import build_ledger, embedder_info
from jobs.building import Lines, Told, build_night
from jobs.page import write_report

LOOK_S = 1.0  # how often the driver looks how far the shards are

log = logging.getLogger(__name__)


def reach(settings: Settings, data: str, ledger: Ledger) -> SeatedUsers:
    """The way to the users through the hosts of the cluster; one that is not there is made."""
    actors = settings.actors
    crew = RayCrew(document_of(settings), data, actors.node_resource, actors.call_timeout_s)
    rules = CallRules(
        call_timeout_s=actors.call_timeout_s, deadline_s=actors.deadline_s,
        max_in_flight=settings.serve.max_in_flight,
    )  # fmt: skip
    return SeatedUsers(build_seating(actors.placement, HostPool()), crew.connect, rules, ledger.host_pool)


@ray.remote(num_cpus=0, max_retries=0, scheduling_strategy="SPREAD")
def _work(document: dict[str, Any], data: str, run: NightRun, shard: int) -> None:
    """One shard, in a worker of its own. Given out again by the driver, which knows how often it has been."""
    asyncio.run(_shard(settings_of(document), data, run, shard))


async def _shard(settings: Settings, data: str, run: NightRun, shard: int) -> None:
    ledger = build_ledger(settings, Path(data))
    try:
        await ledger.open(embedder_info(settings))
        await build_night(settings, ledger, reach(settings, data, ledger)).shard(run, shard)
    finally:
        await ledger.close()


@dataclass(slots=True)
class Driver:
    """Hands out the shards of one night on a Ray that is connected, and takes the report."""

    settings: Settings
    data: str
    told: Told = lambda _: None
    _tries: dict[int, int] = field(default_factory=dict)

    async def run(self, date: str, now: datetime) -> dict[str, Any]:
        """The report of the night of that date; of one that is over, the one there is.

        Raises:
            OutcomeUnknown: a shard lost more workers than is allowed.
        """
        ledger = build_ledger(self.settings, Path(self.data))
        try:
            await ledger.open(embedder_info(self.settings))
            night = build_night(self.settings, ledger, reach(self.settings, self.data, ledger))
            run = await night.open(date, now)
            if (report := await night.report(run)) is not None:
                return report
            await self._shards(night, run)
            return await night.finish(run)
        finally:
            await ledger.close()

    async def _shards(self, night: Night, run: NightRun) -> None:
        document, waiting = document_of(self.settings), list(reversed(range(run.shards)))
        under_way: dict[Any, int] = {}
        while waiting or under_way:
            while waiting and len(under_way) < self.settings.nightly.workers:
                shard = waiting.pop()
                under_way[_work.remote(document, self.data, run, shard)] = shard
            ended, _ = await asyncio.to_thread(ray.wait, list(under_way), num_returns=1, timeout=LOOK_S)
            for reference in ended:
                shard = under_way.pop(reference)
                if await self._lost(reference, shard):
                    waiting.append(shard)
            for shard in {*under_way.values(), *(set(range(run.shards)) - set(waiting))}:
                self.told(await night.progress(run, shard))

    async def _lost(self, reference: Any, shard: int) -> bool:
        """Whether the worker died before the shard was through. Raises what the shard raised."""
        try:
            await asyncio.to_thread(ray.get, reference)
        except RayTaskError as error:
            cause = error.cause
            raise (cause if isinstance(cause, HermesError) else error) from None
        except RayError as error:
            self._tries[shard] = self._tries.get(shard, 0) + 1
            log.warning("shard %d lost its worker (%s); once more", shard, type(error).__name__)
            if self._tries[shard] > self.settings.nightly.retries:
                raise OutcomeUnknown from None
            return True
        return False


def today(now: datetime) -> str:
    """The date that a night goes by."""
    return now.astimezone(UTC).date().isoformat()


def main(arguments: Sequence[str] | None = None) -> int:
    """The entry point of the job; prints where the report is."""
    parser = argparse.ArgumentParser(prog="python -m jobs.nightly", description="The night over all users.")
    parser.add_argument("--config", type=Path, help="a TOML file, or the name of a shipped one")
    parser.add_argument("--data", default="./data", help="the data directory, of the ledger in a file")
    parser.add_argument("--date", help="of the night, such as 2026-03-02; today's in UTC by default")
    parser.add_argument("--now", type=datetime.fromisoformat, help="the moment that it is about")
    parser.add_argument("--report", type=Path, default=Path("reports"), help="the folder for the report")
    given = parser.parse_args(arguments)
    settings, now = load_settings(given.config), given.now or datetime.now(UTC)
    ray.init(namespace="hermes", ignore_reinit_error=True, logging_level=logging.ERROR)
    data = str(Path(given.data).resolve())
    lines = Lines(settings.nightly.shards, lambda line: print(line, flush=True))
    try:
        report = asyncio.run(Driver(settings, data, lines.tell).run(given.date or today(now), now))
    except HermesError as error:
        print(f"{error.code}: {error.detail}", file=sys.stderr)
        return 2
    print(json.dumps(report["users"]), flush=True)
    print(f"report: {write_report(report, given.report)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
