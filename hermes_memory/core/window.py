"""Working memory: the last turns whole, the older ones folded into a two-level summary (SPEC §3.4, S4 §2.1, §3.1).

Folding is extractive: a summary holds sentences of the turns, verbatim, that carry one of the four anchors
(``core.anchors``). Level one are such sentences, a line for each passage of a few turns; over the budget the oldest
shrink to their bare anchors, level two, whose lines merge several passages. Only when even the bare anchors are too
many are the oldest lost. That order makes folding step by step keep the same anchors as folding at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby

from hermes_memory.core.anchors import Anchors
from hermes_memory.core.bounded import outside_blocks
from hermes_memory.core.model import Role, Turn
from hermes_memory.core.rules import WindowRules
from hermes_memory.core.sentences import Stretch, clauses, sentences

SENTENCE, BARE = 1, 2  # the two levels

_HAN = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
_CHAR = re.compile(f"[{_HAN}]")
_WORD = re.compile(rf"[^\W_{_HAN}]+")
_MARK = re.compile(r"[^\w\s]|_")
_HUNDREDTH = 100  # tokens are counted in whole hundredths, so that sums do not drift


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Words of a folded turn: ``turn.content[start : start + len(text)]``, verbatim. ``at`` is receipt time."""

    turn: int
    start: int
    text: str
    role: Role
    at: datetime
    level: int = SENTENCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What is left of the turns before ``upto`` (an index), oldest first; level two stands before level one."""

    upto: int = 0
    pieces: tuple[Piece, ...] = ()


EMPTY = Summary()


def tokens(text: str, rules: WindowRules) -> float:
    """An estimate that needs no tokenizer, rather too high than too low.

    So much for each Chinese character, for each begun ``word_chars`` letters of another word, and for each mark.
    """
    return _hundredths(text, rules) / _HUNDREDTH


def fold(turns: Sequence[Turn], summary: Summary, rules: WindowRules, anchors: Anchors) -> Summary:
    """The summary after ``turns``, the turns of one conversation in order; the same value if nothing is due.

    Turns that were folded before are skipped. The last ``rules.turns`` are never folded. The result costs at most
    ``rules.summary_tokens``.
    """
    waiting = [turn for turn in turns if turn.index >= summary.upto]
    older = waiting[: -rules.turns] if _is_due(waiting, rules) else []
    if not older:
        return summary
    fresh = [piece for turn in older for piece in excerpts(turn, rules, anchors)]
    pieces = _within_budget([*summary.pieces, *fresh], rules, anchors)
    return Summary(upto=older[-1].index + 1, pieces=pieces)


def _is_due(waiting: Sequence[Turn], rules: WindowRules) -> bool:
    """Whether there are too many turns, or they take more than their share of the window's budget."""
    if len(waiting) > rules.fold_above:
        return True
    left = rules.fold_share * rules.budget_tokens
    for turn in waiting if len(waiting) > rules.turns else ():
        left -= tokens(turn.content, rules)
        if left < 0:
            return True
    return False


def excerpts(turn: Turn, rules: WindowRules, anchors: Anchors) -> Iterator[Piece]:
    """The sentences of a turn that hold an anchor; of an assistant's turn what it promises or leaves to do.

    Nothing of system and tool turns, and nothing from inside a recall block that somebody pasted. A sentence of more
    than ``rules.piece_chars`` characters gives the stretches that hold its anchors. A turn of more than
    ``rules.turn_chars`` is pasted matter rather than talk: only its beginning is read.
    """
    if turn.role not in {Role.USER, Role.ASSISTANT}:
        return
    assistant = turn.role is Role.ASSISTANT
    said = turn.content[: rules.turn_chars]
    for low, high in outside_blocks(said):
        part = said[low:high]
        for start, end in sentences(part):
            sentence = part[start:end]
            if not anchors.marks(sentence, assistant=assistant):
                continue
            for a, b in _cut(sentence, assistant, rules, anchors):
                yield Piece(
                    turn=turn.index, start=low + start + a, text=sentence[a:b], role=turn.role, at=turn.received_at
                )  # fmt: skip


def _cut(sentence: str, assistant: bool, rules: WindowRules, anchors: Anchors) -> Iterator[Stretch]:
    """A sentence whole, or of a long one the clauses with anchors, in stretches that cut no anchor in two."""
    if len(sentence) <= rules.piece_chars:
        yield 0, len(sentence)
        return
    cores = anchors.cores(sentence, rules.clause_chars, assistant=assistant)
    for start, end in _met(clauses(sentence), cores):
        if end - start <= rules.piece_chars:
            yield start, end
        else:
            yield from ((max(a, start), min(b, end)) for a, b in cores if a < end and start < b)


def _met(parts: Iterable[Stretch], cores: Sequence[Stretch]) -> list[Stretch]:
    """The clauses that meet a core; clauses that share one are joined."""
    met: list[Stretch] = []
    at = 0
    for start, end in parts:
        while at < len(cores) and cores[at][1] <= start:
            at += 1
        if at == len(cores) or cores[at][0] >= end:
            continue
        if met and cores[at][0] < met[-1][1]:
            met[-1] = (met[-1][0], end)
        else:
            met.append((start, end))
    return met


