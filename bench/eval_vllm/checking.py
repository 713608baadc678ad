"""What the store holds, held against what was said: independent of the entry gate, which is what is checked here."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_WORDS = re.compile(r"[㐀-鿿]|[^\W_㐀-鿿]+")
_LABEL = re.compile(r"[(（]\d{4}-\d\d-\d\d(?: \d\d:\d\d)?[)）]")  # a date that the rules worked out

Spoken = Mapping[tuple[str, str], tuple[str, str]]  # (session, message id) → role and text


@dataclass(frozen=True, slots=True)
class Verdict:
    """Ids of memories and turns with which something is wrong; all empty: nothing."""

    memories: int
    ungrounded: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    doubled: tuple[str, ...] = field(default=())

    @property
    def clean(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.ungrounded or self.lost or self.doubled)


def checked(exports: Sequence[Mapping[str, Any]], spoken: Spoken, read: Counter[tuple[str, str]]) -> Verdict:
    """All users' exports against all that was said; ``read``: how often each user turn was read to the end."""
    memories = [memory for export in exports for memory in export["memories"]]
    turns = [turn for export in exports for turn in export["turns"]]
    return Verdict(
        memories=len(memories),
        ungrounded=tuple(memory["id"] for memory in memories if ungrounded(memory, spoken)),
        lost=tuple(sorted({*_lost_turns(turns, spoken), *_unread(spoken, read)})),
        doubled=tuple(sorted({*_doubled(memories), *_doubled_turns(turns), *_twice(read)})),
    )


def ungrounded(memory: Mapping[str, Any], spoken: Spoken) -> bool:
    """Whether a quote does not stand in a user's turn, or a word of the content or object in none of those turns."""
    if not memory["evidence"]:
        return True
    said: set[str] = set()
    for piece in memory["evidence"]:
        role, text = spoken.get((piece["session_id"], piece["message_id"]), ("", ""))
        if (
            role != "user"
            or not piece["quote"].strip()
            or text[piece["start"] : piece["end"]] != piece["quote"]
        ):
            return True
        said |= words(text)
    claimed = words(_LABEL.sub("", memory["content"])) | words(_LABEL.sub("", memory["object"]))
    return not claimed <= said


def words(text: str) -> set[str]:
    """Single Chinese characters; runs of other letters and digits, in lower case."""
    return set(_WORDS.findall(text.casefold()))


def _lost_turns(turns: Sequence[Mapping[str, Any]], spoken: Spoken) -> Iterator[str]:
    """Turns that were said and are not there as they were said, or are there and still wait."""
    kept = {(turn["session_id"], turn["message_id"]): turn for turn in turns}
    for place, (role, text) in spoken.items():
        turn = kept.get(place)
        if turn is None or turn["content"] != text or turn["role"] != role or turn["pending"]:
            yield "/".join(place)


def _unread(spoken: Spoken, read: Counter[tuple[str, str]]) -> Iterator[str]:
    return ("/".join(place) for place, (role, _) in spoken.items() if role == "user" and not read[place])


def _twice(read: Counter[tuple[str, str]]) -> Iterator[str]:
    return ("/".join(place) for place, times in read.items() if times > 1)


def _doubled_turns(turns: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    places = Counter((turn["session_id"], turn["message_id"]) for turn in turns)
    return ("/".join(place) for place, times in places.items() if times > 1)


def _doubled(memories: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Memories that say the same of the same words, and ids that come twice."""
    seen: set[tuple[Any, ...]] = set()
    for memory in memories:
        quotes = tuple(
            (piece["session_id"], piece["message_id"], piece["start"]) for piece in memory["evidence"]
        )
        same = (
            memory["user_id"],
            memory["subject"],
            memory["dimension"],
            memory["object"],
            memory["polarity"],
            quotes,
        )
        for key in ((memory["id"],), same):
            if key in seen:
                yield memory["id"]
            seen.add(key)
