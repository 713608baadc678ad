"""``make demo-night``: users with some weeks behind them, a night on a real Ray, and three of them before and after."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import ray

from actors.crew import host_names
from actors.host import NAMESPACE
from hermes_memory import Memory
from hermes_memory.app.commands import GetProfile
from hermes_memory.config import Settings, load_settings
from hermes_memory.wiring import build_ledger, embedder_info
from jobs.building import Lines
from jobs.nightly import Driver, today
from jobs.page import write_report

WEEKS = 10
TURNS = 6  # of each user
SHOWN = 3
SAID = (
    "I'm allergic to peanuts.", "I live in Lisbon.", "I work as a nurse.", "I love hiking.", "I'm a vegetarian.",
    "我住在杭州。", "我对海鲜过敏。", "我喜欢喝美式咖啡。", "Please keep your answers short.", "My dog is called Bruno.",
    "I moved to Porto last week.", "I quit my job at the clinic.", "我最近在学吉他。", "I hate horror movies.",
)  # fmt: skip


def conversations(folder: Path, users: int) -> Iterator[tuple[str, list[str]]]:
    """Each user's name and turns: those of the data where it is, else made up from a few sentences."""
    chats = folder / "msc_persona" / "session_1_valid.jsonl"
    if chats.is_file():
        with chats.open(encoding="utf-8") as lines:
            for number, line in enumerate(islice(lines, users)):
                dialog = json.loads(line)["dialog"]
                told = [turn["text"] for turn in dialog if turn["id"] == "bot_1" and turn["text"].strip()]
                yield f"user-{number:03d}", told[:TURNS]
        return
    for number in range(users):
        yield f"user-{number:03d}", list(islice(cycle(SAID[number % len(SAID) :] + SAID), TURNS))


def load(data: Path, told: Iterator[tuple[str, list[str]]], now: datetime) -> dict[str, Any]:
    """Store the conversations through the product, spread over the weeks before ``now``; three profiles."""
    with Memory.open(data) as memory:
        names = []
        for number, (user, turns) in enumerate(told):
            names.append(user)
            for turn, text in enumerate(turns):
                at = now - timedelta(weeks=WEEKS * (len(turns) - turn) / (len(turns) + 1), minutes=number)
                memory.remember(user, text, session=f"{user}-{turn}", said_at=at, message_id=f"{user}-{turn}")
            if number % 50 == 49:
                print(f"{number + 1} users loaded", flush=True)
        return {user: memory.ask(user, GetProfile()) for user in names[:SHOWN]}


def profiles(data: Path, users: list[str]) -> dict[str, Any]:
    """What is known of these users now."""
    with Memory.open(data) as memory:
        return {user: memory.ask(user, GetProfile()) for user in users}


async def _pool(settings: Settings, data: Path) -> None:
    ledger = build_ledger(settings, data)
    try:
        await ledger.open(embedder_info(settings))
        await ledger.resize_host_pool(settings.actors.hosts)
    finally:
        await ledger.close()


def night(settings: Settings, data: Path, now: datetime) -> dict[str, Any]:
    """The night on a Ray of its own."""
    asyncio.run(_pool(settings, data))
    ray.init(
        address="local", namespace="hermes", num_cpus=2, include_dashboard=False, logging_level=logging.ERROR
    )
    try:
        lines = Lines(settings.nightly.shards, lambda line: print(line, flush=True))
        return asyncio.run(Driver(settings, str(data), lines.tell).run(today(now), now))
    finally:
        stops: list[Any] = [ray.get_actor(name, NAMESPACE).stop.remote() for name in host_names()]
        ray.wait(stops, num_returns=len(stops), timeout=10) if stops else None
        ray.shutdown()


def main() -> None:
    """Load, run, show."""
    parser = argparse.ArgumentParser(prog="python -m jobs.demo_night")
    parser.add_argument("--users", type=int, default=300)
    parser.add_argument("--data-dir", type=Path, default=Path("../shared/data"))
    parser.add_argument("--report", type=Path, default=Path("reports"))
    given = parser.parse_args()
    data, now, settings = (
        Path(tempfile.mkdtemp(prefix="hermes-night-")) / "data",
        datetime.now(UTC),
        load_settings(),
    )
    try:
        before = load(data, conversations(given.data_dir, given.users), now)
        report = night(settings, data, now)
        after = profiles(data, list(before))
        for user, slots in before.items():
            print(f"\n{user}, before:\n{json.dumps(slots, ensure_ascii=False, indent=1)[:1500]}")
            print(f"{user}, after:\n{json.dumps(after[user], ensure_ascii=False, indent=1)[:1500]}")
        print(f"\n{json.dumps(report['users'])}\nreport: {write_report(report, given.report)}", flush=True)
    finally:
        shutil.rmtree(data.parent)


if __name__ == "__main__":
    main()
