"""Both indexes find the same: 500 queries and more in Chinese and English over three users (docs/reference/weaviate.md)."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hermes_memory.adapters.exact_index import ExactIndex
from hermes_memory.adapters.hash_embedder import HashEmbedder
from hermes_memory.adapters.segmenter import Segmenter, read_stop_words
from hermes_memory.adapters.weaviate_index import WeaviateIndex
from hermes_memory.core.ids import UserKey
from hermes_memory.ports.index import Document, Hit

if TYPE_CHECKING:
    from tests.servers import WeaviateAddress

CONFIGS = Path(__file__).parents[2] / "configs"
USERS = (1_250, 300, 60)  # documents of each; the first is what one user may hold at most
QUERIES = 660  # of which 500 and more find something by words
FIRST = 20
LEAST = 0.99
TIE = 1e-4  # whose score is so near to the last one's is as good as it


def texts_of_the_repository() -> list[str]:
    """Every sentence of the embedders' test pairs, in a fixed order."""
    lines = (CONFIGS / "embedders" / "pairs.jsonl").read_text("utf-8").splitlines()
    pairs = [json.loads(line) for line in lines]
    return sorted({pair[side] for pair in pairs for side in ("a", "b") if side in pair})


class Both:
    """The exact index and the same users for another one."""

    def __init__(self) -> None:
        self.exact = ExactIndex()
        self.embedder = HashEmbedder()
        self.segmenter = Segmenter(read_stop_words(CONFIGS / "words"))
        self.texts = texts_of_the_repository()
        self.chance = random.Random(6)  # the same corpus in every run
        self.users = [UserKey("agreement", f"{size}-{uuid.uuid4().hex}") for size in USERS]

    async def fill(self, server: WeaviateIndex) -> None:
        for key, size in zip(self.users, USERS, strict=True):
            documents = [self.document(f"m{row}", self.text()) for row in range(size)]
            for index in (self.exact, server):
                assert await index.put(key, documents) == {}
                assert await index.count(key) == size

    def text(self, sentences: tuple[int, ...] = (1, 1, 2)) -> str:
        """Some sentences, so that lengths differ."""
        return " ".join(self.chance.choices(self.texts, k=self.chance.choice(sentences)))

    def document(self, memory_id: str, text: str) -> Document:
        (vector,) = self.embedder.embed([text])
        archived = self.chance.random() < 0.3
        return Document(memory_id, self.segmenter.words(text), vector, archived)


def overlap(mine: list[Hit], theirs: list[Hit], scores: dict[str, float]) -> int:
    """How many of ``theirs`` belong to the first ones by ``scores``, ties at the cut being as good."""
    floor = mine[-1].score - TIE
    return sum(scores.get(hit.memory_id, float("-inf")) >= floor for hit in theirs)


class Tally:
    def __init__(self) -> None:
        self.wanted = self.found = self.asked = 0
        self.gaps: list[float] = []

    def add(self, mine: list[Hit], theirs: list[Hit], everything: list[Hit]) -> None:
        assert len(mine) == len(theirs)
        self.asked += bool(mine)
        if mine:
            scores = {hit.memory_id: hit.score for hit in everything}
            self.wanted += len(mine)
            self.found += overlap(mine, theirs, scores)
            self.gaps += [abs(hit.score - scores[hit.memory_id]) for hit in theirs if hit.memory_id in scores]

    def __str__(self) -> str:
        return (
            f"{self.found} of {self.wanted} ({self.found / self.wanted:.2%}) in {self.asked} queries; "
            f"scores differ by {max(self.gaps):.2e} at most"
        )


@pytest.fixture
def both() -> Both:
    return Both()


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_both_find_the_same(
    both: Both, weaviate_address: WeaviateAddress, record_property: Callable[[str, object], None]
) -> None:
    name = f"Agreement_{uuid.uuid4().hex}"
    server = WeaviateIndex(
        weaviate_address.url,
        HashEmbedder().info,
        grpc_port=weaviate_address.grpc_port,
        collection=name,
        read_timeout_s=20.0,
    )
    await server.open()
    await both.fill(server)
    near, match = Tally(), Tally()
    for number in range(QUERIES):
        place = number % len(USERS)
        key, size = both.users[place], USERS[place]
        query = both.document("query", both.text((1, 2, 3, 4)))
        archived = (None, False, True)[number // len(USERS) % 3]
        near.add(
            await both.exact.near(key, query.vector, FIRST, archived=archived),
            await server.near(key, query.vector, FIRST, archived=archived),
            await both.exact.near(key, query.vector, size),
        )
        match.add(
            await both.exact.match(key, query.words, FIRST, archived=archived),
            await server.match(key, query.words, FIRST, archived=archived),
            await both.exact.match(key, query.words, size),
        )
    for key in both.users:
        await server.drop(key)
    await server.close()
    for what, tally in (("near", near), ("match", match)):
        record_property(what, str(tally))
        print(f"\n{what}: {tally}")
        assert tally.asked >= 500
        assert tally.found / tally.wanted >= LEAST
    assert max(near.gaps) < 1e-5
