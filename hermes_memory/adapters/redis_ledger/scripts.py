"""The scripts: Lua files, put together with what they share and the names of their keys."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources

from hermes_memory.adapters.redis_ledger.layout import KINDS, SHARD_PARTS, USER_PARTS
from hermes_memory.core.model import MEANING_FIELDS

_SHARED = {
    "announce": ("reader", "announcing"),
    "bury": ("reader", "announcing"),
    "unlist": ("marks",),
    "settle_due": ("marks",),
    "commit": ("reader", "model", "announcing", "frozen"),
    "erase": ("reader", "announcing"),
    "activate": ("reader", "model"),
    "documents": ("reader", "model"),
    "touch": ("reader",),
    "put_note": ("reader",),
    "claim": ("reader",),
    "begin": ("reader",),
    "put_pack": ("reader", "model"),
    "packs": ("reader", "model"),
    "put_passages": ("reader", "target"),
    "put_embedded": ("reader", "target"),
    "switch": ("reader", "target"),
}
_OF_A_USER = frozenset(
    [
        *("commit", "erase", "activate", "touch", "sweep", "turns", "documents", "bury", "ack"),
        *("put_embedded", "unembedded", "progress"),
    ]
)
_PARTS = frozenset(part for parts in _SHARED.values() for part in parts)
_IDENTITY = ("id", "namespace", "user_id")


@dataclass(frozen=True, slots=True)
class Script:
    """Lua source and the digest by which a server that has it can be asked to run it."""

    name: str
    source: str
    sha: str


@cache
def script(name: str) -> Script:
    """The script of that name."""
    parts = [_constants()]
    if name in _OF_A_USER:
        parts.append(f"local {', '.join(USER_PARTS)} = unpack(KEYS)\n")
    parts += [_read(part) for part in (*_SHARED.get(name, ()), name)]
    source = "".join(parts)
    return Script(name, source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest())


def load_scripts() -> None:
    """Read all of them, so that none is read from disk when it is needed first."""
    for entry in resources.files(__package__).joinpath("scripts").iterdir():
        name = entry.name.removesuffix(".lua")
        if name not in _PARTS:
            script(name)


def _constants() -> str:
    meaning = ", ".join(f"'{field}'" for field in (*_IDENTITY, *MEANING_FIELDS))
    letters = ", ".join(f"'{letter}'" for letter in KINDS.values())
    return (
        f"local USER_KEYS, SHARD_KEYS = {len(USER_PARTS)}, {len(SHARD_PARTS)}\n"
        f"local KINDS, MEANING = {{{letters}}}, {{{meaning}}}\n"
    )


def _read(name: str) -> str:
    return resources.files(__package__).joinpath("scripts", f"{name}.lua").read_text(encoding="utf-8")
