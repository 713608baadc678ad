"""The lists of users: who there is, whose turns wait, whose entries the index has not seen.

They are in other slots than the users, so that they are written before a user's commit and may name too many users,
never too few (ARCHITECTURE §5). What a list says is checked against the user's own keys, and a stale name leaves it
only if nobody announced since: each announcement leaves another mark.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from hermes_memory.adapters.redis_ledger.layout import KINDS, SHARDS
from hermes_memory.adapters.redis_ledger.store import Store
from hermes_memory.core.ids import UserKey

_GRACE_S = 60  # longer than all attempts of a commit
_LEAST_PAGE = 16  # names asked of a shard at a time
# How a user's own keys tell whether a list is right: a command and what it is asked of.
_PROOF = {
    "users": ("HEXISTS", "head", "live"),
    "pending": ("ZCARD", "pending"),
    "outbox": ("ZCARD", "outbox"),
    "buried": ("ZCARD", "buried"),
    "alerts": ("HLEN", "alerts"),
}
_POSITION = {kind: number for number, kind in enumerate(KINDS)}


async def listed(
    store: Store,
    kind: str,
    namespace: str | None,
    after: str,
    limit: int,
    shard: tuple[int, int] | None = None,
) -> list[UserKey]:
    """Users that a list names rightly, of a namespace or of all, in the order of ``str(key)`` after that text.

    ``shard``: only every so manieth registry.
    """
    first, end = _bounds(namespace)
    numbers = range(SHARDS) if shard is None else range(shard[0], SHARDS, shard[1])
    found: list[UserKey] = []
    place: str | None = max(after, first)
    while place is not None and len(found) < limit:
        names, place = await _page(store, kind, place, end, limit, numbers)
        found += await _right(store, kind, [UserKey.parse(name) for name in names])
    return found[:limit]


def _bounds(namespace: str | None) -> tuple[str, str]:
    if namespace is None:
        return "", "\x7f"  # names are ASCII
    start = quote(namespace, safe="")
    return f"{start}/", f"{start}0"  # "0" is the character after "/"


async def _page(
    store: Store, kind: str, after: str, end: str, limit: int, numbers: Sequence[int]
) -> tuple[list[str], str | None]:
    """The next names of these registries, in order, and where to go on; None at the end."""
    size = max(_LEAST_PAGE, limit * 2 // len(numbers))  # twice its share: most pages need one round
    low, high = f"({after}" if after else "-", f"({end}"
    replies = await store.link.commands(
        [
            ("ZRANGEBYLEX", store.layout.of_shard(number, kind), low, high, "LIMIT", 0, size)
            for number in numbers
        ]
    )
    pages = [[name.decode("ascii") for name in reply] for reply in replies]
    cut = [page[-1] for page in pages if len(page) == size]
    # Beyond the least last name of a cut page, names of that shard may be missing.
    horizon = min(cut, default=None)
    names = sorted(name for page in pages for name in page if horizon is None or name <= horizon)
    return names, horizon


async def _right(store: Store, kind: str, keys: Sequence[UserKey]) -> list[UserKey]:
    """Those of the users that belong in the list; the others are taken out of it."""
    if not keys:
        return []
    tags = [store.layout.tag(key) for key in keys]
    marks = await store.link.commands([_mark(store, tag) for tag in tags])  # before the proof
    proofs = await store.link.commands([_proof(store, kind, tag) for tag in tags])
    stale = [
        _unlisting(store, tag, mark, key, [kind], grace_s(store))
        for key, tag, mark, proof in zip(keys, tags, marks, proofs, strict=True)
        if not proof
    ]
    await store.link.scripts("unlist", stale)
    return [key for key, proof in zip(keys, proofs, strict=True) if proof]


async def unlist(
    store: Store, key: UserKey, kinds: Sequence[str] = tuple(KINDS), *, grace: int | None = None
) -> int:
    """Take a user out of the lists that name it wrongly by now; returns how many name it wrongly still.

    A name that was announced within ``grace`` seconds stays: a commit may be on its way. Who knows better says 0.
    """
    if not kinds:
        return 0
    tag = store.layout.tag(key)
    mark = await store.link.command(*_mark(store, tag))
    proofs = await store.link.commands([_proof(store, kind, tag) for kind in kinds])
    stale = [kind for kind, proof in zip(kinds, proofs, strict=True) if not proof]
    gone = await store.link.script(
        "unlist", *_unlisting(store, tag, mark, key, stale, grace_s(store) if grace is None else grace)
    )
    return 0 if gone else len(stale)


def _unlisting(
    store: Store, tag: str, mark: bytes | None, key: UserKey, kinds: Sequence[str], grace: int
) -> tuple[list[str], list[Any]]:
    shard = store.layout.shard(store.layout.shard_of(tag))
    return shard, [tag, mark or b"", str(key), grace, *(_POSITION[kind] for kind in kinds)]


def grace_s(store: Store) -> int:
    """How long an announcement is trusted: where it is not one step with the commit, that may be on its way."""
    return _GRACE_S if store.link.cluster else 0


def _mark(store: Store, tag: str) -> tuple[str, ...]:
    return "HGET", store.layout.of_shard(store.layout.shard_of(tag), "marks"), tag


def _proof(store: Store, kind: str, tag: str) -> tuple[str, ...]:
    command, part, *more = _PROOF[kind]
    return command, store.layout.of_user(tag, part), *more
