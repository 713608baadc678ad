"""A small world for tests of the pure parts: a few dimensions, people who say things, and a policy.

Nothing here reads a model or a store. ``say`` makes a turn together with what an extractor would propose for it;
``settle`` runs the gates over such sayings.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from hermes_memory.adapters.anchor_file import load_anchors
from hermes_memory.adapters.grounding_file import load_grounding
from hermes_memory.app.desk import Desk, Policy
from hermes_memory.config import load_settings
from hermes_memory.core.anchors import Anchors
from hermes_memory.core.board import Board
from hermes_memory.core.bounded import Entrance
from hermes_memory.core.calibration import Calibration, Ramp
from hermes_memory.core.candidate import Affirmation, Candidate, Extraction, Marker, Refusal, Span
from hermes_memory.core.confirmation import ConfirmationRequest
from hermes_memory.core.dimensions import Cardinality, Dimension, Dimensions, SafetyClass
from hermes_memory.core.grounding import Grounding
from hermes_memory.core.ids import digest
from hermes_memory.core.model import Affirmed, Category, Layer, Memory, Turn
from hermes_memory.core.rules import Rules
from hermes_memory.core.settle import Settlement, Similar, Surroundings
from hermes_memory.ports.embedder import Vector, Vectors
from hermes_memory.testing.builders import EMBEDDER, KEY, NOW, a_memory, a_turn, an_evidence

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)


@functools.cache
def default_rules() -> Rules:
    return load_settings().rules


@functools.cache
def anchors() -> Anchors:
    return load_anchors(Path(str(files("configs").joinpath("words", "anchors.toml"))))


@functools.cache
def grounding() -> Grounding:
    return load_grounding(Path(str(files("configs").joinpath("words", "grounding.toml"))))


def rules(**sections: Mapping[str, Any]) -> Rules:
    """The default rules with single keys replaced: ``rules(locks={"cap": 0.9})``."""
    changed = {name: replace(getattr(default_rules(), name), **values) for name, values in sections.items()}
    return replace(default_rules(), **changed)


def _dimension(key: str, cardinality: str, category: str, layer: str | None, **more: Any) -> Dimension:
    return Dimension(
        key=key,
        cardinality=Cardinality(cardinality),
        category=Category(category),
        layer=Layer(layer) if layer else None,
        labels={"zh": more.pop("zh", key), "en": more.pop("en", key)},
        cues={"zh": more.pop("cues_zh", ()), "en": more.pop("cues_en", ())},
        **more,
    )


ALLERGY, TABOO = SafetyClass.ALLERGY, SafetyClass.RELIGIOUS_TABOO
DIMENSIONS = Dimensions(
    [
        _dimension("city", "single", "FACT", "identity", zh="居住地", en="Lives in", cues_zh=("住哪",), cues_en=("live",), related=("hometown",)),
        _dimension("hometown", "single", "FACT", "identity", zh="家乡"),
        _dimension("pet", "multi", "FACT", "identity", zh="宠物", en="Pets"),
        _dimension("allergy", "multi", "FACT", "restriction", zh="过敏", en="Allergic to", safety=ALLERGY, freeze_class="allergy"),
        _dimension("religious_taboo", "multi", "FACT", "restriction", zh="禁忌", safety=TABOO, freeze_class="religious_taboo"),
        _dimension("financial_limit", "multi", "FACT", "restriction", safety=SafetyClass.FINANCIAL),
        _dimension("food_taboo", "multi", "PREFERENCE", "restriction", zh="忌口", en="Avoids"),
        _dimension("form_of_address", "single", "PREFERENCE", "style", zh="称呼", freeze_class="naming"),
        _dimension("seat", "single", "PREFERENCE", "preference", zh="座位", en="Seat", cues_en=("sit down",)),
        _dimension("drink", "multi", "PREFERENCE", "preference", zh="饮料", en="Drinks"),
        _dimension("environment", "multi", "PREFERENCE", "preference", exclusive=(("安静", "热闹"),)),
        _dimension("need", "single", "STATE", "context", zh="需求", en="Need"),
        _dimension("event", "multi", "EVENT", None),
    ]
)  # fmt: skip

CALIBRATION = Calibration(query=Ramp(((0.0, 0.0), (1.0, 1.0))), pair=Ramp(((0.0, 0.0), (1.0, 1.0))))


def words(text: str) -> tuple[str, ...]:
    """A segmenter that needs no dictionary: Latin words and single Chinese characters."""
    return tuple(re.findall(r"[a-z0-9]+|[\u4e00-\u9fff]", text.casefold()))


def mask(text: str) -> str:
    """A detector that knows one kind of secret."""
    return re.sub(r"sk-\w+", "[secret]", text)


def vector(text: str) -> Vector:
    """A unit vector that depends on the text only."""
    seed = int(digest(text)[:8], 16)
    raw = np.random.default_rng(seed).standard_normal(EMBEDDER.dimension).astype(np.float32)
    return (raw / np.linalg.norm(raw)).astype(np.float32)


def vectors(texts: Iterable[str]) -> Vectors:
    found = [vector(text) for text in texts]
    return np.stack(found) if found else np.zeros((0, EMBEDDER.dimension), np.float32)


def policy(with_rules: Rules | None = None) -> Policy:
    return Policy(
        rules=with_rules or default_rules(), dimensions=DIMENSIONS, calibration=CALIBRATION, words=words,
        grounding=grounding(), anchors=anchors(), mask=mask,
    )  # fmt: skip


def desk(operation_id: str = "op-1", **over: Any) -> Desk:
    values: dict[str, Any] = {"policy": policy(), "now": NOW, "epoch": 1, "operation_id": operation_id}
    return Desk(**(values | over))


# what is said


@dataclass(frozen=True)
class Said:
    """A turn and what an extractor makes of it."""

    turn: Turn
    candidates: tuple[Candidate, ...] = ()
    affirmations: tuple[Affirmation, ...] = ()


_FACTS: dict[str, Any] = {
    "category": Category.FACT,
    "layer": Layer.IDENTITY,
    "dimension": "city",
    "predicate": "is",
}


def a_candidate(turn: Turn, **over: Any) -> Candidate:
    """A plain declaration at user scope that spans the whole turn; the dimension gives category and layer."""
    values: dict[str, Any] = _FACTS | {
        "span": Span(turn.message_id, 0, len(turn.content), turn.session_id),
        "content": turn.content,
        "subject": "user",
        "object": turn.content,
        "stability": 0.6,
        "importance": 0.7,
    }
    known = DIMENSIONS.get(over.get("dimension", "city"))
    if known is not None:
        values |= {"category": known.category, "layer": known.layer, "predicate": known.key}
    return Candidate(**(values | over))


def say(
    text: str,
    *,
    session: str = "s1",
    at: datetime = NOW,
    scene: str | None = None,
    message: str | None = None,
    turn: Mapping[str, Any] | None = None,
    **over: Any,
) -> Said:
    """A user says ``text``; ``over`` are fields of the one candidate. What is marked a correction says so."""
    corrects = Marker.CORRECTION in over.get("markers", ())
    text = text if not corrects or grounding().lexicon.corrects.search(text) else f"更正：{text}"
    said = a_turn(
        session_id=session, message_id=message or f"{session}-{digest(text, at.isoformat(), size=4)}",
        content=text, created_at=at, received_at=at, scene=scene, **(turn or {}),
    )  # fmt: skip
    return Said(said, (a_candidate(said, **over),))


def affirm(memory: Memory, text: str = "", **over: Any) -> Said:
    """A turn that affirms ``memory``, by default in its own words."""
    said = say(text or f"对，{memory.content}", **over)
    span = said.candidates[0].span
    return Said(said.turn, (), (Affirmation(memory.id, span),))


@dataclass(frozen=True)
class Settled:
    """What the gates made of it."""

    board: Board
    asked: list[ConfirmationRequest]
    vectors: dict[str, Vector]
    before: frozenset[str]

    def ops(self) -> list[str]:
        return [change.op.value for change in self.board.changes]

    def reasons(self) -> list[str]:
        return [change.reason.value for change in self.board.changes]

    @property
    def new(self) -> Memory:
        """The one memory that was made."""
        (made,) = [memory for memory in self.board.changed if memory.id not in self.before]
        return made

    def all(self) -> dict[str, Memory]:
        return {memory.id: memory for memory in self.board}


def _talk(before: Iterable[Turn], said: Iterable[Said]) -> dict[str, list[Turn]]:
    """The turns of each session, those of other roles among them."""
    found: dict[str, list[Turn]] = {}
    for turn in (*before, *(one.turn for one in said)):
        found.setdefault(turn.session_id, []).append(turn)
    return found


def never_similar(_: Vector, __: str) -> float:
    return 0.0


def settle(
    memories: Iterable[Memory],
    *said: Said,
    with_rules: Rules | None = None,
    similar: Similar = never_similar,
    now: datetime | None = None,
    seed: str = "op",
    refusals: tuple[Refusal, ...] = (),
    consents: bool = True,
    talk: Iterable[Turn] = (),
) -> Settled:
    """Run the gates over what was said, on a user who has ``memories``."""
    wanted = with_rules or default_rules()
    present = now or max((one.turn.created_at for one in said), default=NOW)
    before = {memory.id: memory for memory in memories}
    board = Board(before, present)
    entrance = Entrance(
        turns={(one.turn.session_id, one.turn.message_id): one.turn for one in said},
        dimensions=DIMENSIONS,
        rules=wanted.entry,
        grounding=grounding(),
        consents=consents,
        talk=_talk(talk, said),
        known=lambda dimension: [memory for memory in board if memory.dimension == dimension],
    )
    around = Surroundings(
        namespace=KEY.namespace, user_id=KEY.user_id, seed=seed, rules=wanted, dimensions=DIMENSIONS,
        entrance=entrance, similar=similar,
    )  # fmt: skip
    settlement = Settlement(board, around)
    candidates = tuple(candidate for one in said for candidate in one.candidates)
    affirmations = tuple(affirmation for one in said for affirmation in one.affirmations)
    extraction = Extraction(
        extractor="test-1", candidates=candidates, affirmations=affirmations, refusals=refusals
    )
    settlement.run(extraction, list(vectors(candidate.content for candidate in candidates)))
    return Settled(board, settlement.asked, settlement.vectors, frozenset(before))


def remembered(said: Said, **over: Any) -> Memory:
    """The memory that stands after ``said`` alone, with fields replaced."""
    return settle([], said, seed=said.turn.message_id).new.with_(**over)


def affirmed(*sessions: str, at: datetime = NOW) -> tuple[Affirmed, ...]:
    """Confirmations in these sessions."""
    return tuple(Affirmed(session_id=name, message_id=f"{name}-a", at=at) for name in sessions)


Make = Callable[..., Memory]

__all__ = [
    "ALLERGY", "CALIBRATION", "DAY", "DIMENSIONS", "HOUR", "KEY", "NOW", "Said", "Settled", "a_candidate",
    "a_memory", "a_turn", "affirm", "affirmed", "an_evidence", "anchors", "default_rules", "desk", "grounding", "mask", "never_similar",
    "policy", "remembered", "rules", "say", "settle", "vector", "vectors", "words",
]  # fmt: skip
