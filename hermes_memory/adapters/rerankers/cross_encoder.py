"""A cross-encoder of sentence-transformers in this process; the extra ``st`` brings what it needs."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from hermes_memory.adapters.embedders.reading import clipped
from hermes_memory.adapters.embedders.sentence_models import imported
from hermes_memory.adapters.model_thread import ModelThread
from hermes_memory.errors import InvalidConfig


class CrossEncoderReranker:
    """Scores on one worker thread; the model is loaded on first use or by ``warm``.

    Its logit is always read through the logistic function: many models are published without one, and their
    scores would not be in [0, 1].

    Args:
        model: The model's name, or the folder it is loaded from. It gives one logit for each pair.
        device: As torch names it; empty: the library chooses.
        max_chars: How much of a query and of a text is read.
    """

    def __init__(self, model: str, *, device: str = "", max_chars: int = 2048) -> None:
        self._source, self._device, self._max_chars = model, device, max_chars
        self._model: ModelThread[Any] = ModelThread(self._load, "reranker")
        self._activation: Any = None

    async def warm(self) -> None:
        """Load the model now rather than with the first query."""
        await self.score("warm", ["warm"])

    async def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """One relevance in [0, 1] per text."""
        asked = clipped(query, self._max_chars)
        pairs = [(asked, clipped(text, self._max_chars)) for text in texts]
        return await self._model.run(lambda model: self._predict(model, pairs)) if pairs else []

    async def aclose(self) -> None:
        """Let the worker thread go; what still waits is given up."""
        self._model.close()

    def _predict(self, model: Any, pairs: list[tuple[str, str]]) -> list[float]:
        scores = model.predict(pairs, activation_fn=self._activation, show_progress_bar=False)
        return [float(score) for score in scores]

    def _load(self) -> Any:
        library = imported("reranker")
        try:
            model = library.CrossEncoder(self._source, device=self._device or None)
        except (OSError, ValueError, RuntimeError) as error:
            raise InvalidConfig("reranker.model", f"cannot be loaded: {type(error).__name__}") from error
        if model.num_labels != 1:
            raise InvalidConfig(
                "reranker.model", f"gives {model.num_labels} scores for a pair; one relevance is needed"
            )
        self._activation = importlib.import_module("torch").nn.Sigmoid()
        return model
