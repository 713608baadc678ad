"""A chat model that is asked for relevances."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hermes_memory.adapters.chat_model import ChatModel
from hermes_memory.adapters.embedders.reading import clipped
from hermes_memory.adapters.openai_endpoint import Endpoint
from hermes_memory.adapters.rerankers.prompt_file import RerankPrompt
from hermes_memory.errors import ModelFailed
from hermes_memory.ports.language_model import Completion, Finish, Question

WHAT = "the reranker"
TOKENS = 32  # of an answer without its numbers, and of each number: far more than either needs
SCHEMA = {
    "type": "object",
    "properties": {"relevance": {"type": "array", "items": {"type": "number"}}},
    "required": ["relevance"],
    "additionalProperties": False,
}


class ChatReranker:
    """Asks once for all texts of a query; an answer that is cut or malformed is a failure, never repaired.

    Args:
        endpoint: Where to ask.
        model: The model's name there.
        prompt: What it is told.
        max_chars: How much of a query and of a text is sent.
    """

    def __init__(
        self, endpoint: Endpoint, model: str, prompt: RerankPrompt, *, max_chars: int = 2048
    ) -> None:
        self._model = ChatModel(endpoint, model, request=prompt.request)
        self._system, self._max_chars = prompt.system, max_chars

    async def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """One relevance in [0, 1] per text."""
        if not texts:
            return []
        asked = {
            "query": clipped(query, self._max_chars),
            "texts": [clipped(text, self._max_chars) for text in texts],
        }
        question = Question(
            system=self._system,
            user=json.dumps(asked, ensure_ascii=False),
            form="relevance",
            schema=SCHEMA,
            max_tokens=TOKENS * (1 + len(texts)),
        )
        return _relevances(await self._model.answer(question), len(texts))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._model.aclose()


def _relevances(answer: Completion, count: int) -> list[float]:
    """The numbers of an answer. Raises ModelFailed for one that is cut, malformed or of another length."""
    if answer.finish is Finish.LENGTH:
        raise ModelFailed(WHAT, "the answer was cut off")
    try:
        said = json.loads(answer.text)["relevance"]
    except (KeyError, TypeError, ValueError):
        raise ModelFailed(WHAT, "the answer is not the JSON that was asked for") from None
    if not isinstance(said, list) or len(said) != count:
        raise ModelFailed(WHAT, f"not one relevance for each of {count} texts")
    if not all(_is_relevance(value) for value in said):
        raise ModelFailed(WHAT, "a relevance is not a number in [0, 1]")
    return [float(value) for value in said]


def _is_relevance(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
