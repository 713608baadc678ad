"""The faults: each is injected into a running world, and over when its own harm is undone."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx

from hermes_memory.app.commands import Incoming, Ingest
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Role
from hermes_memory.errors import Fenced, LeaseLost, LedgerUnavailable, Overloaded
from tests.chaos.checks import NAMESPACE
from tests.chaos.journal import Journal
from tests.chaos.proxy import Fate
from tests.chaos.world import DISTILLER, HOST, HOSTS, INGRESS, World

SCRIPT = b"EVALSHA"  # what every commit starts with
STOPPED_S = 4.0  # longer than a lease and than the timeout of a call
STALLED_S = 1.5
AWAY_S = 3.0
ROGUE_WRITES = 6


@dataclass(frozen=True, slots=True)
class Fault:
    """``weight`` is its share of a campaign; ``on_process``: it kills, stops or removes a process or a node."""

    kind: str
    inject: Callable[[Scene], Awaitable[None]]
    weight: float
    on_process: bool = False


@dataclass(frozen=True, slots=True)
class Scene:
    """What a fault may touch."""

    world: World
    journal: Journal
    users: list[str]
    chance: random.Random
    rogue: Any  # a UserHost of its own on the same ledger, past the relay


async def _kill(scene: Scene, title: str) -> None:
    pids = await asyncio.to_thread(scene.world.pids, title)
    if pids:
        _send(scene.chance.choice(pids), signal.SIGKILL)


async def _freeze_process(scene: Scene, title: str) -> None:
    pids = await asyncio.to_thread(scene.world.pids, title)
    if not pids:
        return
    pid = scene.chance.choice(pids)
    _send(pid, signal.SIGSTOP)
    await asyncio.sleep(STOPPED_S)
    _send(pid, signal.SIGCONT)


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # its supervisor was quicker
        os.kill(pid, number)


async def kill_host(scene: Scene) -> None:
    """A host dies with its users in memory."""
    await _kill(scene, HOST)


async def stop_host(scene: Scene) -> None:
    """A host stands still for longer than its lease and then goes on as if nothing had been."""
    await _freeze_process(scene, HOST)


async def kill_ingress(scene: Scene) -> None:
    """A replica dies with requests in flight."""
    await _kill(scene, INGRESS)


async def stop_ingress(scene: Scene) -> None:
    """A replica stands still."""
    await _freeze_process(scene, INGRESS)


async def kill_distiller(scene: Scene) -> None:
    """The extraction dies with batches in flight."""
    await _kill(scene, DISTILLER)


async def kill_redis(scene: Scene) -> None:
    """The ledger dies and comes back from its append-only file."""
    await asyncio.to_thread(scene.world.redis.kill)
    await asyncio.sleep(scene.chance.uniform(0, 1))
    await asyncio.to_thread(scene.world.redis.start)


async def stop_redis(scene: Scene) -> None:
    """The ledger stands still for longer than a call may take."""
    _send(scene.world.redis.pid, signal.SIGSTOP)
    await asyncio.sleep(AWAY_S)
    _send(scene.world.redis.pid, signal.SIGCONT)


async def kill_weaviate(scene: Scene) -> None:
    """The index dies and comes back."""
    await asyncio.to_thread(scene.world.weaviate.kill)
    await asyncio.sleep(scene.chance.uniform(0, 2))
    await asyncio.to_thread(scene.world.weaviate.start)


async def stop_weaviate(scene: Scene) -> None:
    """The index does not answer for a while."""
    _send(scene.world.weaviate.pid, signal.SIGSTOP)
    await asyncio.sleep(AWAY_S)
    _send(scene.world.weaviate.pid, signal.SIGCONT)


async def remove_node(scene: Scene) -> None:
    """A node goes with whatever runs on it; another one comes."""
    world = scene.world
    node = world.nodes.pop(scene.chance.randrange(len(world.nodes)))
    await asyncio.to_thread(world.cluster.remove_node, node, allow_graceful=False)
    world.nodes.append(world.add_node())  # Ray wants its main thread


async def cut(scene: Scene) -> None:
    """Every connection to the ledger is cut at once."""
    await asyncio.to_thread(scene.world.relay.cut)


async def cut_mid_commit(scene: Scene) -> None:
    """Half a commit arrives."""
    await _doom(scene, Fate.CUT_MIDWAY)


async def lose_reply(scene: Scene) -> None:
    """A commit is applied and its reply is lost."""
    await _doom(scene, Fate.LOSE_REPLY)


async def _doom(scene: Scene, fate: Fate) -> None:
    relay = scene.world.relay
    before = relay.struck
    await asyncio.to_thread(relay.doom, SCRIPT, fate, scene.chance.randint(1, 4))
    for _ in range(40):
        if relay.struck > before:
            break
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.2)
    await asyncio.to_thread(relay.spare)


async def stall(scene: Scene) -> None:
    """Nothing comes through to the ledger for a while."""
    await asyncio.to_thread(scene.world.relay.stall)
    await asyncio.sleep(scene.chance.uniform(0.3, STALLED_S))
    await asyncio.to_thread(scene.world.relay.spare)


async def refuse(scene: Scene) -> None:
    """The ledger accepts no connection for a while."""
    await asyncio.to_thread(scene.world.relay.refuse)
    await asyncio.sleep(scene.chance.uniform(0.3, STALLED_S))
    await asyncio.to_thread(scene.world.relay.spare)


async def two_owners(scene: Scene) -> None:
    """Another host believes that it owns a user and writes, while the user's own host goes on."""
    user = scene.chance.choice(scene.users)
    for _ in range(ROGUE_WRITES):
        word = f"{user}xr{uuid.uuid4().hex[:8]}"
        command = Ingest(
            session_id=f"s-{user}-rogue",
            messages=(
                Incoming(
                    role=Role.USER, content=f"I saw a comet beside {word}.", id=f"m-{word}",
                    created_at=datetime.now(UTC),
                ),
            ),
            timezone="UTC",
            scene=None,
        )  # fmt: skip
        before = scene.journal.rounds[user]
        try:
            await scene.rogue.execute(UserKey(NAMESPACE, user), command, f"rogue-{word}")
        except (Fenced, LeaseLost, LedgerUnavailable, Overloaded):
            await asyncio.sleep(0.05)  # refused, as it should be; or the ledger has troubles of its own
        else:
            if scene.journal.rounds[user] == before and user not in scene.journal.erasing:
                scene.journal.acknowledge(user, f"m-{word}", word, before)


