"""Taking away: everything of a user, and what has outlived its time."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from hermes_memory.adapters import ledger_codec as codec
from hermes_memory.adapters.redis_ledger import registry, rows
from hermes_memory.adapters.redis_ledger.layout import SHARDS, kinds
from hermes_memory.adapters.redis_ledger.store import Store
from hermes_memory.core.ids import UserKey
from hermes_memory.errors import Fenced, VersionConflict
from hermes_memory.ports.ledger import ErasureReceipt

_HOUR_US = 3_600_000_000
SWEEP_ROWS = 500  # by one run of the script, so that others wait only briefly
SWEEP_USERS = 16  # looked at together
DUE_PAGE = 1_000
_NOTHING = ErasureReceipt(
    memories=0, vectors=0, turns=0, audit=0, jobs=0, profile_slots=0, remaining=0, version=0
)


async def erase(
    store: Store, key: UserKey, expected_version: int, epoch: int, operation_id: str, at: datetime
) -> ErasureReceipt:
    """Erase in one script, then take away what names the user in other slots."""
    layout = store.layout
    tag = layout.tag(key)
    shard = layout.shard(layout.shard_of(tag))
    await store.refresh()  # another model may have come: its vectors go too
    keys = store.keys(tag, meta=True)
    if store.link.cluster:  # before the user's own keys, so that a sweep finds what is left half done
        lists = kinds(["outbox"]) if store.feeds_index else ""
        await store.link.script("announce", shard, [tag, str(key), lists, 0, ""])
    else:
        keys += shard
    values = [
        expected_version, epoch, layout.operation(key, operation_id), codec.micros(at), int(store.feeds_index),
        store.ttls_ms[0], tag, str(key),
    ]  # fmt: skip
    receipt = _receipt(await store.link.script("erase", keys, values), epoch, expected_version)
    left = await free(store, tag, 0)  # the owner erases: no commit is on its way
    return dataclasses.replace(receipt, remaining=receipt.remaining + left)


def _receipt(reply: Sequence[Any], epoch: int, expected_version: int) -> ErasureReceipt:
    kind = reply[0]
    if kind == b"fenced":
        raise Fenced(epoch, int(reply[1]))
    if kind == b"conflict":
        raise VersionConflict(expected_version, int(reply[1]))
    if kind == b"unknown":
        return _NOTHING
    if kind == b"ok":
        return codec.ERASURE.validate_json(reply[1])
    known, erasure = rows.receipt(reply[1])
    if erasure is None:
        return dataclasses.replace(_NOTHING, version=known.version)
    return codec.ERASURE.validate_json(erasure)


async def free(store: Store, tag: str, grace: int) -> int:
    """Take away what names an erased user in other slots; returns how much of it is left.

    ``grace``: for how many seconds an announcement of the user is taken for one of a commit that is on its way.
    """
    freeing = store.layout.of_user(tag, "freeing")
    entries = [entry.decode("utf-8") for entry in await store.link.command("SMEMBERS", freeing)]
    if not entries:
        return 0
    by_kind: dict[str, list[str]] = {"n": [], "s": [], "j": []}
    for entry in entries:
        by_kind[entry[0]].append(entry[2:])
    # A name that is announced meanwhile is that of a user who comes back.
    left = sum([await registry.unlist(store, UserKey.parse(name), grace=grace) for name in by_kind["n"]])
    pointer = store.layout.pointer
    # On one node a binding that was made anew meanwhile is seen in the same step.
    proof = [] if store.link.cluster else [freeing]
    await store.link.scripts(
        "free", [([pointer("s", of), *proof], [f"{tag}:", f"s:{of}"]) for of in by_kind["s"]]
    )
    await store.link.commands([("HDEL", pointer("j", of), tag) for of in by_kind["j"]])
    done = [entry for entry in entries if not (left and entry[0] == "n")]
    if done:
        await store.link.command("SREM", freeing, *done)
    return left + int(await store.link.command("SCARD", freeing))


async def sweep(store: Store, now: datetime, turns_hours: float, operations_hours: float) -> int:
    """Visit every user that is due; returns how many turns and operations went."""
    now_us = codec.micros(now)
    before = (now_us - round(turns_hours * _HOUR_US), now_us - round(operations_hours * _HOUR_US))
    visits = await _due(store, *before)
    removed = 0
    for start in range(0, len(visits), SWEEP_USERS):
        chunk = visits[start : start + SWEEP_USERS]
        removed += sum(await asyncio.gather(*(_visit(store, *each, before) for each in chunk)))
    return removed


async def _due(store: Store, turns_us: int, operations_us: int) -> list[tuple[int, str]]:
    """Shard and tag of all users that may have something older."""
    found: set[tuple[int, str]] = set()
    parts = (("due_turns", turns_us), ("due_ops", operations_us))
    waiting = [(number, part, us, 0) for number in range(SHARDS) for part, us in parts]
    while waiting:
        pages = await store.link.commands([_page_of(store, *place) for place in waiting])
        further = []
        for (number, part, us, offset), page in zip(waiting, pages, strict=True):
            found.update((number, tag.decode("ascii")) for tag in page)
            if len(page) == DUE_PAGE:
                further.append((number, part, us, offset + DUE_PAGE))
        waiting = further
    return sorted(found)


def _page_of(store: Store, number: int, part: str, before_us: int, offset: int) -> tuple[Any, ...]:
    due = store.layout.of_shard(number, part)
    return "ZRANGEBYSCORE", due, "-inf", f"({before_us}", "LIMIT", offset, DUE_PAGE


async def _visit(store: Store, number: int, tag: str, before: tuple[int, int]) -> int:
    """Sweep one user, and note when it is due next."""
    marks = store.layout.of_shard(number, "marks")
    mark = await store.link.command("HGET", marks, tag)
    keys = store.keys(tag)
    removed = 0
    while True:
        turns, operations, next_operation, next_turn, freeing = await store.link.script(
            "sweep", keys, [*before, SWEEP_ROWS]
        )
        removed += turns + operations
        if max(turns, operations) < SWEEP_ROWS:
            break
    if freeing:
        await free(store, tag, registry.grace_s(store))
    seen = [tag, mark or b"", registry.grace_s(store)]
    await store.link.script("settle_due", store.layout.shard(number), [*seen, next_operation, next_turn])
    return int(removed)
