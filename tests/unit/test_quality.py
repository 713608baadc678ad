"""The figures of quality and their limits (SPEC §10; S1 §3.3, S2 §2.4, S4 §4.3)."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_memory.app.quality import figure_record, quality_alert_id, quality_alerts
from hermes_memory.core.night_sums import NightSums
from hermes_memory.core.quality import FIGURES, Figure, counts_of, figures, wilson, window_start
from hermes_memory.core.tally import TALLIED, Count
from hermes_memory.errors import InvalidConfig
from tests.small_world import NOW, default_rules

RULES = default_rules().quality

# Of 100 cases exactly at the limit, and one case beyond it.
EDGES: dict[str, tuple[dict[str, int], dict[str, int]]] = {
    "recall_hit_rate": ({"welcome": 40, "unwelcome": 60}, {"welcome": 39, "unwelcome": 61}),
    "extraction_yield": (
        {"turns_informative": 100, "turns_remembered": 70},
        {"turns_informative": 100, "turns_remembered": 69},
    ),
    "ungrounded_rate": ({"proposed": 100, "ungrounded": 5}, {"proposed": 100, "ungrounded": 6}),
    "conflict_rate": ({"recalls": 100, "recalls_disputed": 20}, {"recalls": 100, "recalls_disputed": 21}),
    "eviction_hit_rate": ({"evicted": 100, "missed": 40}, {"evicted": 100, "missed": 41}),
    "repeat_rate": ({"kept": 100, "repeated": 30}, {"kept": 100, "repeated": 31}),
    "profile_accuracy": ({"borne_out": 60, "opposed": 40}, {"borne_out": 59, "opposed": 41}),
    "profile_drift": ({"slots": 100, "slots_adrift": 30}, {"slots": 100, "slots_adrift": 31}),
}


def figure(name: str, counts: dict[str, int], **rules: Any) -> Figure:
    return next(one for one in figures(counts, replace(RULES, **rules)) if one.name == name)


def test_every_figure_has_a_limit_and_is_tried_at_it() -> None:
    assert set(EDGES) == set(FIGURES) == {*RULES.least, *RULES.most}


@pytest.mark.parametrize("name", FIGURES)
def test_an_alarm_fires_beyond_its_limit_and_not_on_it(name: str) -> None:
    at, beyond = EDGES[name]
    assert not figure(name, at).alarming
    assert figure(name, beyond).alarming
    assert figure(name, at).value == figure(name, at).limit == figure(name, beyond).limit


@pytest.mark.parametrize(
    ("name", "limit"), [("recall_hit_rate", 0.4), ("extraction_yield", 0.7), ("eviction_hit_rate", 0.6)]
)
def test_the_limits_of_the_specification(name: str, limit: float) -> None:
    assert RULES.least[name] == limit


def test_too_few_cases_say_nothing_and_alarm_nobody() -> None:
    few = figure("recall_hit_rate", {"unwelcome": 19})
    assert (few.value, few.alarming, few.cases) == (None, False, 19)
    assert quality_alerts("app", [few], NOW) == []
    enough = figure("recall_hit_rate", {"unwelcome": 20})
    assert (enough.value, enough.alarming) == (0.0, True)


def test_a_figure_without_a_limit_alarms_nobody() -> None:
    free = figure("repeat_rate", {"kept": 100, "repeated": 100}, most={})
    assert (free.value, free.limit, free.alarming) == (1.0, None, False)
    assert quality_alerts("app", [free], NOW) == []


def test_more_may_come_back_in_a_window_than_went_in_it() -> None:
    assert figure("eviction_hit_rate", {"evicted": 20, "missed": 25}).value == 0.0


def test_an_alert_names_figure_and_limit_and_is_one_for_each_namespace() -> None:
    (alert,) = quality_alerts("app", [figure("recall_hit_rate", {"welcome": 39, "unwelcome": 61})], NOW)
    assert alert.kind == "quality_recall_hit_rate"
    assert alert.measured == (0.39, 0.4)
    assert alert.id == quality_alert_id("app", "recall_hit_rate") != quality_alert_id("b", "recall_hit_rate")


@pytest.mark.parametrize(
    ("part", "cases", "low", "high"),
    [
        (0, 0, 0.0, 1.0),
        (0, 10, 0.0, 0.278),
        (5, 10, 0.237, 0.763),
        (10, 10, 0.722, 1.0),
        (40, 100, 0.309, 0.498),
    ],
)
def test_intervals_as_in_the_tables(
    part: int, cases: int, low: float, high: float
) -> None:  # Wilson 1927, z = 1.96
    assert wilson(part, cases) == pytest.approx((low, high), abs=5e-4)


@given(st.dictionaries(st.sampled_from(TALLIED), st.integers(0, 1000)))
def test_a_share_lies_in_its_interval(counts: dict[str, int]) -> None:
    for one in figures(counts, replace(RULES, least_cases=1)):
        assert 0 <= one.low <= one.high <= 1
        if one.cases and one.part <= one.cases:
            assert one.low - 1e-9 <= one.part / one.cases <= one.high + 1e-9


@pytest.mark.parametrize(
    "limits", [{"least": {"recall": 0.4}}, {"most": {"recall": 0.4}}, {"least": {"repeat_rate": 2.0}}]
)
def test_limits_of_nothing_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfig):
        replace(RULES, **limits)


def test_the_window_ends_with_the_present_day() -> None:
    assert window_start(datetime(2026, 3, 8, 23, 30, tzinfo=UTC), 7) == "2026-03-02"
    assert window_start(datetime.fromisoformat("2026-03-08T01:00:00+08:00"), 7) == "2026-03-01"


def aggregate(**over: Any) -> dict[str, Any]:
    return {
        "tally": {"recalls": 2}, "memories": 3, "paused": False, "by_status": {"active": 3}, "by_lock": {"pending": 3}, "by_category": {"FACT": 3},
        "by_tier": {"working": 3}, "slots": {"identity": 2, "style": 1}, "slots_adrift": 1, **over,
    }  # fmt: skip


def test_sums_stream_merge_and_survive_a_checkpoint() -> None:
    one, other, both = NightSums(), NightSums(), NightSums()
    for sums in (one, both):
        sums.add("app", {"changes": []}, aggregate(), 0.0)
    for sums in (other, both):
        more = aggregate(tally={"recalls": 5, "welcome": 1}, slots={"style": 4})
        sums.add("app", {"changes": []}, more, 0.0)
    merged = NightSums.load(json.loads(json.dumps(one.dump())))
    merged.merge(other)
    assert merged == both
    space = merged.spaces["app"]
    assert space["users"] == 2
    assert space["by_lock"] == {"pending": 6}
    counts = counts_of(space)
    assert counts == {"recalls": 7, "slots": 7, "slots_adrift": 2, "welcome": 1}
    drift = next(one for one in figures(counts, replace(RULES, least_cases=1)) if one.name == "profile_drift")
    assert (drift.part, drift.cases) == (2, 7)


def test_the_names_are_told_apart() -> None:
    assert len(set(TALLIED)) == len(TALLIED)
    assert set(Count) <= set(TALLIED)


def test_a_record_is_json() -> None:
    record = figure_record(figure("recall_hit_rate", {"welcome": 39, "unwelcome": 61}))
    assert json.loads(json.dumps(record)) == record
    assert record["alarming"] is True
