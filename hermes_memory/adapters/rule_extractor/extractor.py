"""The extractor that needs no model: deterministic, grounded by construction (ARCHITECTURE §4)."""

from __future__ import annotations

from importlib.resources import files

from hermes_memory.adapters.dimension_file import load_dimensions
from hermes_memory.adapters.rule_extractor.data import Rules
from hermes_memory.adapters.rule_extractor.loading import load_rules
from hermes_memory.adapters.rule_extractor.marking import markers_in
from hermes_memory.adapters.rule_extractor.mirror import simplified
from hermes_memory.adapters.rule_extractor.reader import TurnReader
from hermes_memory.core.candidate import (
    Affirmation,
    Candidate,
    Extraction,
    ExtractionRequest,
    Marker,
    Refusal,
)
from hermes_memory.core.dimensions import Dimensions
from hermes_memory.core.model import Role, Turn

NAME = "rules/1"


class RuleExtractor:
    """Reads Chinese (simplified and traditional), English and mixed turns by rules. Port: ``Extractor``."""

    def __init__(self, rules: Rules, dimensions: Dimensions) -> None:
        self.rules = rules
        self.reader = TurnReader(rules, dimensions)

    @property
    def name(self) -> str:
        """Name and version, kept in the evidence."""
        return NAME

    async def extract(self, request: ExtractionRequest) -> Extraction:
        """Candidates, affirmations and refusals for ``request.turns``; never waits for anything."""
        return self.read(request)

    def read(self, request: ExtractionRequest) -> Extraction:
        """The same, synchronous and pure: one answer per request, whatever the clock says."""
        candidates: list[Candidate] = []
        affirmations: list[Affirmation] = []
        refusals: list[Refusal] = []
        before = request.context[-1] if request.context else None
        earlier = next((turn for turn in reversed(request.context) if turn.role is Role.USER), None)
        for turn in request.turns:
            if turn.role is Role.USER:
                here = [item for item in candidates if item.span.session_id == turn.session_id]
                said = [*self._context(request, turn), *here]
                last = _same_session(earlier, turn)
                found = self.reader.read(turn, _same_session(before, turn), request.known, said, last)
                candidates += found[0]
                affirmations += found[1]
                refusals += found[2]
                earlier = turn
            before = turn
        return Extraction(
            extractor=NAME,
            candidates=tuple(candidates),
            affirmations=tuple(affirmations),
            refusals=tuple(refusals),
        )

    def _context(self, request: ExtractionRequest, turn: Turn) -> list[Candidate]:
        """What the user's turns before said: read again only where a turn sets one value against another."""
        if Marker.CORRECTION not in markers_in(turn.content, 0, len(turn.content), self.rules.markers):
            return []
        turns = [
            one for one in request.context if one.role is Role.USER and one.session_id == turn.session_id
        ]
        return [item for one in turns for item in self.reader.read(one, None, ())[0]]


def _same_session(before: Turn | None, turn: Turn) -> Turn | None:
    return before if before is not None and before.session_id == turn.session_id else None


def load_rule_extractor(dimensions: Dimensions | None = None) -> RuleExtractor:
    """The extractor with the rules of ``configs/extraction``.

    Raises:
        InvalidConfig: the rule files do not hold together.
    """
    configs = files("configs")
    known = dimensions if dimensions is not None else load_dimensions(configs / "dimensions.toml")
    simplified("")  # reads the character table now and not within a request
    return RuleExtractor(load_rules(configs / "extraction", known), known)
