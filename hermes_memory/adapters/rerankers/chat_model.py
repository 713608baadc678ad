"""A chat model behind an OpenAI-compatible endpoint that is asked for relevances: ``POST {base_url}/chat/completions``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hermes_memory.adapters.embedders.reading import clipped
from hermes_memory.adapters.openai_endpoint import Endpoint
from hermes_memory.adapters.rerankers.prompt_file import RerankPrompt
from hermes_memory.errors import ModelFailed

WHAT = "the reranker"
SCHEMA = {
    "type": "object",
    "properties": {"relevance": {"type": "array", "items": {"type": "number"}}},
    "required": ["relevance"],
    "additionalProperties": False,
}
RESPONSE_FORMAT = {
    "type": "json_schema",
    "json_schema": {"name": "relevance", "strict": True, "schema": SCHEMA},
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
        self._endpoint, self._prompt, self._max_chars = endpoint, prompt, max_chars
        self._asked = {**prompt.request, "model": model, "response_format": RESPONSE_FORMAT}

    async def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """One relevance in [0, 1] per text."""
        if not texts:
            return []
        question = {
            "query": clipped(query, self._max_chars),
            "texts": [clipped(text, self._max_chars) for text in texts],
        }
        messages = [
            {"role": "system", "content": self._prompt.system},
            {"role": "user", "content": json.dumps(question, ensure_ascii=False)},
        ]
        answer = await self._endpoint.post("chat/completions", {**self._asked, "messages": messages})
        return _relevances(answer, len(texts))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()


def _relevances(answer: Any, count: int) -> list[float]:
    """The numbers of an answer. Raises ModelFailed for one that is cut, malformed or of another length."""
    try:
        choice = answer["choices"][0]
        said = json.loads(choice["message"]["content"])["relevance"]
    except (IndexError, KeyError, TypeError, ValueError):
        raise ModelFailed(WHAT, "the answer is not the JSON that was asked for") from None
    if choice.get("finish_reason") == "length":
        raise ModelFailed(WHAT, "the answer was cut off")
    if not isinstance(said, list) or len(said) != count:
        raise ModelFailed(WHAT, f"not one relevance for each of {count} texts")
    if not all(_is_relevance(value) for value in said):
        raise ModelFailed(WHAT, "a relevance is not a number in [0, 1]")
    return [float(value) for value in said]


def _is_relevance(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
