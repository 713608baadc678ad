"""How well the embedded extractor tells what is to be remembered, and whether all it keeps is grounded.

What is measured is what would be stored: the rule extractor behind the entry checks of ``core.bounded``; memories of
any scope count, those of user scope are reported apart. English: ``bench.persona_chats`` (labels, halves, coverage).
Two floors read the same utterances: everything kept verbatim, and what holds the word "I" or "my" kept verbatim.
Grounding: ``bench.grounding`` over all data sets. The data is read from ``DATA_DIR`` (default ``../shared/data``).
"""

from __future__ import annotations

import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any

from bench.grounding import DATA_DIR, Sweep, sweep
from bench.persona_chats import Utterance, covered, halves, utterances
from bench.report import Limit, Report, table
from bench.stack import Say
from hermes_memory.adapters.dimension_file import load_dimensions
from hermes_memory.adapters.grounding_file import load_grounding
from hermes_memory.adapters.rule_extractor import RuleExtractor, load_rule_extractor
from hermes_memory.config import load_settings
from hermes_memory.core.bounded import Entrance, refusal
from hermes_memory.core.candidate import Candidate, ExtractionRequest
from hermes_memory.core.dimensions import Dimensions
from hermes_memory.core.model import Scope, Turn
from hermes_memory.core.rules import EntryRules
from hermes_memory.core.scope import settled_scope

PERSONA = DATA_DIR / "msc_persona" / "session_1_valid.jsonl"
LIMITS = (
    Limit("macro_f1_lost", 0.18, "1 − macro-F1 of \"something to remember or not\", second half"),
    Limit("false_alarms", 0.25, "1 − specificity, second half"),
    Limit("facts_lost", 0.35, "labelled facts not covered, second half"),
    Limit("ungrounded", 1, "memories not grounded in their turn, all data sets"),
    Limit("turn_ms", 1.0, "median ms to read a turn"),
)  # fmt: skip
SHOWN = 400  # misses kept in the file, of the first half only
QUICK = 30  # dialogues
_SELF = re.compile(r"\b(?:i|my)\b", re.IGNORECASE)
NOTE = "note"
_LOOSE = frozenset({NOTE, "event", "opinion"})  # kept in the user's own words


@dataclass(frozen=True, slots=True)
class Kept:
    """What would be stored from one utterance."""

    texts: tuple[str, ...]
    user_scope: bool
    typed: bool
    ms: float


@dataclass(frozen=True, slots=True)
class Score:
    """The figures of one reader on one part of the utterances; shares in [0, 1]."""

    reader: str
    utterances: int
    positive: float
    precision: float
    recall: float
    specificity: float
    macro_f1: float
    coverage: float
    typed: float  # of the utterances kept, those with a statement that is more than the user's own words
    user_scope: float  # of the utterances kept, those with a memory of user scope


Reader = Callable[[Utterance], Kept]


