"""A campaign: `python -m tests.chaos --faults 300 --minutes 20`.

Exits 1 when a promise was broken, a fault was not recovered from, or fewer faults were injected than asked for.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

from hermes_memory.app.indexing import indexed
from tests.chaos.checks import account_of, compare_index, wait_until_delivered
from tests.chaos.faults import Fault, Scene, plan
from tests.chaos.journal import Journal
from tests.chaos.load import Crowd
from tests.chaos.report import Injected, save, show, summary
from tests.chaos.world import World, new_run

RECOVERY_S = 60.0  # a fault that is felt for longer fails the campaign
WARM_UP_S = 4.0
PROBES = 6  # users who must all be served for a fault to be over
BREATH_S = 0.3


class NotRecovered(Exception):
    """Users are still not served."""


async def served(http: httpx.AsyncClient, users: list[str]) -> None:
    """Wait until a recall of every one of ``users`` is answered in time."""
    deadline = time.monotonic() + RECOVERY_S
    for user in users:
        while True:
            try:
                answer = await http.post(f"/v1/users/{user}/recall", json={"query": "heron"}, timeout=5)
                if answer.is_success:
                    break
            except httpx.HTTPError:
                pass  # that is what is waited for to end
            if time.monotonic() > deadline:
                raise NotRecovered(user)
            await asyncio.sleep(0.1)


async def campaign(
    world: World, crowd: Crowd, faults: list[Fault], until: float, rogue: Any
) -> list[Injected]:
    """Inject one fault after the other under load."""
    injected: list[Injected] = []
    chance = random.Random(crowd.seed)
    scene = Scene(world, crowd.journal, crowd.names(), chance, rogue)
    async with httpx.AsyncClient(base_url=world.url, trust_env=False) as http:
        for number, fault in enumerate(faults):
            if time.monotonic() > until:
                break
            started = time.monotonic()
            await fault.inject(scene)
            await served(http, chance.sample(scene.users, PROBES))
            took = time.monotonic() - started
            injected.append(Injected(fault.kind, fault.on_process, took))
            print(f"{number + 1}/{len(faults)} {fault.kind}: {took:.1f} s", flush=True)
            await asyncio.sleep(BREATH_S)
    return injected


async def run(world: World, options: argparse.Namespace) -> dict[str, Any]:
    """Load, faults, and the account."""
    from hermes_memory.wiring import (
        build_distiller,
        build_embedder,
        build_host,
        build_index,
        build_ledger,
        embedder_info,
    )  # fmt: skip

    journal, run_id = Journal(), new_run()
    crowd = Crowd(world.url, journal, run_id, options.seed, options.users, options.pause_s)
    direct = world.settings_for(world.redis.port)
    embedder = build_embedder(direct)
    distiller = build_distiller(direct, embedder)
    rogue = build_host("rogue", direct, world.folder, distiller, embedder_info(direct))
    await rogue.start()
    stop, started = asyncio.Event(), time.monotonic()
    playing = asyncio.create_task(crowd.play(stop))
    try:
        await asyncio.sleep(WARM_UP_S)
        until = started + options.minutes * 60
        injected = await campaign(world, crowd, plan(options.faults, options.seed), until, rogue)
    finally:
        stop.set()
        await playing
        await rogue.stop()
    seconds = time.monotonic() - started
    await asyncio.to_thread(world.wait_ready)
    with httpx.Client(base_url=world.url, timeout=60, trust_env=False) as http:
        account = await asyncio.to_thread(account_of, http, crowd.names(), journal)
    ledger = build_ledger(direct, world.folder)
    index = build_index(direct, ledger)
    assert index is not None
    await ledger.open(embedder_info(direct))
    await index.open()
    try:
        await wait_until_delivered(ledger, asyncio.sleep)
        await compare_index(ledger, index, crowd.names(), indexed, account)
    finally:
        await index.close()
        await ledger.close()
    result = summary(injected, account, journal, seconds, options.seed)
    result["broken"] = not account.clean or len(injected) < options.faults
    return result


def main() -> int:
    """Run one campaign and print its tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--faults", type=int, default=300)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--users", type=int, default=24)
    parser.add_argument("--pause-s", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hermes-chaos-") as name:
        world = World.made(Path(name))
        try:
            world.start()
            result = asyncio.run(run(world, options))
        finally:
            world.stop()
    show(result)
    if options.report:
        save(result, options.report)
    return 1 if result["broken"] else 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
