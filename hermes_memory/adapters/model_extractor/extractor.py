"""Extraction by a language model: asked once for a batch, once more if its answer has no form, then the fall-back."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field, replace
from typing import Literal

from hermes_memory.adapters.model_extractor.contract import Answer, Unusable, parse, parse_verdicts
from hermes_memory.adapters.model_extractor.floor import Floor, Hearing
from hermes_memory.adapters.model_extractor.prompt import Prompt, Sheet, sheet_of
from hermes_memory.adapters.model_extractor.reading import Read, Reader, account
from hermes_memory.adapters.rule_extractor import RuleExtractor
from hermes_memory.adapters.rule_extractor.when import zone
from hermes_memory.core.candidate import OVER_BUDGET, Candidate, Extraction, ExtractionRequest, Refusal, Usage
from hermes_memory.core.model import Role, Turn
from hermes_memory.core.reasons import Reason
from hermes_memory.errors import ExtractionFailed, InvalidConfig, ModelFailed
from hermes_memory.ports.language_model import Completion, Finish, LanguageModel, Question

log = logging.getLogger(__name__)

Fallback = Literal["rules", "park"]
MAX_NAME_CHARS = 96  # of an extractor's name, as evidence keeps it
CUT = "the answer was cut off"


@dataclass(slots=True)
class _Try:
    """What one try has used so far."""

    usage: Usage = field(default_factory=Usage)


class ModelExtractor:
    """Asks a language model about whole batches. Port: ``Extractor``.

    Args:
        model: Who is asked.
        prompt: What it is told.
        reader: What becomes of its answers.
        floor: What the rules hear, for both.
        rules: Reads in its place where ``fallback`` is ``rules``.
        fallback: ``rules``, or ``park``: turns that cannot be read wait for an operator.
        second_opinion: Above this importance a statement is asked about a second time.
        max_tokens: Of one answer.
    """

    def __init__(
        self,
        model: LanguageModel,
        prompt: Prompt,
        reader: Reader,
        floor: Floor,
        rules: RuleExtractor,
        *,
        fallback: Fallback,
        second_opinion: float,
        max_tokens: int,
    ) -> None:
        self._model, self._prompt, self._reader = model, prompt, reader
        self._floor, self._rules = floor, rules
        self._fallback, self._second_opinion, self._max_tokens = fallback, second_opinion, max_tokens

    @property
    def name(self) -> str:
        """Prompt and model, kept in the evidence."""
        return _printable(f"llm/{self._prompt.name}/{self._model.name}")

    async def extract(self, request: ExtractionRequest) -> Extraction:
        """What the model reads and the rules believe. Raises ExtractionFailed, and nothing else."""
        for name in {turn.timezone for turn in request.turns}:
            await asyncio.to_thread(zone, name)  # reads a file the first time
        hearing = self._floor.hear(request)
        if all(heard.filler for heard in hearing.heard.values()):
            return self._silent(request, hearing)
        if request.tokens_left is not None and request.tokens_left <= 0:
            return self._fall_back(request, OVER_BUDGET, OVER_BUDGET, _Try())
        used = _Try()
        try:
            return await self._asked(request, hearing, used)
        except ModelFailed as error:
            if request.last_try and self._fallback == "rules":
                return self._fall_back(request, error.code, error.detail, used)
            raise ExtractionFailed(error.detail, error.after_s, used.usage.tokens) from error
        except InvalidConfig as error:
            if request.last_try and self._fallback == "rules":
                return self._fall_back(request, error.code, error.detail, used)
            raise ExtractionFailed(error.detail, 0.0, used.usage.tokens) from error

    async def aclose(self) -> None:
        """End the model's connections, if it has some."""
        if (close := getattr(self._model, "aclose", None)) is not None:
            await close()

    async def _asked(self, request: ExtractionRequest, hearing: Hearing, used: _Try) -> Extraction:
        sheet = sheet_of(request)
        answer = await self._answer(sheet, used)
        if isinstance(answer, Unusable):
            why = f"no usable answer: {answer.code}"
            return self._fall_back(request, answer.code, why, used, refused=True)
        read = self._reader.read(answer, sheet, request, hearing)
        await self._ask_again(answer, read, request, used)
        return Extraction(
            extractor=self.name,
            candidates=tuple(read.candidates),
            affirmations=tuple(read.affirmations),
            refusals=tuple(dict.fromkeys(read.refusals)),
            usage=used.usage,
        )

    async def _answer(self, sheet: Sheet, used: _Try) -> Answer | Unusable:
        """The answer, or the second one where the first has no form; then what was wrong with that."""
        first = await self._once(sheet, used)
        if not isinstance(first, Unusable):
            return first
        used.usage += Usage(repairs=1)
        return await self._once(sheet, used, first.problem)

    async def _once(self, sheet: Sheet, used: _Try, problem: str = "") -> Answer | Unusable:
        completion = await self._completion(self._prompt.question(sheet, self._max_tokens, problem), used)
        try:
            return _parsed(completion)
        except Unusable as error:
            used.usage += Usage(invalid=1)
            log.info("a model's answer is unusable: %s", error.code)
            return error

    async def _completion(self, question: Question, used: _Try) -> Completion:
        completion = await self._model.answer(question)
        used.usage += completion.usage
        if completion.finish is Finish.OTHER:
            used.usage += Usage(invalid=1)
            raise ModelFailed("the extractor's model", "the answer was refused or broken off")
        return completion

    async def _ask_again(self, answer: Answer, read: Read, request: ExtractionRequest, used: _Try) -> None:
        """The second opinion (SPEC §4.1.2): what it does not support is refused; one without form is a failed try."""
        grave = {
            said.quote
            for said in answer.statements
            if said.safety or (said.importance or 0) > self._second_opinion
        }
        text = {(turn.session_id, turn.message_id): turn for turn in request.turns}
        doubted = [
            (candidate, quote)
            for candidate in read.candidates
            for quote in (_quote(candidate, text),)
            if candidate.importance > self._second_opinion or any(words in quote for words in grave)
        ]
        if not doubted:
            return
        used.usage += Usage(opinions=len(doubted))
        completion = await self._completion(self._prompt.second(doubted), used)
        try:
            if completion.finish is Finish.LENGTH:
                raise Unusable("schema", CUT)
            supported = parse_verdicts(completion.text, len(doubted))
        except Unusable as error:
            used.usage += Usage(invalid=1)
            raise ModelFailed("the extractor's model", f"no usable second opinion: {error.code}") from None
        denied = [candidate for (candidate, _), yes in zip(doubted, supported, strict=True) if not yes]
        read.candidates = [candidate for candidate in read.candidates if candidate not in denied]
        for candidate in denied:
            read.refuse(text[candidate.span.session_id, candidate.span.message_id], Reason.NOT_SUPPORTED)

    def _silent(self, request: ExtractionRequest, hearing: Hearing) -> Extraction:
        """Nobody is asked about thanks and greetings."""
        read = Read()
        account(read, sheet_of(request), request, hearing)
        return Extraction(extractor=self.name, refusals=tuple(read.refusals))

    def _fall_back(
        self, request: ExtractionRequest, code: str, why: str, used: _Try, *, refused: bool = False
    ) -> Extraction:
        """What the rules read, if they may; ``refused``: the model's answer is counted among the refusals."""
        if self._fallback == "park":
            raise ExtractionFailed(why, 0.0, used.usage.tokens)
        read = self._rules.read(request)
        first = next(turn for turn in request.turns if turn.role is Role.USER)
        told = (Refusal(first.message_id, Reason.SCHEMA, first.session_id),) if refused else ()
        name = _printable(f"{read.extractor} for {self._model.name}")
        return replace(
            read, extractor=name, refusals=(*read.refusals, *told), usage=used.usage, fell_back=code
        )


def _parsed(completion: Completion) -> Answer:
    if completion.finish is Finish.LENGTH:
        raise Unusable("cut", f"{CUT}; say less")
    return parse(completion.text)


def _quote(candidate: Candidate, turns: dict[tuple[str, str], Turn]) -> str:
    span = candidate.span
    return turns[span.session_id, span.message_id].content[span.start : span.end]


def _printable(name: str) -> str:
    return "".join(char if char.isascii() and char.isprintable() else "?" for char in name)[:MAX_NAME_CHARS]
