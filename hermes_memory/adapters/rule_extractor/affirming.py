"""A turn that leans on what went before: answers to a question, and affirmations of what is known."""

from __future__ import annotations

import re

from hermes_memory.adapters.rule_extractor.data import Pattern, Probe, Rules
from hermes_memory.adapters.rule_extractor.matching import Reading
from hermes_memory.adapters.rule_extractor.mirror import simplified
from hermes_memory.adapters.rule_extractor.objects import Thing, atoms, clean
from hermes_memory.adapters.rule_extractor.opening import Subject
from hermes_memory.core.model import USER, Memory, Polarity, Role, Status, Turn

_ASKS = re.compile(r"[?？]|[吗呢么]\s*[。！!]?$")
_ANSWER_LEAD = re.compile(
    r"^(?:嗯+|对|是的?|有(?:的)?|我?(?:叫|是|在|住在?)|yes|yeah|it'?s|just|only|mostly|i'?m|my name is)[，,、.:\s]*"
    r"(?:我)?(?:对|是|有)?",
    re.IGNORECASE,
)
_WORDS = re.compile(r"[a-z0-9]{3,}|[一-鿿]{2}")
_MAX_ANSWER_CJK = 16
_MAX_ANSWER_WORDS = 8
_MIN_NAMED = 2  # an object of one letter or stroke names nothing


def answer(mirror: str, turn: Turn, before: Turn | None, rules: Rules) -> list[Reading]:
    """Objects in a short answer to the assistant's question: "Any allergies?" – "Peanuts." (SPEC §3.3)."""
    if before is None or before.role is not Role.ASSISTANT or before.session_id != turn.session_id:
        return []
    question = simplified(before.content)
    if not _ASKS.search(question) or not _short(mirror) or rules.affirming.denial.match(mirror.strip()):
        return []
    probe = next((probe for probe in rules.probes if probe.regex.search(question)), None)
    return _answered(mirror, probe, rules) if probe else []


def _short(mirror: str) -> bool:
    words = mirror.strip()
    if re.search(r"[一-鿿]", words):
        return len(words) <= _MAX_ANSWER_CJK
    return 0 < len(words.split()) <= _MAX_ANSWER_WORDS and "?" not in words


def _answered(mirror: str, probe: Probe, rules: Rules) -> list[Reading]:
    start = len(mirror) - len(mirror.lstrip())
    if lead := _ANSWER_LEAD.match(mirror[start:]):
        start += lead.end()
    whole = clean(mirror, start, len(mirror.rstrip()), rules.grammar)
    if whole is None or rules.speech.filler.fullmatch(mirror[whole.start : whole.end]):
        return []
    row = Pattern(
        language="zh",
        regex=probe.regex,
        dimension=probe.dimension,
        predicate=probe.predicate,
        splits=probe.splits,
    )
    subject = Subject(USER, whole.start)
    return [
        Reading(
            row,
            probe.dimension,
            thing,
            subject,
            True,
            Polarity.POSITIVE,
            False,
            whole.start,
            whole.end,
            whole,
        )
        for thing in atoms(mirror, whole, row, rules.lexicon, rules.grammar)
    ]


def affirmed(
    mirror: str, readings: list[tuple[Reading, str]], known: tuple[Memory, ...], rules: Rules
) -> list[Memory]:
    """The known memories that this turn affirms by an explicit phrase *and* by naming their object.

    ``readings`` are the turn's own statements with their objects; one that denies what is known affirms nothing.
    """
    if not known or not rules.affirming.phrase.search(mirror):
        return []
    live = [memory for memory in known if memory.status in (Status.ACTIVE, Status.REVIEW)]
    return [memory for memory in live if names(mirror, memory) and not _denied(memory, readings)]


def names(mirror: str, memory: Memory) -> bool:
    """Whether (simplified) words name what the memory is about: its object, or the object's first word."""
    thing = simplified(memory.object).lower().strip()
    words = mirror.lower()
    if len(thing) < _MIN_NAMED:
        return False
    if thing in words:
        return True
    heads = _WORDS.findall(thing)
    return bool(heads) and heads[0] in words


def _denied(memory: Memory, readings: list[tuple[Reading, str]]) -> bool:
    return any(
        reading.dimension == memory.dimension and reading.polarity is not memory.polarity
        for reading, _ in readings
    )


def same(reading: Reading, words: str, memory: Memory) -> bool:
    """Whether a reading says again what the memory holds, so that the affirmation stands for it."""
    mine, theirs = simplified(words).lower(), simplified(memory.object).lower()
    return (
        reading.dimension == memory.dimension
        and reading.polarity is memory.polarity
        and reading.subject.who == memory.subject
        and (mine in theirs or theirs in mine)
    )


def thing_words(text: str, thing: Thing) -> str:
    """The object's words as the user wrote them."""
    return text[thing.start : thing.end]
