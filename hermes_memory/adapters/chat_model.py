"""A chat model behind an OpenAI-compatible endpoint: ``POST {base_url}/chat/completions``."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from hermes_memory.adapters.openai_endpoint import Endpoint
from hermes_memory.core.candidate import Usage
from hermes_memory.errors import ModelFailed
from hermes_memory.ports.language_model import Completion, Finish, Question

log = logging.getLogger(__name__)

AnswerForm = Literal["schema", "object"]
FINISHES = {"stop": Finish.STOP, "length": Finish.LENGTH}


class ChatModel:
    """Asks once for each question; what comes back is taken apart and not judged.

    Args:
        endpoint: Where to ask.
        model: The model's name there.
        answer_form: Whether the endpoint holds the model to the question's schema, or only to being a JSON object.
        request: What else is sent with each question; it wins over what would be sent.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        *,
        answer_form: AnswerForm = "schema",
        request: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self._endpoint, self._model, self._answer_form = endpoint, model, answer_form
        self._request = dict(request)
        self._told = False  # that the endpoint reports no tokens

    @property
    def name(self) -> str:
        """The model's name at the endpoint."""
        return self._model

    async def answer(self, question: Question) -> Completion:
        """One answer. Raises as the port says; an envelope that is not the API's is a ModelFailed."""
        body = {
            "model": self._model,
            "messages": [
                {"role": "system", "content": _sendable(question.system)},
                {"role": "user", "content": _sendable(question.user)},
            ],
            "max_tokens": question.max_tokens,
            "temperature": 0,
            "response_format": self._response_format(question),
            **self._request,
        }
        return self._completion(await self._endpoint.post("chat/completions", body))

    async def listed(self) -> bool:
        """Whether the endpoint lists the model among its own. Raises as ``answer``; InvalidConfig also without a list."""
        answer = await self._endpoint.get("models")
        try:
            return any(model["id"] == self._model for model in answer["data"])
        except (KeyError, TypeError):
            raise ModelFailed(self._endpoint.what, "the endpoint's answer lists no models") from None

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()

    def _response_format(self, question: Question) -> dict[str, Any]:
        if self._answer_form == "object":
            return {"type": "json_object"}
        strict = _requires_all(question.schema)
        form = {"name": question.form, "strict": strict, "schema": dict(question.schema)}
        return {"type": "json_schema", "json_schema": form}

    def _completion(self, answer: Any) -> Completion:
        try:
            choice = answer["choices"][0]
            message, ended = choice["message"], choice.get("finish_reason")
            text, refused = message["content"], message.get("refusal")
        except (AttributeError, IndexError, KeyError, TypeError):
            raise ModelFailed(self._endpoint.what, "the endpoint's answer holds no message") from None
        if not isinstance(text, str | None):
            raise ModelFailed(self._endpoint.what, "the endpoint's answer holds no text")
        finish = FINISHES.get(ended, Finish.OTHER) if isinstance(ended, str) else Finish.OTHER
        if refused or (text is None and finish is Finish.STOP):
            finish = Finish.OTHER
        usage = _usage(answer.get("usage"))
        if not usage.tokens_in and not self._told:
            self._told = True
            what = self._endpoint.what
            log.warning("the endpoint of %s reports no tokens: budgets and costs count none of them", what)
        return Completion(text=text or "", finish=finish, usage=usage)


def _requires_all(node: Any) -> bool:
    """Whether no object of a schema may leave a key out: only then does the API take it as a strict one."""
    if isinstance(node, Mapping):
        keys = node.get("properties")
        whole = not isinstance(keys, Mapping) or set(keys) == set(node.get("required", ()))
        return whole and all(_requires_all(value) for value in node.values())
    return not isinstance(node, list) or all(_requires_all(value) for value in node)


def _sendable(text: str) -> str:
    """``text`` without lone surrogates, which no UTF-8 can carry; every character keeps its place."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _usage(said: Any) -> Usage:
    """One call's tokens. What an endpoint does not say, or not as a number, counts as 0."""
    tokens_in = _count(said, "prompt_tokens")
    details = said.get("prompt_tokens_details") if isinstance(said, Mapping) else None
    return Usage(
        calls=1,
        tokens_in=tokens_in,
        tokens_cached=min(tokens_in, _count(details, "cached_tokens")),
        tokens_out=_count(said, "completion_tokens"),
    )


def _count(said: Any, key: str) -> int:
    value = said.get(key) if isinstance(said, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
