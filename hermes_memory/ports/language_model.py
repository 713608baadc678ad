"""A language model that is asked a question and answers in JSON of a given form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from hermes_memory.core.candidate import Usage


class Finish(StrEnum):
    """Why an answer ended."""

    STOP = "stop"
    LENGTH = "length"  # cut: what there is of it is no answer
    OTHER = "other"  # refused, aborted, filtered: no answer either


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """``system`` is the same for every user, and so read once by an engine with a prefix cache; ``user`` follows it.

    ``schema`` is a JSON schema that the answer keeps to where the model can be held to one, with the name ``form``.
    """

    system: str
    user: str
    form: str
    schema: Mapping[str, Any]
    max_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What came back, unread: ``text`` may be anything, also with ``Finish.STOP``."""

    text: str
    finish: Finish
    usage: Usage


class LanguageModel(Protocol):
    """Answers questions; calls at once are the engine's to batch."""

    @property
    def name(self) -> str:
        """The model's name, kept in the evidence beside the prompt's."""
        ...

    async def answer(self, question: Question) -> Completion:
        """One answer.

        Raises:
            ModelFailed: none came: busy, away, too slow. ``after_s`` says how long it asks to be left alone.
            InvalidConfig: the model, its key or the request is refused; asking again is of no use.
        """
        ...
