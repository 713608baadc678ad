"""When a memory is meant for: parts of the day, the week and the year, and scenes (SPEC §7.1, S1 §3.3).

"In the evening I like jazz" comes up in the evening and steps back in the morning. A query that names a time
("what do I drink for breakfast?") asks about that time, whatever the clock says. Which words name which time is
data (``configs/words/daytime.toml``).

    moment = daytimes.moment(local_now, scene=scene, query=text)   # once per query
    factor = fit(memory, moment, daytimes, rules.recall)           # per hit
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, time
from enum import StrEnum
from functools import lru_cache

from hermes_memory.core.model import Category, Layer, Memory
from hermes_memory.core.rules import RecallRules
from hermes_memory.core.values import Terms

HALF_A_YEAR = 6  # months
Limits = Mapping[str, frozenset[str]]  # kind → the names of the times of that kind


class Verdict(StrEnum):
    """Whether what something is limited to is so now; SILENT: it has no limit, or nobody knows."""

    HOLDS = "holds"
    FAILS = "fails"
    SILENT = "silent"


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """A named time. ``words`` limit a statement to it, ``asked`` are more words by which a query names it.

    Of ``hours`` (local, from and up to), ``weekdays`` (1 is Monday) and ``months`` those that are given must all hold.
    """

    name: str
    kind: str
    words: tuple[str, ...]
    asked: tuple[str, ...] = ()
    hours: tuple[time, time] | None = None
    weekdays: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()

    def holds(self, clock: time, weekday: int, month: int) -> bool:
        """Whether it is that time."""
        return (
            (self.hours is None or _between(clock, *self.hours))
            and (not self.weekdays or weekday in self.weekdays)
            and (not self.months or month in self.months)
        )


@dataclass(frozen=True, slots=True)
class Moment:
    """What is so where and when a query is asked; a kind of time that is not in ``times`` is not known."""

    times: Limits
    scene: str | None = None


class Daytimes:
    """Every named time.

    Args:
        times: Names are unique.
        ignored: Words that hold the words of a time and name none ("afternoon tea").
        between: Words that may stand between times in an object that is nothing but a time ("summer and autumn").
        southern: Beginnings of the names of time zones where the months are those of the other half of the year.
    """

    def __init__(
        self,
        times: Iterable[When] = (),
        ignored: Iterable[str] = (),
        between: Iterable[str] = (),
        southern: Iterable[str] = (),
    ) -> None:
        self._times = tuple(times)
        self._ignored = _any_of(ignored)
        named = (word for one in self._times for word in (*one.words, *one.asked))
        self._only = re.compile(f"(?>{_any_of([*named, *between]).pattern}|[\\s\\W])++")  # never goes back
        self._southern = tuple(southern)
        self._said = Terms("|".join(one.words) for one in self._times)
        self._asked = Terms("|".join((*one.words, *one.asked)) for one in self._times)
        self._limits = lru_cache(maxsize=8192)(self._limits_now)

    def names(self, kind: str) -> frozenset[str]:
        """The names of all times of a kind."""
        return frozenset(one.name for one in self._times if one.kind == kind)

    def of(self, names: Iterable[str]) -> Limits:
        """Named times by kind."""
        wanted = set(names)
        return _by_kind(one for one in self._times if one.name in wanted)

    def limits(self, content: str, what: str = "") -> Limits:
        """The times to which a statement about ``what`` limits itself; none if it is about a time ("I like winter")."""
        return self._limits(content, what)

    def _limits_now(self, content: str, what: str) -> Limits:
        return {} if self._only.fullmatch(_fold(what)) else self._named(self._said, content)

    def at(self, local: datetime) -> Limits:
        """The times that hold at a local time; an empty set where none of a kind does."""
        zone = str(getattr(local.tzinfo, "key", ""))
        shift = HALF_A_YEAR if zone.startswith(self._southern) else 0
        month = (local.month - 1 + shift) % 12 + 1
        holding = _by_kind(
            one
            for one in self._times
            if one.holds(local.time().replace(tzinfo=None), local.isoweekday(), month)
        )
        return {**{one.kind: frozenset[str]() for one in self._times}, **holding}

    def moment(self, local: datetime | None, *, scene: str | None = None, query: str = "") -> Moment:
        """What is so for a query: by the clock where the user is (None: not known), unless the query says otherwise."""
        clock = self.at(local) if local is not None else {}
        return Moment({**clock, **self._named(self._asked, query)}, scene)

    def _named(self, terms: Terms, text: str) -> Limits:
        found = terms.named_in(self._ignored.sub(" ", _fold(text)))
        return _by_kind(self._times[number] for number in found)


def judge(limits: Limits, moment: Moment, scenes: frozenset[str] = frozenset()) -> Verdict:
    """Whether what is limited to these times, and to one of these scenes, is meant for the moment.

    One limit that is known to fail fails the whole; a limit nobody knows about is silent.
    """
    known = [bool(names & moment.times[kind]) for kind, names in limits.items() if kind in moment.times]
    if scenes and moment.scene is not None:
        known.append(moment.scene in scenes)
    if not known:
        return Verdict.SILENT
    return Verdict.HOLDS if all(known) else Verdict.FAILS


def verdict(memory: Memory, moment: Moment, daytimes: Daytimes) -> Verdict:
    """Whether a memory is meant for the moment.

    Only a preference is limited by the times it names: in a fact they are the fact ("I work nights"), in an event
    when it was. What protects the user never steps back.
    """
    timed = memory.category is Category.PREFERENCE
    limits = daytimes.limits(memory.content, memory.object) if timed else {}
    found = judge(limits, moment, frozenset({memory.scene}) if memory.scene is not None else frozenset())
    protects = memory.safety or memory.layer is Layer.RESTRICTION
    return Verdict.SILENT if protects and found is Verdict.FAILS else found


def fit(memory: Memory, moment: Moment, daytimes: Daytimes, rules: RecallRules) -> float:
    """The factor of a memory's score: more when it is meant for the moment, less when for another, else 1."""
    return factor(verdict(memory, moment, daytimes), rules)


def factor(found: Verdict, rules: RecallRules) -> float:
    """What a verdict counts in a score."""
    return {Verdict.HOLDS: rules.fit_holds, Verdict.FAILS: rules.fit_fails, Verdict.SILENT: 1.0}[found]


def _by_kind(times: Iterable[When]) -> Limits:
    found: dict[str, set[str]] = {}
    for one in times:
        found.setdefault(one.kind, set()).add(one.name)
    return {kind: frozenset(names) for kind, names in found.items()}


def _between(clock: time, begin: time, end: time) -> bool:
    return begin <= clock < end if begin < end else clock >= begin or clock < end


def _any_of(words: Iterable[str]) -> re.Pattern[str]:
    """Any of the words, the longest that stands there; none of no words."""
    folded = sorted(map(_fold, words), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, folded)) or r"(?!)")


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
