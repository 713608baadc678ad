"""Two hundred turns in two languages, as users with one conversation each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from bench.extraction_calls.talks import PERSONA, Message, Session, Talk, locomo, persona
from bench.recall_quality.data import LOCOMO, LOCOMO_ZH, MEMDAILY, read_memdaily

TURNS = 8  # of each user, either side's: one micro-batch


def conversations(turns: int, each: int = TURNS) -> list[Talk]:
    """At least ``turns`` turns, ``each`` of a user: the data sets by turns, two in Chinese, two in English."""
    users = -(-turns // each)
    sources = (
        _said(locomo(LOCOMO_ZH)), _said(persona(PERSONA, users)), _daily(MEMDAILY), _said(locomo(LOCOMO)),
    )  # fmt: skip
    long_enough = [(session[:each] for session in source if len(session) >= each) for source in sources]
    found = (session for group in zip(*long_enough, strict=False) for session in group)
    return [Talk(f"user-{number}", (session,)) for number, session in enumerate(islice(found, users))]


def _said(talks: Iterator[Talk]) -> Iterator[Session]:
    for talk in talks:
        yield from talk.sessions


def _daily(path: Path) -> Iterator[Session]:
    """Messages of a user's days: nobody answers."""
    for person in read_memdaily(path).people:
        yield tuple(Message("user", turn.text) for turn in person.turns)
