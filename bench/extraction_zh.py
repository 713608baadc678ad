"""How well the embedded extractor reads Chinese: daily-life messages that questions rest on, among chit-chat.

What is measured is what would be stored: each message masked as the product masks it, read alone by the rule extractor
and put through the entry checks of ``core.bounded``. A message *yields* when a candidate passes; where it would reach is
what ``core.scope`` settles. Targets are the messages that the questions of ``memdaily`` rest on; chit-chat are its
turns ``x:…``, which hold true statements about the speaker too and are judged as a whole. Rules are developed on the
first half of the users; of the second half nobody sees more than these figures.
The data is read from ``DATA_DIR`` (default ``../shared/data``). ``python -m bench.extraction_zh`` shows misses.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from rich.console import Console

from bench.report import Limit, Report, table
from bench.stack import Say
from hermes_memory.adapters.detectors import SecretDetector
from hermes_memory.adapters.dimension_file import load_dimensions
from hermes_memory.adapters.grounding_file import load_grounding
from hermes_memory.adapters.rule_extractor import load_rule_extractor
from hermes_memory.config import load_settings
from hermes_memory.core.bounded import Entrance, refusal
from hermes_memory.core.candidate import Candidate, ExtractionRequest
from hermes_memory.core.model import Category, Role, Scope, Turn
from hermes_memory.core.privacy import mask
from hermes_memory.core.reasons import Reason
from hermes_memory.core.scope import settled_scope
from hermes_memory.core.text import normal

ROOT = Path(__file__).parent.parent
USERS = (ROOT / os.environ.get("DATA_DIR", "../shared/data") / "memdaily" / "users.jsonl").resolve()
CHITCHAT = "x"
ZONE = "Asia/Shanghai"
LIMITS = (
    Limit("targets_lost", 0.10, "target messages that yield nothing, all users"),
    Limit("targets_lost_second", 0.10, "target messages that yield nothing, second half"),
    Limit("chitchat_kept", 0.2501, "chit-chat turns that yield a memory at user scope, all users (at most 25 %)"),
    Limit("ungrounded", 1, "memories whose words do not stand in their turn"),
    Limit("turn_ms", 1.0, "median ms to read a turn"),
)  # fmt: skip
QUICK = 10  # every so many users
_AS_SAID = frozenset({"note", "opinion"})  # dimensions of what is kept in the user's own words
_FIGURES = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Message:
    """One message of one user. ``kind``: roles, events, items, places, or x for chit-chat."""

    half: str
    kind: str
    target: bool
    turn: Turn


@dataclass(frozen=True, slots=True)
class Yield:
    """What would be stored of a message, and how it reads; ``ms`` is the time to read it."""

    message: Message
    stored: tuple[Candidate, ...]
    ungrounded: int
    ms: float

    @property
    def typed(self) -> bool:
        """Whether something was understood: more than a sentence kept as it stands, or a judgement."""
        return any(item.dimension not in _AS_SAID for item in self.stored)

    @property
    def factual(self) -> bool:
        """Whether one of them is no episode: a fact, a preference or a state."""
        return any(item.category is not Category.EVENT for item in self.stored)

    @property
    def lasting(self) -> bool:
        """Whether a memory reaches user scope."""
        return any(settled_scope(item, None) is Scope.USER for item in self.stored)


@dataclass(frozen=True, slots=True)
class Row:
    """Shares of some messages, in [0, 1]."""

    what: str
    messages: int
    kept: float
    typed: float
    factual: float
    user_scope: float
    of_others: float  # about someone or something other than the user


def run(*, quick: bool, say: Say) -> Report:
    """Read every message; with ``quick`` those of every tenth user."""
    if not USERS.exists():
        raise SystemExit(f"extraction-zh: no {USERS.name} in {USERS.parent}; set DATA_DIR")
    reader = Reader()
    messages = list(read_messages(QUICK if quick else 1))
    say(f"reading {len(messages)} messages")
    found = [reader.read(message) for message in messages]
    targets, second = _targets(found), [item for item in _targets(found) if item.message.half == "second"]
    chat = [item for item in found if item.message.kind == CHITCHAT]
    times = [item.ms for item in found]
    report = Report("extraction-zh")
    report.figures = {
        "targets_lost": 1 - _share(item.stored for item in targets),
        "targets_lost_second": 1 - _share(item.stored for item in second),
        "chitchat_kept": _share(item.lasting for item in chat),
        "ungrounded": float(sum(item.ungrounded for item in found)),
        "turn_ms": statistics.median(times),
    }
    rows = [*_rows(found)]
    columns = ("messages", "number", "kept", "typed", "factual", "user scope", "of others")
    report.tables = [
        table("Messages that yield a memory, share", columns, [tuple(asdict(row).values()) for row in rows]),
        table("Time to read a turn, ms", ("", "median", "p95", "p99"), [("all turns", *_spread(times))]),
    ]
    report.data = {"rows": [asdict(row) for row in rows]}
    return report


class Reader:
    """The rule extractor behind masking and the entry checks."""

    def __init__(self) -> None:
        self._dimensions = load_dimensions(files("configs") / "dimensions.toml")
        self._extractor = load_rule_extractor(self._dimensions)
        self._entry = load_settings().entry
        self._grounding = load_grounding(files("configs") / "words" / "grounding.toml")
        self._detector = SecretDetector()

    def read(self, message: Message) -> Yield:
        """What would be stored of ``message``."""
        said = message.turn.content
        turn = replace(message.turn, content=mask(said, self._detector.find(said)))
        start = time.perf_counter()
        candidates = self._extractor.read(ExtractionRequest(turns=(turn,))).candidates
        spent = (time.perf_counter() - start) * 1000
        room = Entrance(
            {(turn.session_id, turn.message_id): turn}, self._dimensions, self._entry, self._grounding
        )
        verdicts = [(item, refusal(item, room)) for item in candidates]
        loose = sum(reason is Reason.UNGROUNDED or not _stands(item, turn) for item, reason in verdicts)
        return Yield(message, tuple(item for item, reason in verdicts if reason is None), loose, spent)


def read_messages(step: int = 1) -> Iterator[Message]:
    """The messages of every ``step``-th user, in the order of the file."""
    lines = USERS.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        if number % step:
            continue
        user = json.loads(line)
        targets = {name for question in user["questions"] for name in question["target"]}
        for index, said in enumerate(user["turns"]):
            yield Message(
                half="first" if number < len(lines) // 2 else "second",
                kind=said["id"].partition(":")[0],
                target=said["id"] in targets,
                turn=_turn(user["user"], index, said),
            )


def misses(number: int) -> list[str]:
    """Targets of the first half that yield nothing, then those kept only in the user's own words."""
    reader = Reader()
    found = [reader.read(one) for one in read_messages() if one.half == "first" and one.target]
    lost = [f"lost    {_name(item)}" for item in found if not item.stored]
    loose = [f"as said {_name(item)}" for item in found if item.stored and not item.typed]
    return [*lost, *loose][:number]


