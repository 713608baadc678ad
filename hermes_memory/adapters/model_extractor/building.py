"""Puts an extractor together."""

from __future__ import annotations

from importlib.resources.abc import Traversable

from hermes_memory.adapters.model_extractor.extractor import Fallback, ModelExtractor
from hermes_memory.adapters.model_extractor.floor import Floor
from hermes_memory.adapters.model_extractor.floor_file import load_floor
from hermes_memory.adapters.model_extractor.prompt import load_prompt, sheet_of
from hermes_memory.adapters.model_extractor.reading import Reader
from hermes_memory.adapters.rule_extractor import load_rule_extractor
from hermes_memory.core.candidate import ExtractionRequest
from hermes_memory.core.dimensions import Dimensions
from hermes_memory.core.grounding import Grounding
from hermes_memory.ports.language_model import LanguageModel, Question


def build_model_extractor(
    model: LanguageModel,
    dimensions: Dimensions,
    *,
    prompt: Traversable,
    floor: Traversable,
    grounding: Grounding,
    fallback: Fallback,
    second_opinion: float,
    max_tokens: int,
) -> ModelExtractor:
    """An extractor that asks ``model``, with the rules of this distribution under it.

    Args:
        prompt: The file of what it is told.
        floor: The file of what the rules hold against it.
        grounding: How words are compared; the entry gate has the same.

    Raises:
        InvalidConfig: a file is missing or does not hold together.
    """
    rules = load_rule_extractor(dimensions)
    ground = Floor(rules, dimensions, load_floor(floor), grounding)
    return ModelExtractor(
        model,
        load_prompt(prompt, (entry.key for entry in dimensions)),
        Reader(ground, dimensions),
        ground,
        rules,
        fallback=fallback,
        second_opinion=second_opinion,
        max_tokens=max_tokens,
    )


def warming_questions(prompt: Traversable, dimensions: Dimensions) -> tuple[Question, ...]:
    """A question about nothing for each static text: what an engine reads before the first user asks."""
    loaded = load_prompt(prompt, (entry.key for entry in dimensions))
    return loaded.question(sheet_of(ExtractionRequest(turns=())), 1), loaded.second(())
