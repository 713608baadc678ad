"""Related and unrelated queries of made-up people: what touches them comes, what does not touch them brings nothing.

Each person's turns (``bench/recall_cases``) are told to the library in one conversation; every query comes in a new one,
with the default configuration.

- **Unrelated** is clean when no memory was ranked into the answer but those that are always in the block (restrictions,
  safety, form of address, frozen identity) and wishes how to be answered, which bear on every query.
- **Related** is answered when the block holds a memory that rests on one of the turns named: its words, one of its
  quotes, or, where the block names only the object of what is always in it, that object.

The limits are held against ``personas.jsonl``. Rules are developed on ``dev.jsonl``: only its misses are printed, those of the
others are in the saved file.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from bench.report import Limit, Report, table
from bench.stack import Say
from bench.telling import kept, ranked, rests_on, tell
from hermes_memory.core.text import one_line
from hermes_memory.memory import Memory

PERSONAS = Path(__file__).parent / "recall_cases" / "personas.jsonl"
DEVELOPMENT = PERSONAS.with_name("dev.jsonl")
LIMITS = (
    Limit("unrelated_clean", at_least=0.97, what="unrelated queries that bring in no preference"),
    Limit("related_answered", at_least=0.95, what="related queries whose block holds what was said"),
)
QUICK = 4  # every fourth person
FINDABLE = {"active", "review"}
UNREADABLE = str.maketrans("<>", "‹›")  # how a block writes what could close it


@dataclass(frozen=True, slots=True)
class Asked:
    """A query with the turns that it is about, or with the kind of thing that is asked instead."""

    text: str
    turns: tuple[str, ...] = ()
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Persona:
    """One person: what was told, and what is asked later."""

    id: str
    language: str
    turns: tuple[tuple[str, str], ...]
    asked: tuple[Asked, ...]
    style: frozenset[str] = frozenset()  # turns that wish how to be answered: they bear on every query


@dataclass(frozen=True, slots=True)
class Outcome:
    """One query. ``kept`` says whether extraction kept a turn named; ``hits`` tell content, score and its parts."""

    persona: str
    language: str
    asked: Asked
    right: bool
    kept: bool
    hits: tuple[tuple[str, float, dict[str, float]], ...]


def run(*, quick: bool, say: Say) -> Report:
    """Tell and ask everything of both sets."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # as in a worker of the server
    test, development = (personas(path)[:: QUICK if quick else 1] for path in (PERSONAS, DEVELOPMENT))
    with tempfile.TemporaryDirectory(prefix="hermes-bench-") as folder, Memory.open(folder) as memory:
        outcomes: list[Outcome] = []
        for one in (*development, *test):
            say(one.id)
            outcomes += outcomes_of(memory, one)
    return report(outcomes, test, development)


def personas(path: Path) -> list[Persona]:
    """The people of the file. Raises ValueError for a query about a turn that is not there."""
    return [_persona(json.loads(line)) for line in path.read_text("utf-8").splitlines() if line.strip()]


def _persona(row: Mapping[str, Any]) -> Persona:
    turns = tuple((turn["id"], turn["text"]) for turn in row["turns"])
    related = [Asked(asked["query"], turns=tuple(asked["turns"])) for asked in row["related"]]
    unrelated = [Asked(asked["query"], kind=asked["kind"]) for asked in row["unrelated"]]
    missing = {name for asked in related for name in asked.turns} - {name for name, _ in turns}
    if missing or not all(asked.turns for asked in related):
        raise ValueError(f"{row['id']}: a related query must name turns that are there")
    style = frozenset(turn["id"] for turn in row["turns"] if turn.get("style"))
    return Persona(row["id"], row["lang"], turns, (*related, *unrelated), style)


def outcomes_of(memory: Memory, one: Persona) -> Iterator[Outcome]:
    """Tell the turns as one conversation that ends, then ask each query in a new one."""
    tell(memory, one.id, f"{one.id}-told", one.turns)
    records = [record for record in memory.memories(one.id) if record["status"] in FINDABLE]
    left = kept(records)
    for number, asked in enumerate(one.asked):
        answer = memory.recall(one.id, asked.text, session=f"{one.id}-{number}")
        wanted = [record for record in records if not set(asked.turns).isdisjoint(rests_on(record))]
        yield Outcome(
            persona=one.id,
            language=one.language,
            asked=asked,
            right=holds(answer, wanted) if asked.turns else clean(answer, one.style),
            kept=not left.isdisjoint(asked.turns),
            hits=tuple((hit["content"], hit["score"], hit["score_parts"]) for hit in ranked(answer)),
        )


def clean(answer: Mapping[str, Any], style: frozenset[str] = frozenset()) -> bool:
    """Whether nothing was ranked into the answer but what is always there or rests on the turns ``style``."""
    return all(hit["always"] or not style.isdisjoint(rests_on(hit)) for hit in ranked(answer))


