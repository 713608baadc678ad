"""A language model in this process: vLLM's engine, its answers held to a JSON schema while they are written.

Questions at once are batched by the engine, token by token. The static part of a question is the same for all users and
comes first, so that its full blocks are read once and then stand in the engine's prefix cache.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, takewhile
from typing import Any

from hermes_memory.adapters.vllm_engine import started
from hermes_memory.core.candidate import Usage
from hermes_memory.errors import InvalidConfig, ModelFailed
from hermes_memory.ports.language_model import Completion, Finish, Question

log = logging.getLogger(__name__)

# Chinese and English, Apache 2.0, 8 GB of weights: with its context of 32k it fits a card of 24 GB. No model that
# thinks aloud first: an answer that is held to a schema has no room for that.
RECOMMENDED = "Qwen/Qwen3-4B-Instruct-2507"
WHAT = "the model"
FINISHES = {"stop": Finish.STOP, "length": Finish.LENGTH}
STRUCTURED = {"backend": "xgrammar", "disable_any_whitespace": True}  # white space is tokens that say nothing
MUTE = 3  # questions in a row without an answer in time: the engine hangs


@dataclass(frozen=True, slots=True)
class Loaded:
    """The engine as it was loaded: ``context`` and ``block`` in tokens, ``prefix`` those of each static part."""

    model: str
    context: int
    block: int
    prefix: tuple[int, ...] = ()


class BatchWatch:
    """How many questions the engine works on together, and how many wait. One of vLLM's stat loggers, by its methods."""

    def __init__(self) -> None:
        self.running = self.waiting = self.widest = 0

    def __call__(self, *_: Any, **__: Any) -> BatchWatch:
        """A logger for each engine is what vLLM makes: there is one."""
        return self

    def record(self, scheduler_stats: Any, *_: Any, **__: Any) -> None:
        """After each step of the engine."""
        if scheduler_stats is not None:
            self.running, self.waiting = scheduler_stats.num_running_reqs, scheduler_stats.num_waiting_reqs
            self.widest = max(self.widest, self.running)

    def log(self) -> None:
        """Nothing is written."""

    def log_engine_initialized(self) -> None:
        """Nothing is written."""

    def record_sleep_state(self, *_: Any) -> None:
        """It never sleeps."""


