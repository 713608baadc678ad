"""What would be stored of a turn: the rule extractor behind the entry checks and the scope floor."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from importlib.resources import files

from hermes_memory.adapters.dimension_file import load_dimensions
from hermes_memory.config import load_settings
from hermes_memory.core.bounded import Entrance, refusal
from hermes_memory.core.candidate import Candidate
from hermes_memory.core.dimensions import Dimensions
from hermes_memory.core.model import Turn
from hermes_memory.core.reasons import Reason
from hermes_memory.core.rules import EntryRules
from hermes_memory.core.scope import settled_scope
from tests.small_world import grounding
from tests.unit.rule_turns import read, turn


@cache
def _room() -> tuple[Dimensions, EntryRules]:
    return load_dimensions(files("configs") / "dimensions.toml"), load_settings().entry


def believed(candidates: Iterable[Candidate], said: Turn, *before: Turn) -> list[Candidate]:
    """The candidates that the entry checks let in, at the scope they would get; none may be ungrounded."""
    dimensions, entry = _room()
    talk = {said.session_id: (*before, said)}
    entrance = Entrance(
        {(said.session_id, said.message_id): said}, dimensions, entry, grounding(), True, talk
    )
    let_in = []
    for item in candidates:
        reason = refusal(item, entrance)
        assert reason not in {Reason.UNGROUNDED, Reason.SCHEMA}, (item, reason)
        if reason is None:
            let_in.append(replace(item, scope=settled_scope(item, said.scene)))
    return let_in


def stored(content: str, **details: str | None) -> list[Candidate]:
    """What would be stored of one user turn."""
    said = turn(content, **details)  # type: ignore[arg-type]
    return believed(read(said).candidates, said)


def stored_one(content: str, dimension: str, **details: str | None) -> Candidate:
    """The only stored memory of a dimension."""
    found = [item for item in stored(content, **details) if item.dimension == dimension]
    assert len(found) == 1, [(item.dimension, item.object) for item in stored(content, **details)]
    return found[0]
