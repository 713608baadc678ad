from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_memory.core.top import best
from hermes_memory.core.vectors import VectorTable
from hermes_memory.errors import InvalidInput

STEPS = st.lists(st.tuples(st.sampled_from([f"m{n}" for n in range(24)]), st.booleans()), max_size=80)


def unit(rng: np.random.Generator, size: int = 6) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    vector = rng.normal(size=size).astype(np.float32)
    return np.asarray(vector / np.linalg.norm(vector), np.float32).reshape(size)


@given(STEPS, st.integers(0, 1000), st.integers(1, 30))
def test_equals_numpy(steps: list[tuple[str, bool]], seed: int, limit: int) -> None:
    rng, table = np.random.default_rng(seed), VectorTable(6)
    kept = {}
    for name, keep in steps:
        if keep:
            kept[name] = unit(rng)
            table.put(name, kept[name])
        else:
            kept.pop(name, None)
            table.remove(name)
    query = unit(rng)
    wanted = sorted(
        ((name, float(vector @ query)) for name, vector in kept.items()), key=lambda p: (-p[1], p[0])
    )
    found = table.near(query, limit)
    assert [name for name, _ in found] == [name for name, _ in wanted[:limit]]
    assert [score for _, score in found] == pytest.approx([score for _, score in wanted[:limit]], abs=1e-5)
    assert len(table) == len(kept)
    assert dict(zip(table.ids, table.scores(query).tolist(), strict=True)) == pytest.approx(
        dict(wanted), abs=1e-5
    )


def test_what_was_given_can_be_had_back() -> None:
    table = VectorTable(3)
    vector = np.array([1, 0, 0], np.float32)
    table.put("a", vector)
    got = table.get("a")
    assert got is not None
    got[0] = 9  # a copy
    assert table.near(vector, 1) == [("a", 1.0)]
    assert table.get("b") is None


@pytest.mark.parametrize("bad", [np.ones(4, np.float32), np.array([np.nan, 0, 0], np.float32)])
def test_bad_vectors_are_refused(bad: np.ndarray[tuple[int], np.dtype[np.float32]]) -> None:
    table = VectorTable(3)
    with pytest.raises(InvalidInput):
        table.put("a", bad)
    assert len(table) == 0


def test_best_breaks_ties_by_id_and_obeys_keep() -> None:
    scores = np.array([0.5, 0.9, 0.5, 0.5], np.float32)
    assert [name for name, _ in best(["d", "x", "b", "c"], scores, 2)] == ["x", "b"]
    assert [name for name, _ in best(["d", "x", "b", "c"], scores, 2, {"c", "d"})] == ["c", "d"]
    assert best(["d", "x", "b", "c"], scores, 0) == []
    assert best([], np.zeros(0, np.float32), 3) == []


def test_a_large_table_keeps_every_row_as_it_grows() -> None:
    """From the size of a huge page on the table stands elsewhere in memory."""
    rng = np.random.default_rng(3)
    given = rng.standard_normal((900, 1024)).astype(np.float32)
    table = VectorTable(1024)
    for number, vector in enumerate(given):
        table.put(str(number), vector)
    assert table.dimension == 1024
    assert list(table.rows) == list(table.ids) == [str(number) for number in range(900)]
    query = given[0] / np.linalg.norm(given[0])
    assert np.allclose(table.scores(query), given @ query, rtol=1e-4, atol=1e-3)
