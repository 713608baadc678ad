"""The labelled texts of ``configs/embedders/pairs.jsonl`` with their vectors."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from hermes_memory.core.calibration import Floats
from hermes_memory.ports.embedder import Embedder

FOLDER = Path(__file__).parent.parent / "configs" / "embedders"
# Groups whose texts may well be related, so that their pairs count neither way.
TOUCHING = (
    {"drink", "food", "health", "garden", "pet"}, {"work", "study", "code"}, {"sport", "health", "transport"},
    {"travel", "home", "photo", "garden"}, {"money", "sport", "photo", "home", "game"}, {"social", "family"},
    {"game", "book", "film", "music", "sport", "study", "health"},
    {"work", "sport", "maths", "task", "translate"},
    {"family", "home", "book", "travel", "money"}, {"transport", "music", "task", "health"},
)  # fmt: skip


@dataclass(frozen=True)
class Texts:
    """The labelled texts with their vectors."""

    rows: list[dict[str, str | bool]]
    queries: dict[str, Floats]
    passages: dict[str, Floats]

    def pairs(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        """Same statements, and different statements on one topic."""
        chosen = [row for row in self.rows if row["kind"] == "pair"]
        both = [
            [(str(r["a"]), str(r["b"])) for r in chosen if r["related"] is wanted] for wanted in (True, False)
        ]
        return both[0], both[1]

    def recalls(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        """Related and unrelated (query, memory)."""
        rows = [row for row in self.rows if row["kind"] == "query"]
        related = {(str(r["a"]), str(r["b"])) for r in rows if r["related"]}
        unrelated = {(str(r["a"]), str(r["b"])) for r in rows if not r["related"]}
        asked = {str(r["a"]): str(r["group"]) for r in rows}
        known = {str(r["b"]): str(r["group"]) for r in rows if r["related"]}
        for query, group in asked.items():
            unrelated |= {(query, text) for text, other in known.items() if not _touch(group, other)}
        return sorted(related), sorted(unrelated - related)


def _touch(group: str, other: str) -> bool:
    return group == other or any({group, other} <= near for near in TOUCHING)


def chinese(text: str) -> bool:
    """Whether a text counts as Chinese here."""
    return any("\u4e00" <= char <= "\u9fff" for char in text)


def one_language(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The pairs whose two texts are in the same language."""
    return [pair for pair in pairs if chinese(pair[0]) is chinese(pair[1])]


async def embedded(embedder: Embedder) -> Texts:
    """The pairs of ``pairs.jsonl`` with their vectors."""
    rows = [json.loads(line) for line in (FOLDER / "pairs.jsonl").read_text("utf-8").splitlines()]
    asked = sorted({r["a"] for r in rows if r["kind"] == "query"})
    held = sorted({r["b"] for r in rows} | {r["a"] for r in rows if r["kind"] == "pair"})
    queries, passages = await embedder.queries(asked), await embedder.passages(held)
    return Texts(rows, dict(zip(asked, queries, strict=True)), dict(zip(held, passages, strict=True)))
