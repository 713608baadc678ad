"""What every ``VectorIndex`` must do; an adapter's tests inherit it and give the index (STYLE, Tests).

class TestExactIndex(IndexSuite):
    @pytest.fixture
    async def index(self):
        yield ExactIndex()
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import numpy as np
import pytest

from hermes_memory.core.ids import UserKey
from hermes_memory.ports.embedder import Vector
from hermes_memory.ports.index import Document, VectorIndex

DIMENSION = 8


def axis(number: int, tilt: float = 0.0) -> Vector:
    """The unit vector along one axis, tilted towards the next."""
    vector = np.zeros(DIMENSION, np.float32)
    vector[number], vector[(number + 1) % DIMENSION] = 1.0, tilt
    return np.asarray(vector / np.linalg.norm(vector), np.float32)


def document(
    memory_id: str, words: Sequence[str] = (), vector: Vector | None = None, *, archived: bool = False
) -> Document:
    """A document with a vector along the first axis unless told otherwise."""
    return Document(memory_id, tuple(words), axis(0) if vector is None else vector, archived)


class IndexSuite:
    """Inherit it with a fixture ``index``; each test takes fresh users, so one server serves them all."""

    @pytest.fixture
    def key(self) -> UserKey:
        """A user whom nobody has used."""
        return UserKey("suite", uuid.uuid4().hex)

    async def test_unknown_user_is_empty(self, index: VectorIndex, key: UserKey) -> None:
        """Asking about a user without documents answers nothing, and removing from them does nothing."""
        assert await index.count(key) == 0
        assert await index.near(key, axis(0), 5) == []
        assert await index.match(key, ["tea"], 5) == []
        await index.remove(key, ["none"])
        await index.drop(key)
        assert await index.count(key) == 0

    async def test_near_orders_by_cosine(self, index: VectorIndex, key: UserKey) -> None:
        """Scores are cosines, best first, at most ``limit``."""
        await index.put(
            key, [document("far", [], axis(3)), document("mid", [], axis(0, 1.0)), document("hit")]
        )
        hits = await index.near(key, axis(0), 2)
        assert [hit.memory_id for hit in hits] == ["hit", "mid"]
        assert hits[0].score == pytest.approx(1.0, abs=1e-3)
        assert hits[1].score == pytest.approx(0.7071, abs=1e-3)
        everything = await index.near(key, axis(0), 10)
        assert [hit.memory_id for hit in everything] == ["hit", "mid", "far"]
        assert everything[-1].score == pytest.approx(0.0, abs=1e-3)

    async def test_match_orders_by_words(self, index: VectorIndex, key: UserKey) -> None:
        """More of the words is better; documents without any are left out; every score is positive."""
        await index.put(
            key,
            [
                document("both", ["乌龙茶", "下午"]),
                document("one", ["乌龙茶", "早上"]),
                document("none", ["咖啡", "晚上"]),
            ],
        )
        hits = await index.match(key, ["乌龙茶", "下午"], 5)
        assert [hit.memory_id for hit in hits] == ["both", "one"]
        assert hits[0].score > hits[1].score > 0
        assert [hit.memory_id for hit in await index.match(key, ["乌龙茶", "下午"], 1)] == ["both"]
        assert await index.match(key, [], 5) == []
        assert await index.match(key, ["绿茶"], 5) == []

    async def test_words_are_taken_whole(self, index: VectorIndex, key: UserKey) -> None:
        """A word is not found by a part of it, and words with marks in them are words."""
        await index.put(key, [document("a", ["a.b@example.com", "3.5"]), document("b", ["乌龙茶"])])
        assert [hit.memory_id for hit in await index.match(key, ["a.b@example.com"], 5)] == ["a"]
        assert [hit.memory_id for hit in await index.match(key, ["3.5"], 5)] == ["a"]
        assert await index.match(key, ["乌龙"], 5) == []
        assert await index.match(key, ["example"], 5) == []

    async def test_feeding_twice_changes_nothing(self, index: VectorIndex, key: UserKey) -> None:
        """The outbox delivers at least once."""
        documents = [document("a", ["tea"]), document("b", ["tea", "milk"], axis(1))]
        await index.put(key, documents)
        before = await index.near(key, axis(0), 5), await index.match(key, ["milk"], 5)
        await index.put(key, documents)
        assert await index.count(key) == 2
        assert (await index.near(key, axis(0), 5), await index.match(key, ["milk"], 5)) == before

    async def test_put_replaces(self, index: VectorIndex, key: UserKey) -> None:
        """The newer document of an id is the only one: words, vector and archived."""
        await index.put(key, [document("a", ["tea"], axis(0))])
        await index.put(key, [document("a", ["coffee"], axis(2), archived=True)])
        assert await index.count(key) == 1
        assert await index.match(key, ["tea"], 5) == []
        assert [hit.memory_id for hit in await index.match(key, ["coffee"], 5)] == ["a"]
        assert (await index.near(key, axis(2), 1))[0].score == pytest.approx(1.0, abs=1e-3)
        assert await index.near(key, axis(2), 1, archived=False) == []

    async def test_archived_filters(self, index: VectorIndex, key: UserKey) -> None:
        """True takes the archived ones, False the others, None both; the limit counts after the filter."""
        await index.put(
            key,
            [document("old", ["tea"], axis(0), archived=True), document("new", ["tea"], axis(0, 0.5))],
        )
        for archived, wanted in ((True, ["old"]), (False, ["new"]), (None, ["old", "new"])):
            assert [h.memory_id for h in await index.near(key, axis(0), 2, archived=archived)] == wanted
            found = await index.match(key, ["tea"], 2, archived=archived)
            assert sorted(hit.memory_id for hit in found) == sorted(wanted)
        assert [hit.memory_id for hit in await index.near(key, axis(0), 1, archived=False)] == ["new"]

    async def test_remove_and_drop(self, index: VectorIndex, key: UserKey) -> None:
        """What is removed is not found; unknown ids are ignored; a dropped user can be fed again."""
        await index.put(
            key, [document("a", ["tea"]), document("b", ["tea"], axis(1)), document("c", ["milk"])]
        )
        await index.remove(key, ["a", "unknown"])
        assert await index.count(key) == 2
        assert [hit.memory_id for hit in await index.match(key, ["tea"], 5)] == ["b"]
        assert "a" not in {hit.memory_id for hit in await index.near(key, axis(0), 5)}
        await index.drop(key)
        assert await index.count(key) == 0
        assert await index.near(key, axis(0), 5) == []
        await index.put(key, [document("d", ["tea"])])
        assert [hit.memory_id for hit in await index.match(key, ["tea"], 5)] == ["d"]

    async def test_users_are_apart(self, index: VectorIndex, key: UserKey) -> None:
        """Neither the same user id in another namespace nor another user sees a document."""
        others = [UserKey("other", key.user_id), UserKey(key.namespace, key.user_id + "x")]
        await index.put(key, [document("a", ["tea"])])
        for other in others:
            assert await index.count(other) == 0
            assert await index.near(other, axis(0), 5) == []
            assert await index.match(other, ["tea"], 5) == []
        await index.put(others[0], [document("a", ["coffee"], axis(2))])
        await index.drop(others[0])
        assert await index.count(key) == 1
        assert [hit.memory_id for hit in await index.match(key, ["tea"], 5)] == ["a"]

    async def test_many_documents(self, index: VectorIndex, key: UserKey) -> None:
        """A batch of hundreds is taken, and the nearest of them is exact."""
        rng = np.random.default_rng(3)
        vectors = rng.normal(size=(300, DIMENSION)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        await index.put(key, [document(f"m{row}", [f"w{row}"], vectors[row]) for row in range(300)])
        assert await index.count(key) == 300
        hits = await index.near(key, vectors[17], 10)
        wanted = np.argsort(-(vectors @ vectors[17]))[:10]
        assert [hit.memory_id for hit in hits] == [f"m{row}" for row in wanted]
        assert [hit.memory_id for hit in await index.match(key, ["w42"], 10)] == ["m42"]