def holds(answer: Mapping[str, Any], wanted: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the block says one of the memories ``wanted`` (whole records)."""
    always = {hit["id"] for hit in answer["memories"] if hit["always"]}
    return any(
        any(_written(text) in answer["context"] for text in _texts(record, record["id"] in always))
        for record in wanted
    )


def _texts(record: Mapping[str, Any], always: bool) -> Iterator[str]:
    yield record["content"]
    yield from (piece["quote"] for piece in record["evidence"])
    if always or record["lock"] == "frozen":  # "过敏：花生、青霉素"
        yield record["object"]


def _written(text: str) -> str:
    return one_line(text).translate(UNREADABLE)


def report(outcomes: Sequence[Outcome], test: Sequence[Persona], development: Sequence[Persona]) -> Report:
    """Shares of both sets; every miss in development with its scores."""
    held, seen = _of(outcomes, test), _of(outcomes, development)
    made = Report("relatedness")
    made.figures = figures(held) | {f"development_{name}": value for name, value in figures(seen).items()}
    rows = {"test": shares(held), "development": shares(seen)}
    made.tables = [
        table(f"Related and unrelated queries, {name}", ("", "queries", "right", "share"), own)
        for name, own in rows.items()
    ] + _missed(seen, development)
    made.data = {"shares": rows, "misses": [asdict(outcome) for outcome in outcomes if not outcome.right]}
    return made


def figures(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """The shares that count; NaN where nothing was asked."""
    related = [outcome for outcome in outcomes if outcome.asked.turns]
    possible = [outcome for outcome in related if outcome.kept]
    return {
        "unrelated_clean": _share([outcome for outcome in outcomes if not outcome.asked.turns]),
        "related_answered": _share(related),
        "related_answered_of_kept": _share(possible),
        "related_kept": len(possible) / len(related) if related else float("nan"),
    }


def shares(outcomes: Sequence[Outcome]) -> list[tuple[str, int, int, str]]:
    """Name, queries, right ones and their share, by language and kind."""
    related = [outcome for outcome in outcomes if outcome.asked.turns]
    unrelated = [outcome for outcome in outcomes if not outcome.asked.turns]
    return [
        *_rows("related", related, lambda o: o.language),
        *_rows("related, turn kept", [o for o in related if o.kept], lambda o: o.language),
        *_rows("unrelated", unrelated, lambda o: o.language),
        *_rows("unrelated", unrelated, lambda o: o.asked.kind)[1:],
    ]


def _of(outcomes: Sequence[Outcome], people: Sequence[Persona]) -> list[Outcome]:
    names = {one.id for one in people}
    return [outcome for outcome in outcomes if outcome.persona in names]


def _missed(outcomes: Sequence[Outcome], people: Sequence[Persona]) -> list[Table]:
    said = {(one.id, name): text for one in people for name, text in one.turns}
    missed = [outcome for outcome in outcomes if not outcome.right]
    related = [outcome for outcome in missed if outcome.asked.turns]
    kinds = {
        "Unrelated queries that brought something": [o for o in missed if not o.asked.turns],
        "Related queries not answered, the turn kept": [o for o in related if o.kept],
        "Related queries not answered, no turn kept": [o for o in related if not o.kept],
    }
    return [_misses(title, own, said) for title, own in kinds.items()]


def _share(outcomes: Sequence[Outcome]) -> float:
    return sum(outcome.right for outcome in outcomes) / len(outcomes) if outcomes else float("nan")


def _rows(
    name: str, outcomes: Sequence[Outcome], key: Callable[[Outcome], str]
) -> list[tuple[str, int, int, str]]:
    """All, then each value of ``key``."""
    parts: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        parts[key(outcome)].append(outcome)
    named = {"all": list(outcomes)} | dict(sorted(parts.items()))
    return [
        (f"{name}: {part}", len(own), sum(o.right for o in own), f"{_share(own):.1%}")
        for part, own in named.items()
    ]


def _misses(title: str, missed: Sequence[Outcome], said: Mapping[tuple[str, str], str]) -> Table:
    rows = [
        (outcome.persona, outcome.asked.text, _about(outcome, said), "\n".join(_hit(*hit) for hit in outcome.hits))
        for outcome in missed
    ]  # fmt: skip
    drawn = Table(title=f"{title}: {len(rows)}", title_justify="left", show_lines=True)
    for column in ("who", "query", "about", "what came: score, parts"):
        drawn.add_column(column)
    for row in rows:
        drawn.add_row(*row)
    return drawn


def _about(outcome: Outcome, said: Mapping[tuple[str, str], str]) -> str:
    return "\n".join(said[outcome.persona, name] for name in outcome.asked.turns) or outcome.asked.kind


def _hit(content: str, score: float, parts: Mapping[str, float]) -> str:
    return f"{content}: {score:.2f} = {' × '.join(f'{name} {value:.2f}' for name, value in parts.items())}"