def run(*, quick: bool, say: Say) -> Report:
    """Read the persona chats, then every data set for grounding."""
    report = Report("extraction")
    reader = Embedded()
    found = utterances(PERSONA)
    found = [one for one in found if not quick or one.dialogue % (500 // QUICK) == 0]
    first, second = halves(found)
    say(f"reading {len(found)} utterances")
    parts = {"first half": first, "second half": second}
    kept = {name: [reader.kept(one) for one in part] for name, part in parts.items()}
    scores = {name: [*_floors(part), score("rules", part, kept[name])] for name, part in parts.items()}
    times = [item.ms for items in kept.values() for item in items]
    say("looking every span up")
    swept = sweep(reader.extractor, reader.refuses, 20 if quick else 1)
    last = scores["second half"][-1]
    report.figures = {
        "macro_f1_lost": 1 - last.macro_f1,
        "false_alarms": 1 - last.specificity,
        "facts_lost": 1 - last.coverage,
        "ungrounded": sum(item.ungrounded for item in swept),
        "turn_ms": statistics.median(times),
    }
    report.tables = [*(_table(name, rows) for name, rows in scores.items()), _swept(swept), _speed(times)]
    report.data = {
        "scores": {name: [asdict(row) for row in rows] for name, rows in scores.items()},
        "grounding": [asdict(item) for item in swept],
        "misses": misses(first, kept["first half"])[:SHOWN],
    }
    return report


class Embedded:
    """The rule extractor behind the entry checks."""

    def __init__(self) -> None:
        self.dimensions: Dimensions = load_dimensions(files("configs") / "dimensions.toml")
        self.extractor: RuleExtractor = load_rule_extractor(self.dimensions)
        self._entry: EntryRules = load_settings().entry
        self._grounding = load_grounding(files("configs") / "words" / "grounding.toml")

    def kept(self, one: Utterance) -> Kept:
        """What would be stored of one utterance, and how long reading it took."""
        request = ExtractionRequest(turns=(one.turn,), context=(one.before,) if one.before else ())
        start = time.perf_counter()
        candidates = self.extractor.read(request).candidates
        spent = (time.perf_counter() - start) * 1000
        stored = [item for item in candidates if self.refuses(item, one.turn) is None]
        return Kept(
            tuple(text for item in stored for text in (item.content, item.object)),
            any(settled_scope(item, None) is Scope.USER for item in stored),
            any(item.dimension not in _LOOSE for item in stored),
            spent,
        )

    def refuses(self, candidate: Candidate, turn: Turn) -> str | None:
        """Why the entry checks refuse a candidate."""
        turns = {(turn.session_id, turn.message_id): turn}
        return refusal(candidate, Entrance(turns, self.dimensions, self._entry, self._grounding))


def score(reader: str, part: Sequence[Utterance], kept: Sequence[Kept]) -> Score:
    """Compare what was kept with the labels."""
    cells = Counter((bool(one.facts), bool(item.texts)) for one, item in zip(part, kept, strict=True))
    hit, lost = cells[True, True], cells[True, False]
    alarm, right = cells[False, True], cells[False, False]
    verdicts = [covered(fact, item.texts) for one, item in zip(part, kept, strict=True) for fact in one.facts]
    counted = [verdict for verdict in verdicts if verdict is not None]
    stored = [item for item in kept if item.texts]
    return Score(
        reader=reader,
        utterances=len(part),
        positive=_share(hit + lost, len(part)),
        precision=_share(hit, hit + alarm),
        recall=_share(hit, hit + lost),
        specificity=_share(right, right + alarm),
        macro_f1=(_f1(hit, alarm, lost) + _f1(right, lost, alarm)) / 2,
        coverage=_share(sum(counted), len(counted)),
        typed=_share(sum(item.typed for item in stored), len(stored)),
        user_scope=_share(sum(item.user_scope for item in stored), len(stored)),
    )


def misses(part: Sequence[Utterance], kept: Sequence[Kept]) -> list[dict[str, Any]]:
    """Utterances of a part that were judged wrongly or whose facts were not covered, every third for variety."""
    wrong = [
        {"context": one.before.content if one.before else "", "said": one.turn.content, "facts": one.facts,
         "stored": item.texts}
        for one, item in zip(part, kept, strict=True)
        if bool(one.facts) != bool(item.texts) or any(covered(fact, item.texts) is False for fact in one.facts)
    ]  # fmt: skip
    return wrong[::3]


def _floors(part: Sequence[Utterance]) -> list[Score]:
    whole = [Kept((one.turn.content,), False, False, 0.0) for one in part]
    own = [item if _SELF.search(item.texts[0]) else Kept((), False, False, 0.0) for item in whole]
    return [score("all verbatim", part, whole), score("I or my, verbatim", part, own)]


def _share(some: int, of: int) -> float:
    return some / of if of else 0.0


def _f1(hit: int, alarm: int, lost: int) -> float:
    return _share(2 * hit, 2 * hit + alarm + lost)


def _table(name: str, rows: Sequence[Score]) -> Any:
    columns = (
        "reader",
        "macro-F1",
        "precision",
        "recall",
        "specificity",
        "facts covered",
        "typed",
        "user scope",
    )
    cells = [
        (
            row.reader,
            *(
                f"{value:.3f}"
                for value in (
                    row.macro_f1,
                    row.precision,
                    row.recall,
                    row.specificity,
                    row.coverage,
                    row.typed,
                    row.user_scope,
                )
            ),
        )
        for row in rows
    ]
    title = f"Persona chats, {name}: {rows[0].utterances} utterances, {rows[0].positive:.0%} with a fact"
    return table(title, columns, cells)


def _swept(swept: Sequence[Sweep]) -> Any:
    rows = [(s.name, s.turns, s.stored, s.user_scope, s.refused, s.ungrounded) for s in swept]
    return table(
        "Grounding: every span looked up",
        ("data set", "turns", "stored", "of user scope", "refused at the entry", "ungrounded"),
        rows,
    )


def _speed(times: Sequence[float]) -> Any:
    cuts = statistics.quantiles(times, n=100)
    return table("Reading a turn, ms", ("", "p50", "p95", "p99"), [("rules", cuts[49], cuts[94], cuts[98])])
