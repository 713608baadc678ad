"""Users whose memory grows: at each size every topic of a group is told, asked about and forgotten again.

One user stands for a group and a language, and holds nothing of the group but the topic that is asked about; so each
question meets the same targets, told just before, at every size.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count

from bench.relevance_growth.score import TEN, Answer
from bench.relevance_growth.topics import Question, Topic, beside
from bench.telling import Message, kept, ranked, rests_on, tell
from hermes_memory.memory import Memory

CONVERSATION = 40  # messages at most: what is said in one stays in the working tier until it ends

NOBODY = "nobody"


class Growing:
    """The user of one group and language.

    ``told`` and ``lost`` count messages, ``lost`` those of which extraction kept nothing that lasts.
    """

    def __init__(self, memory: Memory, found: Sequence[Topic], group: str, language: str) -> None:
        self._memory, self._user = memory, f"{language}-{group}"
        self._own = [topic for topic in found if (topic.group, topic.language) == (group, language)]
        self._waiting = beside(found, group, language)
        self._sessions = (f"{self._user}-{n}" for n in count())
        self.told: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        self.held: dict[int, int] = {}  # size → how many memories of other topics there were

    def ask(self, sizes: Sequence[int]) -> Iterator[Answer]:
        """The answers at every size, the smallest first."""
        for size in sizes:
            self._grow(size)
            for topic in self._own:
                yield from self._asked(topic, size, counted=size == sizes[0])

    def _grow(self, size: int) -> None:
        while self._waiting and (missing := size - len(self._active())) > 0:
            some = min(missing, CONVERSATION)
            told, self._waiting = self._waiting[:some], self._waiting[some:]
            self._tell("of other topics", told)
        self.held[size] = len(self._active())

    def _tell(self, what: str, told: Sequence[Message], *, counted: bool = True) -> frozenset[str]:
        """Tell it, count it, and return which messages were kept."""
        tell(self._memory, self._user, next(self._sessions), told)
        left = frozenset(name for name, _ in told) & kept(self._active())
        if counted:
            self.told[what] += len(told)
            self.lost[what] += len(told) - len(left)
        return left

    def _active(self) -> list[dict[str, object]]:
        return self._memory.memories(self._user, status="active")

    def _asked(self, topic: Topic, size: int, *, counted: bool) -> Iterator[Answer]:
        told = [(_told_at(name, size), text) for name, text in topic.statements]
        relevant = self._tell("asked for", told, counted=counted)
        for question in topic.questions:
            yield self._answer(question, size, relevant)
        names = {name for name, _ in told}
        for record in self._memory.memories(self._user):
            if not names.isdisjoint(rests_on(record)):
                self._memory.forget(self._user, record["id"])

    def _answer(self, question: Question, size: int, relevant: frozenset[str]) -> Answer:
        self._memory.recall(NOBODY, question.text)  # the query's vector is made now, and not in what is timed
        started = time.perf_counter()
        answer = self._memory.recall(self._user, question.text, top_k=TEN)
        whole = (time.perf_counter() - started) * 1000
        hits = ranked(answer)
        return Answer(
            question=question.id,
            language=question.id.partition(".")[0],
            size=size,
            hits=tuple(tuple(rests_on(record)) for record in hits),
            relevant=relevant,
            about=relevant & {_told_at(name, size) for name in question.about},
            timings_ms={**answer["timings_ms"], "whole": whole},
            text=question.text,
            shown=tuple((record["content"], record["score"], record["score_parts"]) for record in hits),
        )


def _told_at(name: str, size: int) -> str:
    """A message has an id of its own each time it is told."""
    return f"{name}@{size}"
