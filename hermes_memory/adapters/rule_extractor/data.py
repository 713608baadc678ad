"""The rules as values: what the TOML files of ``configs/extraction`` are read into."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from hermes_memory.adapters.rule_extractor.lasting import Lasting
from hermes_memory.adapters.rule_extractor.worth import Worth
from hermes_memory.core.candidate import Marker, SpeechAct
from hermes_memory.core.model import Category, Intent, Layer, Polarity, Scope

Regex = re.Pattern[str]


class At(StrEnum):
    """Where in a clause a pattern begins."""

    PREDICATE = "predicate"  # after the subject
    POSSESSIVE = "possessive"  # after "my", "my sister's"
    CLAUSE = "clause"  # at the subject itself, which is part of the pattern
    TAIL = "tail"  # behind another statement of the same clause: "a nurse in Leeds"


class Veto(StrEnum):
    """When a hit counts as a dislike or a veto (``negative``, SPEC §3.1)."""

    NEVER = "never"
    ALWAYS = "always"
    NEGATED = "negated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """One row: a shape of words and what it states.

    Groups: ``o`` (or ``o2``) the object; ``neg…`` present means denied; ``k`` the word that names the kind;
    ``s`` the subject, where the pattern itself names it.
    """

    language: str
    regex: Regex
    dimension: str
    predicate: str
    at: At = At.PREDICATE
    polarity: Polarity = Polarity.POSITIVE
    veto: Veto = Veto.NEVER
    act: SpeechAct = SpeechAct.STATEMENT
    intent: Intent = Intent.STATEMENT
    classes: tuple[str, ...] = ()  # dimensions the lexicon may move it to; "*" any
    classify: str = "o"  # the group the lexicon looks at
    splits: bool = False  # "A and B" are two statements
    own: bool = False  # about the user, whoever was spoken of before
    named: bool = False  # only where the clause itself names its subject
    bare: bool = False  # may stand without a subject
    subjectless: bool = False  # may only stand without one
    place: bool = False  # the object is a place: keep the city
    whole: bool = False  # the object is all the matched words
    date: bool = False  # only with a date in the clause
    after: tuple[str, ...] = ()  # of a tail: the dimensions it may stand behind
    needs: Marker | None = None
    markers: frozenset[Marker] = frozenset()
    category: Category | None = None
    layer: Layer | None = None
    scope: Scope | None = None
    importance: float | None = None
    stability: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A question of the assistant that supplies the predicate of a bare answer (SPEC §3.3)."""

    regex: Regex
    dimension: str
    predicate: str
    splits: bool


@dataclass(frozen=True, slots=True)
class Weight:
    """What a dimension is worth, and the topic it belongs to."""

    importance: float
    stability: float
    topic: str


@dataclass(frozen=True, slots=True)
class Grammar:
    """How a sentence is taken apart."""

    lead: Regex
    adverb: Regex
    clause_break: Regex
    tail: Regex
    strip_content: Regex
    strip_object: Regex
    strip_object_start: Regex
    contrast: Regex
    not_object: Regex
    user: Regex
    other: Regex
    beside: Regex
    relation_zh: Regex
    relation_en: Regex
    owner: Regex  # zh: words before a relation that say whose it is; may be none
    named: Regex  # zh: the name of the person, right behind the relation
    resumed: Regex  # zh: a pronoun that takes the person up again, or nothing
    possessive: Regex  # zh: 的 between a person and what is theirs
    addressed: Regex  # a clause about the one who is spoken to
    retract: Regex  # between two values: the first was wrong
    amend: Regex  # "no, …": only the value that was wrong is said anew, as group o
    echo: Regex  # a liking that agrees with another
    rather: Regex  # one that compares with what another said
    past: Regex  # what was and need not be any more
    name: Regex
    note: Regex
    afterthought: Regex  # what may follow a statement without being part of it
    mended: Regex


@dataclass(frozen=True, slots=True)
class Speech:
    """What the user is doing with the words."""

    filler: Regex
    joke: Regex
    absurd: Regex
    serious: Regex
    hypothetical: Regex
    habit_condition: Regex
    irony: Regex
    quotation: Regex
    vouched: Regex
    venting: Regex
    question: Regex
    tag: Regex
    command: Regex
    task: Regex
    planted: Regex


@dataclass(frozen=True, slots=True)
class Affirming:
    """Phrases by which a turn affirms what is already known (SPEC §5)."""

    phrase: Regex
    denial: Regex


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """One shape of words that end or renew what is known; ``polarity`` is what they say of it. Group ``o``: of what."""

    regex: Regex
    polarity: Polarity
    only: frozenset[str] = frozenset()  # the dimensions it may end; empty: any but those kept
    veto: bool = False  # a dislike, or something given up
    markers: frozenset[Marker] = frozenset()


@dataclass(frozen=True, slots=True)
class Endings:
    """All of them, in order; ``keep`` names the dimensions that they never end."""

    rows: tuple[Ending, ...]
    fading: Ending  # anywhere in a clause, without an object of its own
    unless: Regex  # words that leave it as it was
    keep: frozenset[str]
    before: frozenset[str]  # verbs that may stand before the value


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Kinds of things, places, and pairs that look like lists but are one thing."""

    classes: tuple[tuple[str, Regex], ...]
    places: Regex
    keep_together: frozenset[str]

    def kind(self, words: str) -> str | None:
        """The dimension that the words of an object call for."""
        return next((dimension for dimension, regex in self.classes if regex.search(words)), None)


@dataclass(frozen=True, slots=True)
class Rules:
    """Everything the extractor knows."""

    grammar: Grammar
    speech: Speech
    markers: tuple[tuple[Marker, Regex], ...]
    lexicon: Lexicon
    patterns: tuple[Pattern, ...]
    probes: tuple[Probe, ...]
    affirming: Affirming
    endings: Endings
    worth: Worth
    lasting: Lasting
    weights: dict[str, Weight]
