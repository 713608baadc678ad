"""Between the domain's values and what the scripts take and give."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from pydantic_core import from_json, to_json

from hermes_memory.adapters import ledger_codec as codec
from hermes_memory.adapters.redis_ledger.layout import Layout, kinds, message, place
from hermes_memory.core.ids import UserKey
from hermes_memory.core.model import Memory, Turn
from hermes_memory.ports.ledger import (
    Commit,
    JobStatus,
    OutboxEntry,
    Receipt,
    Session,
    Settings,
    Snapshot,
    Tally,
)

Row = Sequence[Any]


def table(rows: Iterable[Row]) -> list[Any]:
    """Rows as the scripts read them: their number, then one after the other."""
    listed = list(rows)
    return [len(listed), *(value for row in listed for value in row)]


def commit_values(commit: Commit, layout: Layout, model: Sequence[Any], ttls_ms: Sequence[int]) -> list[Any]:
    """What ``commit.lua`` takes, without the announcement; ``model`` is name, dimension and number."""
    settings = "" if commit.settings is None else codec.dump(codec.SETTINGS, commit.settings)
    return [
        commit.expected_version,
        commit.epoch,
        layout.operation(commit.key, commit.operation_id),
        codec.micros(commit.at),
        codec.dump_result(commit.result),
        settings,
        *model,
        *ttls_ms,
        commit.tally_from or "",
        *_memory_tables(commit, int(model[1])),
        *_conversation_tables(commit),
        *_record_tables(commit),
        *table((f"j:{of}",) for of in job_digests(commit, layout)),
    ]


def _memory_tables(commit: Commit, dimension: int) -> list[Any]:
    return [
        *table((memory.id, *codec.dump_memory(memory)) for memory in commit.memories),
        *table((id_, codec.dump_vector(vector, dimension)) for id_, vector in commit.vectors.items()),
        *table((id_, _inside_json(id_)) for id_ in commit.deleted),
        *table((id_, kind.value) for id_, kind in commit.grants.items()),
    ]


def _inside_json(text: str) -> str:
    return to_json(text).decode("utf-8")[1:-1]


def _conversation_tables(commit: Commit) -> list[Any]:
    return [
        *table(map(_session_row, commit.sessions)),
        *table(map(_turn_row, commit.turns)),
        *table(map(_turn_row, commit.rewritten)),
        *table((place(index, session_id),) for session_id, index in commit.extracted),
        *table((message(*of), to_json(list(known))) for of, known in commit.message_hashes.items()),
    ]


def _record_tables(commit: Commit) -> list[Any]:
    return [
        *table(
            (job.id, codec.dump(codec.JOB, job), int(job.status is JobStatus.DONE)) for job in commit.jobs
        ),
        *table((codec.dump(codec.AUDIT, entry),) for entry in commit.audit),
        *table((alert_id,) for alert_id in commit.seen_to),
        *table((alert.id, codec.dump(codec.ALERT, alert)) for alert in commit.alerts),
        *table((to_json([entry.op, entry.memory_id]),) for entry in commit.outbox),
    ]


def _session_row(session: Session) -> Row:
    return session.id, *codec.dump_session(session)


def _turn_row(turn: Turn) -> Row:
    pending = int(turn.pending)
    return place(turn.index, turn.session_id), codec.dump_turn(turn), codec.micros(turn.received_at), pending


def announcement(commit: Commit, layout: Layout) -> list[Any]:
    """What ``announce.lua`` takes so that the user is found wherever this commit makes it look for."""
    said = (*commit.turns, *commit.rewritten)
    lists = ["users"]
    lists += ["pending"] if any(turn.pending for turn in said) else []
    lists += ["outbox"] if commit.outbox else []
    lists += ["alerts"] if commit.alerts else []
    oldest = min((codec.micros(turn.received_at) for turn in said), default="")
    name = str(commit.key)
    return [layout.tag(commit.key), name, kinds(lists), codec.micros(commit.at), oldest]


def job_digests(commit: Commit, layout: Layout) -> list[str]:
    """Digests of the jobs that the commit writes."""
    return [layout.job(commit.key.namespace, job.id) for job in commit.jobs]


def receipt(known: bytes) -> tuple[Receipt, str | None]:
    """The first answer of an operation, and the JSON of its receipt if it was an erasure."""
    version, kind, answer = known.split(b" ", 2)
    result = codec.load_result(answer.decode("utf-8")) if kind == b"r" else None
    return Receipt(int(version), True, result), answer.decode("utf-8") if kind == b"e" else None


def snapshot(key: UserKey, reply: Sequence[Any], dimension: int) -> Snapshot:
    """The snapshot that an answer of ``activate.lua`` stands for."""
    version, generation, owner, live = (int(part or 0) for part in reply[1:5])
    if not live:
        return Snapshot(key=key, version=version, generation=generation, owner_epoch=owner)
    settings, bodies, beside, embedded, blobs, told, places, said, waiting, jobs, counted = reply[5:]
    sessions = load_sessions(told)
    return Snapshot(
        key=key,
        version=version,
        generation=generation,
        owner_epoch=owner,
        memories=load_memories([body.decode("utf-8") for body in bodies], _lines(beside)),
        vectors=codec.load_vectors(zip(from_json(embedded), blobs, strict=True), dimension),
        sessions=sessions,
        turns=_open_turns(places, said, waiting, sessions),
        jobs=tuple(codec.JOB.validate_json(body) for body in _lines(jobs)),
        settings=codec.SETTINGS.validate_json(settings) if settings else Settings(),
        tally=load_tally(counted),
    )


def tally_table(tally: Tally) -> list[Any]:
    """What was counted, as ``touch.lua`` takes it."""
    return table((f"{day} {name}", number) for day, of in tally.items() for name, number in of.items())


def load_tally(flat: Sequence[bytes]) -> dict[str, dict[str, int]]:
    """The inverse of what ``touch.lua`` keeps."""
    pairs = zip(flat[::2], flat[1::2], strict=True)
    split = ((entry.decode("utf-8").partition(" "), int(number)) for entry, number in pairs)
    return codec.load_tally((day, name, number) for (day, _, name), number in split)


def count_memories(reply: Sequence[Any]) -> int:
    """How many memories an answer of ``activate.lua`` holds."""
    return len(reply[6]) if len(reply) > 6 else 0


def _lines(text: bytes) -> list[str]:
    return text.decode("utf-8").split("\n") if text else []


def load_memories(bodies: Sequence[str], beside: Sequence[str]) -> tuple[Memory, ...]:
    """Memories in order of arrival; ``beside``: number, recalls and time of the last one."""
    numbered = sorted(
        (tuple(map(int, line.split())), body) for body, line in zip(bodies, beside, strict=True)
    )
    return tuple(codec.load_memory(body, count, last_us) for (_, count, last_us), body in numbered)


def load_memory(body: bytes, beside: bytes) -> Memory:
    """One memory."""
    return load_memories([body.decode("utf-8")], [beside.decode("utf-8")])[0]


def load_sessions(told: bytes) -> tuple[Session, ...]:
    """Sessions by id, from lines of a body and a summary in turn."""
    lines = _lines(told)
    found = [codec.load_session(*pair) for pair in zip(lines[::2], lines[1::2], strict=True)]
    return tuple(sorted(found, key=lambda session: session.id))


def load_turns(rows: Iterable[tuple[str, str]], waiting: Iterable[str]) -> list[Turn]:
    """Turns by receipt time, then session, then index, from their places and bodies and the places that wait."""
    pending = set(waiting)
    found = [codec.load_turn(body, of in pending) for of, body in rows]
    return sorted(found, key=lambda turn: (turn.received_at, turn.session_id, turn.index))


def _open_turns(places: bytes, said: bytes, waiting: bytes, sessions: Sequence[Session]) -> tuple[Turn, ...]:
    ended = {session.id for session in sessions if session.ended}
    pending = set(from_json(waiting))
    rows = zip(from_json(places), _lines(said), strict=True)
    kept = [(of, body) for of, body in rows if of in pending or of.partition(":")[2] not in ended]
    return tuple(load_turns(kept, pending))


def outbox_entry(member: bytes, key: UserKey) -> OutboxEntry:
    """What waits for the index, or was buried: then with a reason behind a line feed."""
    entry, _, reason = member.decode("utf-8").partition("\n")
    seq, _, payload = entry.partition(" ")
    op, memory_id = from_json(payload)
    return OutboxEntry(op=op, memory_id=memory_id, seq=int(seq), key=key, reason=reason or None)


def until_us(now: datetime, lease_s: float) -> int:
    """When a lease ends, in microseconds since 1970."""
    return codec.micros(now) + round(lease_s * 1_000_000)