def _turn(user: str, index: int, said: dict[str, Any]) -> Turn:
    year, month, day, hour, minute = map(int, _FIGURES.findall(said["time"])[:5])
    when = datetime(year, month, day, hour, minute, tzinfo=ZoneInfo(ZONE))
    return Turn(
        session_id=user, index=index, message_id=said["id"], role=Role.USER, content=said["message"],
        created_at=when, received_at=when, timezone=ZONE,
    )  # fmt: skip


def _rows(found: Sequence[Yield]) -> Iterator[Row]:
    targets = _targets(found)
    for half in ("first", "second"):
        of_half = [item for item in targets if item.message.half == half]
        yield _row(f"targets, {half} half", of_half)
        for kind in sorted({item.message.kind for item in of_half}):
            yield _row(f"  {kind}", [item for item in of_half if item.message.kind == kind])
        other = [item for item in found if item.message.half == half and not item.message.target]
        yield _row(f"other messages, {half} half", [i for i in other if i.message.kind != CHITCHAT])
        yield _row(f"chit-chat, {half} half", [i for i in other if i.message.kind == CHITCHAT])


def _row(what: str, found: Sequence[Yield]) -> Row:
    return Row(
        what,
        len(found),
        _share(item.stored for item in found),
        _share(item.typed for item in found),
        _share(item.factual for item in found),
        _share(item.lasting for item in found),
        _share(any(one.subject != "user" for one in item.stored) for item in found),
    )


def _targets(found: Iterable[Yield]) -> list[Yield]:
    return [item for item in found if item.message.target]


def _stands(candidate: Candidate, turn: Turn) -> bool:
    """Whether span, object and subject stand verbatim in the turn."""
    quote = turn.content[candidate.span.start : candidate.span.end]
    named = candidate.subject == "user" or candidate.subject in turn.content
    return named and bool(quote.strip()) and normal(candidate.object) in normal(quote)


def _share(hits: Iterable[object]) -> float:
    counted = [bool(hit) for hit in hits]
    return sum(counted) / len(counted) if counted else 0.0


def _spread(times: Sequence[float]) -> tuple[float, float, float]:
    cuts = statistics.quantiles(times, n=100)
    return statistics.median(times), cuts[94], cuts[98]


def _name(item: Yield) -> str:
    turn = item.message.turn
    return f"{turn.session_id} {turn.message_id}: {turn.content}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Misses among the targets of the first half.")
    parser.add_argument("--misses", type=int, default=40, help="how many at most")
    for line in misses(parser.parse_args().misses):
        Console().print(line, highlight=False, markup=False)
