"""The index in process passes the suite of every index."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hermes_memory.adapters.exact_index import ExactIndex
from hermes_memory.core.ids import UserKey
from hermes_memory.testing.index_suite import IndexSuite, axis, document


class TestExactIndex(IndexSuite):
    """The suite, and what only this one promises."""

    @pytest.fixture
    async def index(self) -> AsyncIterator[ExactIndex]:
        """A fresh index."""
        yield ExactIndex()

    async def test_equal_scores_come_by_id(self, index: ExactIndex, key: UserKey) -> None:
        """Ties have a fixed order whatever the order of feeding."""
        await index.put(key, [document(name, ["tea"]) for name in ("c", "a", "b")])
        assert [hit.memory_id for hit in await index.near(key, axis(0), 2)] == ["a", "b"]
        assert [hit.memory_id for hit in await index.match(key, ["tea"], 2)] == ["a", "b"]

    async def test_the_dimension_may_be_given(self, key: UserKey) -> None:
        """Then the first vector of a user cannot set another one."""
        index = ExactIndex(8)
        assert await index.put(key, [document("a", [], axis(0)[:4]), document("b")]) == {"a": "bad_vector"}
        assert await index.ids(key) == ["b"]
