"""What the model answered and what became of it, noted on the way: nothing is changed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from hermes_memory.adapters.model_extractor.contract import FORM, Unusable, parse, parse_verdicts
from hermes_memory.core.candidate import ExtractionRequest, Usage
from hermes_memory.core.model import Role
from hermes_memory.errors import ModelFailed
from hermes_memory.ports.distiller import Distilled, Distiller
from hermes_memory.ports.embedder import Vectors
from hermes_memory.ports.language_model import Completion, Finish, LanguageModel, Question

VALID = "valid"


@dataclass
class Seen:
    """What was seen. ``outputs``: by the form asked for and by what the answer was."""

    outputs: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    statements: int = 0
    candidates: int = 0
    usage: Usage = field(default_factory=Usage)
    batches: int = 0
    fell_back: int = 0
    tries_failed: int = 0
    refused: Counter[str] = field(default_factory=Counter)  # by the extractor
    read: Counter[tuple[str, str]] = field(default_factory=Counter)  # user turns, in batches that were read


class WatchedModel:
    """A language model whose answers are looked at. Port: ``LanguageModel``."""

    def __init__(self, model: LanguageModel, seen: Seen) -> None:
        self._model, self._seen = model, seen

    @property
    def name(self) -> str:
        """The model's."""
        return self._model.name

    async def answer(self, question: Question) -> Completion:
        """The model's."""
        try:
            completion = await self._model.answer(question)
        except ModelFailed as error:
            self._seen.failures[error.why] += 1
            raise
        self._seen.outputs[question.form, self._kind(question, completion)] += 1
        return completion

    def _kind(self, question: Question, completion: Completion) -> str:
        """``valid``, ``cut``, ``other``, or what the contract says is wrong with it."""
        if completion.finish is not Finish.STOP:
            return {Finish.LENGTH: "cut"}.get(completion.finish, "other")
        try:
            if question.form == FORM:
                self._seen.statements += len(parse(completion.text).statements)
            else:
                parse_verdicts(completion.text, len(json.loads(question.user)["statements"]))
        except Unusable as error:
            return error.code
        return VALID


class WatchedDistiller:
    """A distiller whose work is looked at. Port: ``Distiller``."""

    def __init__(self, distiller: Distiller, seen: Seen) -> None:
        self._distiller, self._seen = distiller, seen

    async def distil(self, request: ExtractionRequest) -> Distilled:
        """As the distiller within does."""
        try:
            distilled = await self._distiller.distil(request)
        except Exception:
            self._seen.tries_failed += 1
            raise
        seen, extraction = self._seen, distilled.extraction
        seen.batches += 1
        seen.usage += extraction.usage
        seen.candidates += len(extraction.candidates)
        seen.fell_back += bool(extraction.fell_back)
        seen.refused.update(str(refusal.reason) for refusal in extraction.refusals)
        seen.read.update(
            (turn.session_id, turn.message_id) for turn in request.turns if turn.role is Role.USER
        )
        return distilled

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """As the distiller within does."""
        return await self._distiller.embed(texts)
