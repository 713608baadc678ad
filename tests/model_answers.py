"""An extractor over a language model that answers what a test tells it to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from hermes_memory.adapters.dimension_file import load_dimensions
from hermes_memory.adapters.grounding_file import load_grounding
from hermes_memory.adapters.model_extractor import ModelExtractor
from hermes_memory.adapters.model_extractor.extractor import Fallback
from hermes_memory.adapters.model_extractor.floor import Floor
from hermes_memory.adapters.model_extractor.floor_file import load_floor
from hermes_memory.adapters.model_extractor.prompt import Prompt, load_prompt
from hermes_memory.adapters.model_extractor.reading import Reader
from hermes_memory.adapters.rule_extractor import RuleExtractor, load_rule_extractor
from hermes_memory.core.candidate import Usage
from hermes_memory.core.dimensions import Dimensions
from hermes_memory.ports.language_model import Completion, Finish, Question

CONFIGS = files("configs")
ONE_CALL = Usage(calls=1, tokens_in=100, tokens_cached=64, tokens_out=10)


class Told:
    """A model that gives its answers one after another; an exception among them is raised. The last one stays."""

    def __init__(self, *answers: Any, name: str = "told-1") -> None:
        self.name = name
        self.answers = list(answers)
        self.asked: list[Question] = []

    async def answer(self, question: Question) -> Completion:
        self.asked.append(question)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Completion):
            return answer
        text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
        return Completion(text=text, finish=Finish.STOP, usage=ONE_CALL)


@cache
def dimensions() -> Dimensions:
    return load_dimensions(CONFIGS / "dimensions.toml")


@cache
def rules() -> RuleExtractor:
    return load_rule_extractor(dimensions())


@cache
def prompt() -> Prompt:
    return load_prompt(CONFIGS / "prompts" / "extract-1.toml", (entry.key for entry in dimensions()))


@cache
def floor() -> Floor:
    grounding = load_grounding(CONFIGS / "words" / "grounding.toml")
    return Floor(rules(), dimensions(), load_floor(CONFIGS / "extraction" / "floor.toml"), grounding)


@cache
def reader() -> Reader:
    return Reader(floor(), dimensions())


def extractor(model: Any, *, fallback: Fallback = "rules", second_opinion: float = 0.8) -> ModelExtractor:
    return ModelExtractor(
        model, prompt(), reader(), floor(), rules(),
        fallback=fallback, second_opinion=second_opinion, max_tokens=700,
    )  # fmt: skip


def statement(quote: str, thing: str, dimension: str, **more: Any) -> dict[str, Any]:
    return {"quote": quote, "turn": "T1", "object": thing, "dimension": dimension, **more}


def saying(*statements: dict[str, Any]) -> dict[str, Sequence[dict[str, Any]]]:
    return {"statements": statements}


for _load in (reader, prompt):  # files are read now and not within a loop
    _load()
