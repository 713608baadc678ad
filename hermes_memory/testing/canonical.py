"""An export without what differs between two runs of one history: ids, versions, and the times at which it ran."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from hermes_memory.core.ids import digest

_COUNTERS = frozenset({"version", "seq"})
# Receipt and run times; what the user's words say of time (``valid_from``) and when they were said stays.
_RUN_TIMES = frozenset(
    {"updated_at", "received_at", "archived_at", "last_access_at", "last_at", "started_at", "expires_at", "asked_at", "at"}
)  # fmt: skip
_CREATED_BY_A_RUN = ("memories", "confirmations")
_NAMES = frozenset(
    {"id", "memory_id", "memory_ids", "message_id", "session_id", "job_id", "asked_in", "rival_of", "merged_into"}
)  # fmt: skip
# Lists in these places are in the order of ids, which means nothing; elsewhere order counts: old before new.
_IN_ORDER_OF_IDS = frozenset({"profile", "attributes"})
_ROUNDS = 3  # of telling records apart by what they name and what names them
_TIME, _SELF = "a time", "itself"


def canonical(export: Mapping[str, Any]) -> dict[str, Any]:
    """The export with ids named after what they stand for, in an order of content; equal for equal histories.

    Versions and sequence numbers are left out. A time that the run made is only known to be there; days of the tally
    and of what was spent are numbered. The audit keeps its order, for it is the order in which things happened.
    """
    plain: dict[str, Any] = _plain(export)
    for part in _CREATED_BY_A_RUN:
        for record in plain.get(part, ()):
            record["created_at"] = _TIME
    plain["tally"] = {
        f"day {number}": plain["tally"][day] for number, day in enumerate(sorted(plain.get("tally", {})), 1)
    }
    spent = plain.get("settings", {}).get("spent")
    if spent:
        spent["day"] = _TIME
    named: dict[str, Any] = _renamed(plain, _names(plain))
    return {part: _in_order(part, value) for part, value in sorted(named.items())}


def _plain(value: Any) -> Any:
    """A copy without counters, whose run times are all the same."""
    if isinstance(value, Mapping):
        return {
            key: _TIME if key in _RUN_TIMES and of is not None else _plain(of)
            for key, of in value.items()
            if key not in _COUNTERS
        }
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _ids(value: Any, named: bool = False) -> Iterator[str]:
    """Every text that stands where an id stands."""
    if isinstance(value, Mapping):
        for key, of in value.items():
            yield from _ids(of, key in _NAMES)
    elif isinstance(value, list):
        for each in value:
            yield from _ids(each, named)
    elif named and isinstance(value, str):
        yield value


def _items(export: Mapping[str, Any]) -> list[Any]:
    """The pieces that say something of ids, each with the place where it is."""
    found: list[Any] = []
    for part, value in export.items():
        if isinstance(value, list):
            found += [{part: each} for each in value]
        elif isinstance(value, dict):
            found += [{part: {key: each}} for key, each in value.items()]
    return found


def _names(export: Mapping[str, Any]) -> dict[str, str]:
    """A name for every id, made of what the records with it say; the ids themselves decide only between equals."""
    items = _items(export)
    ids = set(_ids(export))
    within = [sorted(ids & set(_texts(item))) for item in items]
    labels = dict.fromkeys(ids, "")
    for _ in range(_ROUNDS):
        said: dict[str, list[str]] = {id_: [] for id_ in ids}
        for item, named in zip(items, within, strict=True):
            for id_ in named:
                said[id_].append(_text(_renamed(item, {**labels, id_: _SELF})))
        labels = {id_: digest(*sorted(said[id_]), size=6) for id_ in ids}
    names: dict[str, str] = {}
    taken: dict[str, int] = {}
    for id_ in sorted(ids):
        label = labels[id_]
        taken[label] = taken.get(label, 0) + 1
        names[id_] = f"id {label}" + (f" ({taken[label]})" if taken[label] > 1 else "")
    return names


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from value
        for of in value.values():
            yield from _texts(of)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, str):
        yield value


def _renamed(value: Any, names: Mapping[str, str], unordered: bool = False) -> Any:
    if isinstance(value, Mapping):
        return {
            names.get(key, key): _renamed(of, names, unordered or key in _IN_ORDER_OF_IDS)
            for key, of in value.items()
        }
    if isinstance(value, list):
        renamed = [_renamed(each, names, unordered) for each in value]
        by_id = unordered and all(isinstance(each, str) and each in names for each in value)
        return sorted(renamed) if by_id else renamed
    return names.get(value, value) if isinstance(value, str) else value


def _in_order(part: str, value: Any) -> Any:
    return sorted(value, key=_text) if isinstance(value, list) and part != "audit" else value


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
