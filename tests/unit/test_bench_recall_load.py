"""The recall-load benchmark: what its figures are; nothing is loaded or asked."""

from __future__ import annotations

from bench.recall_load import LIMITS, Seen, report
from bench.traffic import Spread


def seen(users: int, *ms: float) -> Seen:
    spread = Spread(1.0, 2.0, 3.0)
    times = {"whole": list(ms), "processor": list(ms), "memories": [3.0] * len(ms)}
    return Seen(users, 1.0, 2.0, spread if users > 20 else None, spread, times)


def test_the_most_users_are_held_against_the_limits_and_the_fewest() -> None:
    made = report([seen(10, 1.0, 1.0, 1.0), seen(1_000, 9.0, 9.0, 9.0), seen(100_000, 1.5, 1.5, 1.5)])
    assert (made.figures["p50_ms"], made.figures["most_to_fewest"]) == (1.5, 1.5)
    assert made.figures["worst_p99_ms"] == 9.0
    assert [limit.figure for limit in made.missed(LIMITS)] == ["most_to_fewest"]
    assert [size["cold_few"] is None for size in made.data["sizes"]] == [True, False, False]
