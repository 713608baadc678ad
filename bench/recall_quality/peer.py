"""mem0 on the same turns with the same vectors, where it is installed: no model extracts, its own store searches."""

from __future__ import annotations

import importlib
import importlib.util
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from bench.recall_quality.data import Person
from bench.recall_quality.scores import DEPTH, Answer, timed
from hermes_memory.ports.embedder import Embedder

NAME = "mem0, infer off"
USAGE = {"MEM0_TELEMETRY": "False", "OPENAI_API_KEY": "unused"}  # it makes a client that is never called


def installed() -> bool:
    """Whether there is a peer to compare with: ``pip install mem0ai``."""
    return importlib.util.find_spec("mem0") is not None


class Prepared:
    """In the place of mem0's embedder: what was embedded before, with the prefixes of queries and passages."""

    def __init__(self, queries: Mapping[str, list[float]], passages: Mapping[str, list[float]]) -> None:
        self._queries, self._passages = queries, passages

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        """The vector of a text that is known."""
        return (self._queries if memory_action == "search" else self._passages)[text]


async def answers(people: Sequence[Person], embedder: Embedder) -> list[Answer]:
    """mem0's answer to each question, every turn stored as ``[date] speaker: text``."""
    texts = sorted({turn.dated for person in people for turn in person.turns})
    asked = sorted({question.text.strip() for person in people for question in person.questions})
    prepared = Prepared(
        dict(zip(asked, (await embedder.queries(asked)).tolist(), strict=True)),
        dict(zip(texts, (await embedder.passages(texts)).tolist(), strict=True)),
    )
    with tempfile.TemporaryDirectory(prefix="hermes-bench-") as folder:
        memory = _memory(folder, embedder.info.dimension)
        memory.embedding_model = prepared
        for person in people:
            for turn in person.turns:
                said = [{"role": "user", "content": turn.dated}]
                memory.add(said, user_id=person.name, infer=False, metadata={"turn": turn.id})
        return [answer for person in people for answer in _each(memory, person)]


def _each(memory: Any, person: Person) -> Iterator[Answer]:
    of_person = {"user_id": person.name}
    for question in person.questions:
        found, taken = timed(
            partial(memory.search, question.text, filters=of_person, top_k=DEPTH, threshold=0.0)
        )
        yield Answer(question, [frozenset({hit["metadata"]["turn"]}) for hit in found["results"]], taken)


def _memory(folder: str, dimension: int) -> Any:
    os.environ.update(USAGE)
    os.environ["MEM0_DIR"] = folder
    store = {
        "collection_name": "bench",
        "path": f"{folder}/qdrant",
        "embedding_model_dims": dimension,
        "on_disk": True,
    }
    return importlib.import_module("mem0").Memory.from_config(
        {
            "vector_store": {"provider": "qdrant", "config": store},
            "embedder": {"provider": "openai", "config": {"embedding_dims": dimension}},
            "llm": {"provider": "openai", "config": {}},
            "history_db_path": f"{folder}/history.db",
        }
    )
