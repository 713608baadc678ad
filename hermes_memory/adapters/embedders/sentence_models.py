"""Embeddings from a sentence-transformers model in this process; the extra ``st`` brings what it needs."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from hermes_memory.adapters.embedders.batching import BatchingEmbedder
from hermes_memory.adapters.model_thread import ModelThread
from hermes_memory.errors import InvalidConfig
from hermes_memory.ports.embedder import EmbedderInfo

LIBRARY = "sentence_transformers"


def imported(section: str) -> Any:
    """The library, imported now. Raises InvalidConfig that says how to install it."""
    try:
        return importlib.import_module(LIBRARY)
    except ImportError as error:
        raise InvalidConfig(
            f"{section}.kind", "needs sentence-transformers: pip install 'hermes-memory[st]'"
        ) from error


@dataclass(frozen=True, slots=True)
class Prompt:
    """What stands before a text: ``prefix`` as it is, or the model's own prompt by ``name``; of none, its usual one."""

    setting: str
    prefix: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        if self.prefix and self.name:
            raise InvalidConfig(self.setting, "has a prefix and a prompt: one of them at most")

    def arguments(self, model: Any) -> dict[str, str]:
        """As the library's ``encode`` takes it. Raises InvalidConfig for a name that the model does not have."""
        if self.prefix:
            return {"prompt": self.prefix}
        if not self.name:
            return {}
        if self.name not in model.prompts:
            known = ", ".join(sorted(model.prompts)) or "none"
            raise InvalidConfig(self.setting, f"is not a prompt of the model; it has: {known}")
        return {"prompt_name": self.name}


class SentenceTransformerEmbedder(BatchingEmbedder):
    """Embeds on one worker thread; the model is loaded on first use or by ``warm``.

    Args:
        info: The model's name and the dimension of its vectors.
        path: Where the model is loaded from; without one, by its name.
        device: As torch names it; empty: the library chooses.
        batch: Most texts that the model is asked at once, so that a query never waits for a long import.
        max_chars: How much of a text is read, without its prefix.
        query_prefix: Stands before each query, as it is.
        passage_prefix: Stands before each passage.
        query_prompt: In place of a prefix: the name of one of the model's own prompts.
        passage_prompt: The same for passages.
        cache_size: How many query vectors are remembered by their text.
    """

    def __init__(
        self,
        info: EmbedderInfo,
        *,
        path: str = "",
        device: str = "",
        batch: int = 16,
        max_chars: int = 2048,
        query_prefix: str = "",
        passage_prefix: str = "",
        query_prompt: str = "",
        passage_prompt: str = "",
        cache_size: int = 1024,
    ) -> None:
        super().__init__(info, batch=batch, max_chars=max_chars, cache_size=cache_size)
        self._source, self._device = path or info.name, device
        self._prompts = {
            True: Prompt("embedder.query_prompt", query_prefix, query_prompt),
            False: Prompt("embedder.passage_prompt", passage_prefix, passage_prompt),
        }
        self._model: ModelThread[Any] = ModelThread(self._load, "embedder")

    async def aclose(self) -> None:
        """Let the worker thread go; texts still waiting are given up."""
        self._model.close()

    async def _embed(self, texts: list[str], query: bool) -> NDArray[Any]:
        rows: NDArray[Any] = await self._model.run(lambda model: self._encode(model, texts, query))
        return rows

    def _encode(self, model: Any, texts: list[str], query: bool) -> Any:
        encode = model.encode_query if query else model.encode_document
        return encode(
            texts,
            batch_size=self._batch,
            show_progress_bar=False,
            convert_to_numpy=True,
            **self._prompts[query].arguments(model),
        )

    def _load(self) -> Any:
        library = imported("embedder")
        try:
            return library.SentenceTransformer(self._source, device=self._device or None)
        except (OSError, ValueError, RuntimeError) as error:
            raise InvalidConfig("embedder.model", f"cannot be loaded: {type(error).__name__}") from error
