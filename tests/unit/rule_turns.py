"""Turns for the tests of the rule extractor, and short looks at what it read."""

from __future__ import annotations

from datetime import datetime
from functools import cache

from hermes_memory.adapters.rule_extractor import RuleExtractor, load_rule_extractor
from hermes_memory.core.candidate import Candidate, Extraction, ExtractionRequest
from hermes_memory.core.model import Memory, Role, Turn

SAID_AT = "2026-03-02T10:00:00+00:00"  # a Monday


@cache
def extractor() -> RuleExtractor:
    return load_rule_extractor()


def turn(
    content: str,
    *,
    role: Role = Role.USER,
    at: str = SAID_AT,
    timezone: str = "UTC",
    scene: str | None = None,
    index: int = 0,
    session: str = "s1",
) -> Turn:
    when = datetime.fromisoformat(at)
    return Turn(
        session_id=session,
        index=index,
        message_id=f"m{index}",
        role=role,
        content=content,
        created_at=when,
        received_at=when,
        timezone=timezone,
        scene=scene,
    )


def read(*turns: Turn | str, context: tuple[Turn, ...] = (), known: tuple[Memory, ...] = ()) -> Extraction:
    made = tuple(turn(item, index=n) if isinstance(item, str) else item for n, item in enumerate(turns))
    return extractor().read(ExtractionRequest(turns=made, context=context, known=known))


def candidates(content: str, **details: str | None) -> tuple[Candidate, ...]:
    said = turn(content, **details)  # type: ignore[arg-type]
    found = read(said).candidates
    for candidate in found:
        quote = said.content[candidate.span.start : candidate.span.end]
        assert quote.strip(), candidate
        assert candidate.object in quote, candidate
        assert len(candidate.content) <= 256, candidate
    return found


def one(content: str, dimension: str, **details: str | None) -> Candidate:
    found = [item for item in candidates(content, **details) if item.dimension == dimension]
    assert len(found) == 1, (
        content,
        [(item.dimension, item.object) for item in candidates(content, **details)],
    )
    return found[0]


def objects(content: str) -> set[tuple[str, str, str, str]]:
    """What was read: dimension, object, polarity, subject."""
    return {(item.dimension, item.object, item.polarity.value, item.subject) for item in candidates(content)}


def reasons(content: str) -> set[str]:
    return {str(item.reason) for item in read(content).refusals}
