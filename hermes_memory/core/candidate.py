"""What an extractor proposes: nothing here is believed until the gates have let it in (SPEC §4.1)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum

from hermes_memory.core.model import (
    Category,
    Granularity,
    Intent,
    Layer,
    Memory,
    Polarity,
    Scope,
    Source,
    Turn,
)

SAID = "said"  # the dimension and predicate of an episode, a turn that is kept in its own words
OVER_BUDGET = "token_budget"  # why no model was asked: the user's tokens of the day are spent


class SpeechAct(StrEnum):
    """What the user was doing with the words (SPEC §4.1.5)."""

    STATEMENT = "statement"
    DIRECTIVE = "directive"  # a standing wish on how to treat the user
    OPINION = "opinion"  # a one-off judgement, kept as an EVENT
    JOKE = "joke"
    HYPOTHETICAL = "hypothetical"
    IRONY = "irony"
    QUOTATION = "quotation"
    VENTING = "venting"
    QUESTION = "question"
    COMMAND = "command"  # one-off
    PLANTED_ORDER = "planted_order"  # recipients, addresses, overrides of the assistant's rules


class Marker(StrEnum):
    """Words in or near the span that decide scope and certainty (SPEC §4.1.7, §5, §6)."""

    TEMPORARY = "temporary"  # 今天, 这次, for this trip
    CONDITIONAL = "conditional"  # 如果, if
    HABITUAL = "habitual"  # 一直, 总是, always
    LASTING_CHANGE = "lasting_change"  # 最近搬到, 从今天起, from now on
    CORRECTION = "correction"  # 其实, 不对, 更正, actually
    HEDGED = "hedged"  # 好像, maybe


@dataclass(frozen=True, slots=True)
class Span:
    """Where in which user turn the words stand: ``turn.content[start:end]``, verbatim."""

    message_id: str
    start: int
    end: int
    session_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One proposed memory. ``content``, ``object`` and ``subject`` are in the user's language."""

    span: Span
    content: str
    category: Category
    layer: Layer | None
    subject: str
    predicate: str
    object: str
    dimension: str
    polarity: Polarity = Polarity.POSITIVE
    negative: bool = False
    granularity: Granularity = Granularity.ATOMIC
    scope: Scope = Scope.USER
    speech_act: SpeechAct = SpeechAct.STATEMENT
    markers: frozenset[Marker] = frozenset()
    source: Source = Source.EXPLICIT
    intent: Intent = Intent.STATEMENT
    emotional: bool = False
    stability: float
    importance: float
    topic: str = ""
    entities: tuple[str, ...] = ()
    valid_from: datetime | None = None
    valid_to: datetime | None = None


@dataclass(frozen=True, slots=True)
class Affirmation:
    """This user turn affirms that memory (the extractor's ``review_flag``, SPEC §5). Never a bare "ok"."""

    memory_id: str
    span: Span


@dataclass(frozen=True, slots=True)
class Refusal:
    """A turn, or a part of one, that the extractor itself found to hold nothing; ``reason`` is published."""

    message_id: str
    reason: str
    session_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a language model was asked for an extraction; sums are over calls, second opinions and repairs among them.

    ``tokens_cached`` is the part of ``tokens_in`` that the engine had read before; 0 where an endpoint does not say.
    ``invalid`` counts answers that could not be used, ``repairs`` the calls that asked again because of one, and
    ``opinions`` the statements that were asked about a second time.
    """

    calls: int = 0
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0
    invalid: int = 0
    repairs: int = 0
    opinions: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(Usage)})

    @property
    def tokens(self) -> int:
        """Read and written together: what a user's daily budget counts."""
        return self.tokens_in + self.tokens_out


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionRequest:
    """``turns`` are to be read; ``context`` are the turns just before; ``known`` what they may touch.

    ``last_try``: nobody asks again, so that an extractor with a fall-back takes it. ``tokens_left``: of the user's budget
    for the day, None where there is none; at 0 no language model is asked.
    """

    turns: tuple[Turn, ...]
    context: tuple[Turn, ...] = ()
    known: tuple[Memory, ...] = ()
    last_try: bool = False
    tokens_left: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """An extractor's whole answer for one request.

    ``fell_back``: why another extractor than the configured one gave it, a code; empty where none did.
    """

    extractor: str  # name/version, kept in the evidence
    candidates: tuple[Candidate, ...] = ()
    affirmations: tuple[Affirmation, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    usage: Usage = Usage()
    fell_back: str = ""
