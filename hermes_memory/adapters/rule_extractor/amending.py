"""A correction that says the new value alone: "不对，是上海" (SPEC §3.3, §6)."""

from __future__ import annotations

import re
from dataclasses import replace

from hermes_memory.adapters.rule_extractor.building import Words
from hermes_memory.adapters.rule_extractor.data import Grammar
from hermes_memory.adapters.rule_extractor.draft import Draft, Item
from hermes_memory.adapters.rule_extractor.objects import Thing, clean
from hermes_memory.adapters.rule_extractor.opening import Subject
from hermes_memory.core.candidate import Marker, SpeechAct
from hermes_memory.core.text import numbers

_FIGURE = re.compile(r"\d+(?:[.,]\d+)*")


def new_value(mirror: str, start: int, end: int, grammar: Grammar) -> Thing | None:
    """The value named by a bare correction in ``mirror[start:end]``; None if the words are none."""
    hit = grammar.amend.fullmatch(mirror, start, end)
    thing = clean(mirror, *hit.span("o" if hit.group("o") else "o2"), grammar) if hit else None
    return replace(thing, corrects=True) if thing else None


def amend_last(draft: Draft, end: int, grammar: Grammar) -> bool:
    """Put the new value into the turn's last statement: "我住在北京，不对，是天津" says 天津 only."""
    if not draft.items:
        return False
    reading, words = draft.items[-1]
    thing = new_value(draft.mirror, reading.end, end, grammar)
    if thing is None:
        return False
    text = draft.turn.content
    said = (
        text[words.says : reading.whole.start],
        text[thing.start : thing.end],
        text[reading.whole.end : reading.end],
    )
    draft.items[-1] = (
        replace(reading, thing=thing, whole=thing, end=thing.end),
        replace(words, end=end, markers=words.markers | {Marker.CORRECTION}, content="".join(said).strip()),
    )
    return True


def without_retracted(draft: Draft, items: list[Item], grammar: Grammar) -> list[Item]:
    """The items but those that the user took back in the same breath: "我属虎，哦不，属牛"."""

    def retracted(number: int, item: Item) -> bool:
        wrong = item[0]
        return any(
            (later.subject.who, later.dimension) == (wrong.subject.who, wrong.dimension)
            and grammar.retract.search(draft.mirror, wrong.end, later.start)
            for later, _ in items[number + 1 :]
        )

    return [item for number, item in enumerate(items) if not retracted(number, item)]


def amend_earlier(draft: Draft, earlier: Draft, grammar: Grammar) -> Item | None:
    """The last statement of an earlier turn, with the value that this turn alone consists of."""
    mirror, (last, told) = draft.mirror, earlier.items[-1]
    thing = new_value(mirror, 0, len(mirror.rstrip("。！!~ ")), grammar)
    if thing is None:
        return None
    subject = Subject(last.subject.who, thing.start, last.subject.mention)
    reading = replace(
        last, thing=thing, whole=thing, subject=subject, named=True, start=thing.start, end=thing.end
    )
    text, value, old = earlier.turn.content, draft.turn.content[thing.start : thing.end], last.whole
    around = (text[told.says : old.start], text[old.end : last.end])
    if _FIGURE.fullmatch(value):  # what was wrong is the figure among the words
        figures = list(_FIGURE.finditer(text, old.start, old.end))
        if len(figures) == 1:
            around = (text[told.says : figures[0].start()], text[figures[0].end() : last.end])
    words = Words(
        thing.start,
        thing.end,
        SpeechAct.STATEMENT,
        frozenset({Marker.CORRECTION}),
        None,
        says=thing.start,
        content="" if any(map(numbers, around)) else value.join(around).strip(),
    )
    return reading, words