async def resize(scene: Scene) -> None:
    """The pool of hosts grows or shrinks, and users move."""
    hosts = scene.chance.choice([HOSTS - 1, HOSTS, HOSTS + 1])
    async with httpx.AsyncClient(base_url=scene.world.url, timeout=30, trust_env=False) as http:
        for _ in range(20):
            try:
                answer = await http.post("/v1/admin/hosts", json={"hosts": hosts})
            except httpx.HTTPError:
                await asyncio.sleep(0.3)
                continue
            if answer.is_success:
                return
            await asyncio.sleep(0.3)


FAULTS = (
    Fault("host killed", kill_host, 24, on_process=True),
    Fault("host stopped", stop_host, 8, on_process=True),
    Fault("ingress replica killed", kill_ingress, 10, on_process=True),
    Fault("ingress replica stopped", stop_ingress, 4, on_process=True),
    Fault("distiller replica killed", kill_distiller, 5, on_process=True),
    Fault("redis killed", kill_redis, 10, on_process=True),
    Fault("redis stopped", stop_redis, 4, on_process=True),
    Fault("weaviate killed", kill_weaviate, 3, on_process=True),
    Fault("weaviate stopped", stop_weaviate, 4, on_process=True),
    Fault("node removed", remove_node, 3, on_process=True),
    Fault("connections cut", cut, 50),
    Fault("cut mid-commit", cut_mid_commit, 50),
    Fault("reply lost", lose_reply, 60),
    Fault("ledger stalled", stall, 22),
    Fault("ledger refused", refuse, 16),
    Fault("two owners", two_owners, 30),
    Fault("pool resized", resize, 12),
)


def plan(number: int, seed: int) -> list[Fault]:
    """``number`` faults in the shares of their weights, each kind at least once if there is room, shuffled."""
    whole = sum(fault.weight for fault in FAULTS)
    chosen = [fault for fault in FAULTS for _ in range(max(1, round(number * fault.weight / whole)))]
    chance = random.Random(seed)
    chance.shuffle(chosen)
    chosen += chance.choices(FAULTS, k=max(0, number - len(chosen)))
    kept = chosen[:number]
    kinds = [fault.kind for fault in kept]
    for fault in FAULTS:  # one that was cut off takes the place of one that is there twice
        twice = next((n for n in reversed(range(len(kept))) if kinds.count(kinds[n]) > 1), None)
        if fault.kind not in kinds and twice is not None:
            kept[twice], kinds[twice] = fault, fault.kind
    return kept