class VllmModel:
    """Answers questions with an engine that it starts, and ends with ``aclose``.

    Args:
        model: A model's name, or the folder it lies in.
        timeout_s: For one answer, waiting included; one that is late is taken back from the engine.
        arguments: Further ones of ``AsyncEngineArgs``, as vLLM names them.
        stat_loggers: Who is told the engine's own figures; vLLM's factories.
    """

    def __init__(
        self, model: str, *, timeout_s: float, arguments: Mapping[str, Any], stat_loggers: Sequence[Any] = ()
    ) -> None:
        self._model, self._timeout_s = model, timeout_s
        self.batch = BatchWatch()
        self._arguments, self._stat_loggers = dict(arguments), [self.batch, *stat_loggers]
        self._engine: Any = None
        self._loaded = Loaded(model, 0, 0)
        self._numbers = count(1)
        self._late = 0  # answers in a row that did not come in time

    @property
    def name(self) -> str:
        """The model's name; see ``spoken``."""
        return spoken(self._model)

    @property
    def loaded(self) -> Loaded:
        """What was loaded."""
        return self._loaded

    async def start(self) -> None:
        """Load the engine: minutes, in which this loop does nothing else (the engine's sockets belong to it).

        Raises:
            InvalidConfig: vLLM is not installed, or an argument is not one of its engine's.
            ModelFailed: the engine does not start.
        """
        arguments = {"structured_outputs_config": STRUCTURED, **self._arguments, "model": self._model}
        self._engine = started(WHAT, "extractor", arguments, stat_loggers=self._stat_loggers)
        config = self._engine.vllm_config
        self._loaded = Loaded(self._model, config.model_config.max_model_len, config.cache_config.block_size)

    async def warm_up(self, questions: Sequence[Question]) -> Loaded:
        """Have the static part of each question read and its schema compiled before the first user asks."""
        prefixes = []
        for question in questions:
            tokens, others = self._tokens(question), self._tokens(replace(question, user=" "))
            same = takewhile(lambda pair: pair[0] == pair[1], zip(tokens, others, strict=False))
            prefixes.append(sum(1 for _ in same))
            await self.answer(replace(question, max_tokens=1))
        self._loaded = replace(self._loaded, prefix=tuple(prefixes))
        return self._loaded

    async def answer(self, question: Question) -> Completion:
        """One answer. Raises as the port says; whoever stops waiting frees the engine of the question."""
        tokens = await asyncio.to_thread(self._tokens, question)
        room = self._loaded.context - len(tokens)
        if room < 1:
            raise ModelFailed(
                WHAT, f"its context holds {self._loaded.context} tokens, the question has {len(tokens)}"
            )
        try:
            async with asyncio.timeout(self._timeout_s):
                output = await self._generate(tokens, _sampling(question, min(question.max_tokens, room)))
        except TimeoutError:
            self._late += 1
            raise ModelFailed(WHAT, f"no answer within {self._timeout_s:g} s") from None
        self._late = 0
        return _completion(tokens, output)

    async def check(self) -> None:
        """Raises ModelFailed where the engine is dead, or has long not answered in time."""
        from vllm.v1.engine.exceptions import EngineDeadError

        if self._late >= MUTE:
            raise ModelFailed(WHAT, f"the last {self._late} answers did not come in time")
        try:
            await self._engine.check_health()
        except EngineDeadError:
            raise ModelFailed(WHAT, "the engine is dead") from None

    async def aclose(self) -> None:
        """End the engine and its processes, off the loop."""
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """As ``aclose``; blocks. May be called twice."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.shutdown()

    def _tokens(self, question: Question) -> list[int]:
        """The question by the model's own chat template; a model that can think aloud is told not to."""
        said = [
            {"role": "system", "content": _sendable(question.system)},
            {"role": "user", "content": _sendable(question.user)},
        ]
        found: Any = self._engine.get_tokenizer().apply_chat_template(
            said, add_generation_prompt=True, tokenize=True, return_dict=True, enable_thinking=False
        )
        return list(found["input_ids"])

    async def _generate(self, tokens: list[int], sampling: Any) -> Any:
        from vllm.exceptions import VLLMClientError
        from vllm.inputs.engine import tokens_input

        output = None
        try:
            stream = self._engine.generate(tokens_input(tokens), sampling, f"hermes-{next(self._numbers)}")
            async for output in stream:  # noqa: B007  # the last one is the whole answer
                pass
        except (VLLMClientError, ValueError) as error:
            raise InvalidConfig(
                "extractor", f"the engine refuses the question: {type(error).__name__}"
            ) from None
        except Exception as error:  # noqa: BLE001  # the engine's own: what it says may quote the question
            raise ModelFailed(WHAT, f"the engine failed: {type(error).__name__}") from None
        return output


def spoken(model: str) -> str:
    """How evidence and people name a model: by its name, or by the last part of the folder that it lies in."""
    return model.rstrip("/").rpartition("/")[2] if model.startswith("/") else model


def _sampling(question: Question, max_tokens: int) -> Any:
    """The same schema is the same text, by which the engine finds the grammar that it has compiled; its order is kept."""
    from vllm.sampling_params import RequestOutputKind, SamplingParams, StructuredOutputsParams

    return SamplingParams(
        temperature=0.0,
        max_tokens=max_tokens,
        structured_outputs=StructuredOutputsParams(json=json.dumps(question.schema)),
        output_kind=RequestOutputKind.FINAL_ONLY,
    )


def _completion(tokens: Sequence[int], output: Any) -> Completion:
    if output is None or not output.outputs:
        raise ModelFailed(WHAT, "the engine gave no answer")
    said = output.outputs[0]
    usage = Usage(
        calls=1,
        tokens_in=len(tokens),
        tokens_cached=output.num_cached_tokens or 0,
        tokens_out=len(said.token_ids),
    )
    return Completion(text=said.text, finish=FINISHES.get(said.finish_reason, Finish.OTHER), usage=usage)


def _sendable(text: str) -> str:
    """``text`` without lone surrogates, which no tokenizer takes."""
    return text.encode("utf-8", "replace").decode("utf-8")