def _within_budget(pieces: Sequence[Piece], rules: WindowRules, anchors: Anchors) -> tuple[Piece, ...]:
    """Shrink the oldest sentences to their anchors, then lose the oldest anchors, until the budget holds them.

    What is said again later, word for word, stands once, where it was said last.
    """
    bare = _last(piece for piece in pieces if piece.level == BARE)
    whole = list(_last(piece for piece in pieces if piece.level == SENTENCE).values())
    left = rules.summary_tokens * _HUNDREDTH - sum(_cost(piece, rules) for piece in (*bare.values(), *whole))
    shrunk = 0
    while left < 0 and shrunk < len(whole):
        left += _cost(whole[shrunk], rules)
        for small in _shrunk(whole[shrunk], rules, anchors):
            if (said_before := bare.pop(small.text, None)) is not None:
                left += _cost(said_before, rules)
            bare[small.text] = small
            left -= _cost(small, rules)
        shrunk += 1
    kept = list(bare.values())
    lost = 0
    while left < 0 and lost < len(kept):
        left += _cost(kept[lost], rules)
        lost += 1
    return (*kept[lost:], *whole[shrunk:])


def _last(pieces: Iterable[Piece]) -> dict[str, Piece]:
    """The pieces by their texts, each where it stands last, in order."""
    found: dict[str, Piece] = {}
    for piece in pieces:
        found.pop(piece.text, None)
        found[piece.text] = piece
    return found


def _shrunk(piece: Piece, rules: WindowRules, anchors: Anchors) -> list[Piece]:
    """A sentence's bare anchors; itself where they would cost as much."""
    assistant = piece.role is Role.ASSISTANT
    cores = anchors.cores(piece.text, rules.clause_chars, assistant=assistant)
    small = [replace(piece, start=piece.start + a, text=piece.text[a:b], level=BARE) for a, b in cores]
    saves = sum(_cost(each, rules) for each in small) < _cost(piece, rules)
    return small if saves else [replace(piece, level=BARE)]


def _cost(piece: Piece, rules: WindowRules) -> int:
    """What a piece takes in a line, with the mark that parts it from the next one."""
    return _hundredths(piece.text, rules) + round(rules.mark_tokens * _HUNDREDTH)


def _hundredths(text: str, rules: WindowRules) -> int:
    words = sum(-(-len(word) // rules.word_chars) for word in _WORD.findall(text))
    return (
        len(_CHAR.findall(text)) * round(rules.cjk_tokens * _HUNDREDTH)
        + words * round(rules.word_tokens * _HUNDREDTH)
        + len(_MARK.findall(text)) * round(rules.mark_tokens * _HUNDREDTH)
    )


def lines(summary: Summary, rules: WindowRules) -> list[tuple[Piece, ...]]:
    """The lines of a summary, oldest first: merged passages of bare anchors, then a line for each passage."""

    def passage(piece: Piece) -> tuple[int, int]:
        size = rules.passage_turns * (rules.merged_passages if piece.level == BARE else 1)
        return -piece.level, piece.turn // size

    return [tuple(group) for _, group in groupby(summary.pieces, key=passage)]


def since(summary: Summary, moment: datetime) -> Summary:
    """The summary without what was received before ``moment``: it outlives no raw turn (SPEC §4.3)."""
    kept = tuple(piece for piece in summary.pieces if piece.at >= moment)
    return summary if len(kept) == len(summary.pieces) else replace(summary, pieces=kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """What leaves a conversation's summary: stretches by turn index, quotes wherever they stand, and things named."""

    stretches: Mapping[int, Sequence[Stretch]]
    quotes: frozenset[str]
    things: frozenset[str]


def without(summary: Summary, erased: Erased) -> Summary:
    """The summary without the words of what was erased (SPEC §11); other words of a sentence stay.

    What still names the thing itself, in whatever words, goes too: here a word too few costs less than one too many.
    """
    naming = _naming(erased.things)
    quotes = sorted(filter(None, erased.quotes), key=len, reverse=True)
    pieces = [part for piece in summary.pieces for part in _parts(piece, quotes, erased.stretches)]
    return replace(summary, pieces=tuple(piece for piece in pieces if not naming.search(piece.text)))


def _parts(piece: Piece, quotes: Sequence[str], stretches: Mapping[int, Sequence[Stretch]]) -> list[Piece]:
    """What is left of a piece around the erased quotes."""
    left = [piece]
    for quote in quotes:
        if quote in piece.text:
            left = [part for each in left for part in _around(each, quote)]
    return [part for part in left if not any(_meets(part, a, b) for a, b in stretches.get(part.turn, ()))]


def _around(piece: Piece, quote: str) -> list[Piece]:
    parts, at = [], 0
    for text in piece.text.split(quote):
        if _WORD.search(text) or _CHAR.search(text):
            parts.append(replace(piece, start=piece.start + at, text=text))
        at += len(text) + len(quote)
    return parts


def _meets(piece: Piece, start: int, end: int) -> bool:
    return piece.start < end and start < piece.start + len(piece.text)


def _naming(things: Iterable[str]) -> re.Pattern[str]:
    """What finds any of ``things``, without regard to case; Latin letters and digits only as whole words."""
    return re.compile("|".join(_named(thing) for thing in sorted(things) if thing) or r"(?!)", re.IGNORECASE)


def _named(thing: str) -> str:
    head = r"(?<![a-z0-9])" if thing[0].isascii() and thing[0].isalnum() else ""
    tail = r"(?![a-z0-9])" if thing[-1].isascii() and thing[-1].isalnum() else ""
    return f"{head}{re.escape(thing)}{tail}"
