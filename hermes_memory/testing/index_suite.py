"""What every ``VectorIndex`` must do; an adapter's tests inherit it and give the index (STYLE, Tests).

class TestExactIndex(IndexSuite):
    @pytest.fixture
    async def index(self):
        yield ExactIndex()
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence

import numpy as np
import pytest

from hermes_memory.core.ids import UserKey
from hermes_memory.errors import InvalidInput
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
        assert await index.ids(key) == []
        assert await index.put(key, []) == {}
        await index.remove(key, ["none"])
        await index.rest(key)
        await index.drop(key)
        await index.drop(key)
        assert await index.count(key) == 0

    async def test_open_and_ping(self, index: VectorIndex, key: UserKey) -> None:
        """An open index answers a ping and may be opened again; closed twice is closed once."""
        await index.ping()
        await index.put(key, [document("a", ["tea"])])
        await index.open()
        assert await index.count(key) == 1
        await index.close()
        await index.close()

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

    @pytest.mark.parametrize(
        "word",
        [
            "Tea", "a b", "a\u3000b", "tab\there", "back\\slash", "\\20;", "AND", "*", "tea*", '"tea"', "-tea", "tea^2",
            "words:tea", "(tea", "\u200b", "é", "e\u0301", "\x00", "\ud800", "🍵", "", "x" * 5000,
        ],
    )  # fmt: skip
    async def test_any_word_is_a_word(self, index: VectorIndex, key: UserKey, word: str) -> None:
        """Whatever it holds, a word finds exactly the documents that hold it: nothing in it is a command."""
        beside = ["tea", "a", "b", "back", "slash", "here", "20;", "e", " ", "\\"]
        assert await index.put(key, [document("it", ["x", word]), document("others", beside)]) == {}
        assert [hit.memory_id for hit in await index.match(key, [word], 5)] == ["it"]

    async def test_words_twice_in_a_query_count_once(self, index: VectorIndex, key: UserKey) -> None:
        """A query is a set of words."""
        await index.put(key, [document("a", ["tea", "milk"]), document("b", ["milk"])])
        assert await index.match(key, ["milk", "tea", "milk"], 5) == await index.match(
            key, ["milk", "tea"], 5
        )

    async def test_no_more_than_asked_for(self, index: VectorIndex, key: UserKey) -> None:
        """A limit of nothing gives nothing."""
        await index.put(key, [document("a", ["tea"]), document("b", ["tea"])])
        for limit in (0, 1, 2):
            assert len(await index.near(key, axis(0), limit)) == limit
            assert len(await index.match(key, ["tea"], limit)) == limit

    async def test_what_never_fits_is_named(self, index: VectorIndex, key: UserKey) -> None:
        """A vector that cannot be compared is refused with a reason, and the others are taken."""
        broken = axis(1)
        broken[3] = np.nan
        await index.put(key, [document("first")])
        refused = await index.put(
            key,
            [
                document("before", ["tea"]),
                document("short", ["tea"], axis(0)[:4]),
                document("broken", ["tea"], broken),
                document("after", ["tea"]),
            ],
        )
        assert sorted(refused) == ["broken", "short"]
        assert set(refused.values()) == {"bad_vector"}
        assert await index.ids(key) == ["after", "before", "first"]
        assert sorted(hit.memory_id for hit in await index.match(key, ["tea"], 5)) == ["after", "before"]
        with pytest.raises(InvalidInput):
            await index.near(key, axis(0)[:4], 5)

    async def test_one_id_twice_in_a_put(self, index: VectorIndex, key: UserKey) -> None:
        """The later one counts, as if they had come one after the other."""
        await index.put(key, [document("a", ["tea"]), document("b"), document("a", ["coffee"], axis(2))])
        assert await index.ids(key) == ["a", "b"]
        assert await index.match(key, ["tea"], 5) == []
        assert (await index.near(key, axis(2), 1))[0].memory_id == "a"

    async def test_feeding_twice_changes_nothing(self, index: VectorIndex, key: UserKey) -> None:
        """The outbox delivers at least once."""
        documents = [document("a", ["tea"]), document("b", ["tea", "milk"], axis(1))]
        assert await index.put(key, documents) == {}
        before = await index.near(key, axis(0), 5), await index.match(key, ["milk"], 5)
        assert await index.put(key, documents) == {}
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

    async def test_ids(self, index: VectorIndex, key: UserKey) -> None:
        """All of them, in order, archived or not; they follow every change."""
        await index.put(key, [document("c"), document("a", archived=True), document("b")])
        assert await index.ids(key) == ["a", "b", "c"]
        await index.remove(key, ["b"])
        assert await index.ids(key) == ["a", "c"]

    async def test_rest(self, index: VectorIndex, key: UserKey) -> None:
        """Who rests is woken by the next use, whichever it is, and has lost nothing."""
        await index.put(key, [document("a", ["tea"]), document("b", ["milk"], axis(1))])

        async def resting() -> None:
            await index.rest(key)
            await index.rest(key)

        await resting()
        assert [hit.memory_id for hit in await index.near(key, axis(1), 1)] == ["b"]
        await resting()
        assert [hit.memory_id for hit in await index.match(key, ["tea"], 5)] == ["a"]
        await resting()
        assert await index.count(key) == 2
        await resting()
        assert await index.ids(key) == ["a", "b"]
        await resting()
        assert await index.put(key, [document("c", ["tea"])]) == {}
        await resting()
        await index.remove(key, ["a"])
        assert await index.ids(key) == ["b", "c"]
        await resting()
        await index.drop(key)
        assert await index.ids(key) == []

    async def test_rest_and_use_at_once(self, index: VectorIndex, key: UserKey) -> None:
        """A user who is put to rest in the middle of being used loses nothing and finds everything."""
        await index.put(key, [document("a", ["tea"])])

        async def use(number: int) -> None:
            assert await index.put(key, [document(f"n{number}", ["milk"], axis(2))]) == {}
            assert [hit.memory_id for hit in await index.match(key, ["tea"], 5)] == ["a"]
            assert (await index.near(key, axis(0), 1))[0].memory_id == "a"

        for _ in range(3):
            await asyncio.gather(use(0), index.rest(key), use(1), index.rest(key), use(2))
        assert await index.ids(key) == ["a", "n0", "n1", "n2"]

    async def test_only_put_makes_a_user(self, index: VectorIndex, key: UserKey) -> None:
        """After a drop nothing is found by any way and no way but ``put`` brings the user back, without the past."""
        await index.put(key, [document("a", ["tea"]), document("b", ["tea"], axis(1), archived=True)])
        await index.drop(key)
        for archived in (None, True, False):
            assert await index.near(key, axis(0), 5, archived=archived) == []
            assert await index.match(key, ["tea"], 5, archived=archived) == []
        assert await index.ids(key) == []
        await index.remove(key, ["a"])
        await index.rest(key)
        assert await index.count(key) == 0
        assert await index.put(key, [document("late", ["tea"], axis(3))]) == {}
        assert await index.ids(key) == ["late"]
        assert [hit.memory_id for hit in await index.match(key, ["tea"], 5)] == ["late"]
        await index.drop(key)
        assert await index.count(key) == 0

    async def test_drop_while_in_use(self, index: VectorIndex, key: UserKey) -> None:
        """Reads beside a drop answer or find nothing, and nothing is left when it has returned."""
        await index.put(key, [document(f"m{row}", ["tea"]) for row in range(30)])
        reads = [index.near(key, axis(0), 5), index.match(key, ["tea"], 5), index.ids(key), index.count(key)]
        dropped = asyncio.ensure_future(index.drop(key))
        await asyncio.gather(*reads)
        await dropped
        assert await index.count(key) == 0
        assert await index.ids(key) == []

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
        assert await index.ids(key) == sorted(f"m{row}" for row in range(300))
        hits = await index.near(key, vectors[17], 10)
        wanted = np.argsort(-(vectors @ vectors[17]))[:10]
        assert [hit.memory_id for hit in hits] == [f"m{row}" for row in wanted]
        assert [hit.memory_id for hit in await index.match(key, ["w42"], 10)] == ["m42"]
