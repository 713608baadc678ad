"""Counting: only what is declared, labelled only with declared values, told apart by process when merged."""

from __future__ import annotations

import ast
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hermes_memory.adapters.metric_catalogue import CATALOGUE, OTHER, Kind, Open, Spec
from hermes_memory.adapters.metrics import NullMetrics, PrometheusMetrics, merged
from hermes_memory.core.reasons import Reason
from hermes_memory.core.transitions import LOCKS, STATUSES
from hermes_memory.ports.metrics import Metrics
from tests.docs import metrics as page

ROOT = Path(__file__).parents[2]
PACKAGES = ("hermes_memory", "hermes_cli", "actors", "serve_app", "jobs")
WITH_AN_INDEX = {  # counted where the index is fed and asked
    "hermes_outbox_delivered_total", "hermes_outbox_buried_total",
    "hermes_recall_index_skipped_total", "hermes_recall_index_failures_total",
}  # fmt: skip
CALLS = {"count": Kind.COUNTER, "observe": Kind.HISTOGRAM, "gauge": Kind.GAUGE}


def samples(text: bytes, name: str) -> dict[tuple[tuple[str, str], ...], float]:
    """The samples of one name, by their labels."""
    return {
        tuple(sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
        if sample.name == name
    }


@pytest.fixture
def lenient(monkeypatch: pytest.MonkeyPatch) -> PrometheusMetrics:
    """As in production: what is not declared raises nothing."""
    monkeypatch.setattr(PrometheusMetrics, "strict", False)
    return PrometheusMetrics()


def test_counts_timings_and_levels_are_rendered() -> None:
    metrics = PrometheusMetrics()
    metrics.count("hermes_gate_reasons_total", outcome="refused", reason="filler")
    metrics.count("hermes_gate_reasons_total", 2, reason="filler", outcome="refused")
    metrics.observe("hermes_recall_stage_seconds", 0.003, stage="rank")
    metrics.gauge("hermes_users_awake", 7)
    metrics.gauge("hermes_users_awake", 3)
    text = metrics.render().decode()
    assert 'hermes_gate_reasons_total{outcome="refused",reason="filler"} 3.0\n' in text
    assert 'hermes_recall_stage_seconds_bucket{stage="rank",le="0.0025"} 0.0\n' in text
    assert 'hermes_recall_stage_seconds_bucket{stage="rank",le="0.005"} 1.0\n' in text
    assert "hermes_users_awake 3.0\n" in text
    assert "_created" not in text


def test_registries_are_apart() -> None:
    one, two = PrometheusMetrics(), PrometheusMetrics()
    one.count("hermes_messages_total")
    assert "hermes_messages_total 0.0\n" in two.render().decode()


def test_threads_lose_no_count() -> None:
    metrics = PrometheusMetrics()

    def work() -> None:
        for _ in range(2_000):
            metrics.count("hermes_recall_degraded_total", part="index")
            metrics.observe("hermes_ledger_seconds", 0.001, method="commit")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    text = metrics.render()
    assert samples(text, "hermes_recall_degraded_total")[("part", "index"),] == 8_000
    assert samples(text, "hermes_ledger_seconds_count")[("method", "commit"),] == 8_000


def test_this_process_is_told_once() -> None:
    assert b"process_resident_memory_bytes" in PrometheusMetrics(process=True).render()
    assert b"process_resident_memory_bytes" not in PrometheusMetrics().render()


def test_null_metrics_render_nothing() -> None:
    metrics = NullMetrics()
    port: Metrics = metrics
    port.count("a", b="c")
    port.observe("a_seconds", 1.0)
    port.gauge("a", 1.0)
    assert metrics.render() == b""


# what is not declared


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("hermes_made_up_total", {}),
        ("hermes_messages_total", {"user": "ana"}),
        ("hermes_recall_degraded_total", {}),
        ("hermes_recall_degraded_total", {"code": "index"}),
        ("hermes_recall_degraded_total", {"part": "what ana said"}),
        ("hermes_rerank_failures_total", {"kind": "what ana said"}),
        ("hermes_users_awake", {}),
        ("process_open_fds", {}),
    ],
)
def test_what_is_not_declared_raises_here(name: str, labels: dict[str, str]) -> None:
    assert PrometheusMetrics.strict
    with pytest.raises(ValueError, match=name):
        PrometheusMetrics().count(name, 1, **labels)


def test_in_production_it_counts_as_undeclared_and_shows_nowhere(
    lenient: PrometheusMetrics, caplog: pytest.LogCaptureFixture
) -> None:
    lenient.count("hermes_made_up_total", user="what ana said")
    lenient.count("hermes_made_up_total", 5, user="what ana said")
    lenient.observe("hermes_messages_total", 1.0)
    lenient.gauge("hermes_users_awake", 3, user="ana")
    text = lenient.render()
    assert samples(text, "hermes_undeclared_metrics_total") == {(): 4.0}
    assert b"made_up" not in text
    assert b"ana" not in text
    assert "ana" not in caplog.text
    assert len(caplog.records) == 3  # once for each name


def test_in_production_an_undeclared_value_counts_as_other(lenient: PrometheusMetrics) -> None:
    for number in range(100):
        lenient.count("hermes_recall_degraded_total", part=f"what ana said {number}")
    text = lenient.render()
    assert samples(text, "hermes_recall_degraded_total")[("part", OTHER),] == 100
    assert samples(text, "hermes_undeclared_metrics_total") == {(): 100.0}
    assert b"ana" not in text
    kept = [len(metrics._series[Kind.COUNTER]) for metrics in (lenient, PrometheusMetrics())]
    assert kept[0] == kept[1]  # however many undeclared values come


def test_an_open_set_takes_so_many_values_of_its_form_and_no_more(lenient: PrometheusMetrics) -> None:
    values = CATALOGUE["hermes_rerank_failures_total"].labels["kind"]
    assert isinstance(values, Open)
    for number in range(values.at_most + 10):
        lenient.count("hermes_rerank_failures_total", kind="E" + "x" * number)
    found = samples(lenient.render(), "hermes_rerank_failures_total")
    assert len(found) == values.at_most + 1
    assert found[("kind", OTHER),] == 10


# several processes


def test_processes_are_told_apart_and_families_are_described_once() -> None:
    one, two = PrometheusMetrics(), PrometheusMetrics()
    one.gauge("hermes_users_awake", 3)
    two.gauge("hermes_users_awake", 5)
    two.observe("hermes_ledger_seconds", 0.5, method="commit")
    text = merged({"host-0": one.render(), "host-1": two.render()})
    assert samples(text, "hermes_users_awake") == {
        (("process", "host-0"),): 3.0,
        (("process", "host-1"),): 5.0,
    }
    assert samples(text, "hermes_ledger_seconds_sum") == {(("method", "commit"), ("process", "host-1")): 0.5}
    lines = text.decode().splitlines()
    described = [line.split(" ")[2] for line in lines if line.startswith("# TYPE ")]
    assert len(described) == len(set(described))
    assert [line.split(" ")[2] for line in lines if line.startswith("# HELP ")] == described
    types = {family.name: family.type for family in text_string_to_metric_families(text.decode())}
    assert types["hermes_ledger_seconds"] == "histogram"
    assert types["hermes_gate_reasons"] == "counter"


def test_no_level_outlives_its_process() -> None:
    one = PrometheusMetrics()
    one.gauge("hermes_users_awake", 3)
    text = merged({"host-0": one.render(), "host-1": None})
    assert samples(text, "hermes_up") == {(("process", "host-0"),): 1.0, (("process", "host-1"),): 0.0}
    assert list(samples(text, "hermes_users_awake")) == [(("process", "host-0"),)]
    after = merged({"host-1": PrometheusMetrics().render()})
    assert b"host-0" not in after


def test_a_process_may_have_any_name() -> None:
    text = merged({'a"b\\c\nd': PrometheusMetrics().render()})
    assert samples(text, "hermes_up") == {(("process", 'a"b\\c\nd'),): 1.0}


# the catalogue


def test_every_reason_and_transition_is_there_from_the_start() -> None:
    text = PrometheusMetrics().render()
    reasons = samples(text, "hermes_gate_reasons_total")
    for reason in Reason:
        for outcome in ("accepted", "refused"):
            assert reasons[("outcome", outcome), ("reason", reason.value)] == 0.0
    for name, table in (("lock", LOCKS), ("status", STATUSES)):
        found = samples(text, f"hermes_{name}_transitions_total")
        assert len(found) == len(table)
        assert set(found.values()) == {0.0}


def test_every_declared_series_is_accepted_by_the_metric_it_is_of() -> None:
    for spec in CATALOGUE.values():
        for labels in spec.known:
            assert labels.keys() == spec.labels.keys(), spec.name
            for label, value in labels.items():
                values = spec.labels[label]
                assert not isinstance(values, Open), spec.name
                assert value in values, spec.name


@pytest.mark.parametrize("spec", CATALOGUE.values(), ids=lambda spec: spec.name)
def test_names_follow_the_custom_of_prometheus(spec: Spec) -> None:
    assert re.fullmatch(r"(hermes|process)_[a-z0-9_]+", spec.name)
    assert spec.ours == spec.name.startswith("hermes_")
    assert spec.name.endswith("_total") == (spec.kind is Kind.COUNTER)
    assert bool(spec.buckets) == (spec.kind is Kind.HISTOGRAM)
    assert list(spec.buckets) == sorted(set(spec.buckets))
    assert not re.search(r"_(ms|s|kb|mb|minutes)(_|$)", spec.name)  # base units
    assert "process" not in spec.labels  # that is whose samples they are


def test_what_is_there_at_most_stays_bounded() -> None:
    """So many series a process can have, were everything declared to happen."""

    def size(spec: Spec) -> int:
        count = len(spec.buckets) + 3 if spec.buckets else 1
        for values in spec.labels.values():
            count *= values.at_most if isinstance(values, Open) else len(values)
        return count

    start = PrometheusMetrics().render().count(b"\n")
    assert start < 700
    assert max(map(size, CATALOGUE.values())) < 50_000


def calls() -> Iterator[tuple[str, str, set[str] | None, str]]:
    """Every call that counts: method, metric, label names (None where they come from a mapping), where."""
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                    continue
                named = node.args[0] if node.args else None
                if node.func.attr not in CALLS or not isinstance(named, ast.Constant):
                    continue
                if not (isinstance(named.value, str) and named.value.startswith("hermes_")):
                    continue
                labels = {keyword.arg for keyword in node.keywords}
                where = f"{file.relative_to(ROOT)}:{node.lineno}"
                yield node.func.attr, named.value, None if None in labels else {str(a) for a in labels}, where


def test_every_metric_that_is_counted_is_declared_and_the_other_way_round() -> None:
    counted = set()
    for method, name, labels, where in calls():
        spec = CATALOGUE.get(name)
        assert spec is not None, f"{where}: {name} is not in the catalogue"
        assert spec.kind is CALLS[method], where
        assert labels is None or labels == set(spec.labels), where
        counted.add(name)
    assert len(counted) > 20
    by_name_of_port = {
        f"hermes_{what}_{of}"
        for what in ("ledger", "index", "distiller")
        for of in ("seconds", "failures_total")
    }
    elsewhere = by_name_of_port | WITH_AN_INDEX | {"hermes_up", "hermes_undeclared_metrics_total"}
    left = {spec.name for spec in CATALOGUE.values() if spec.ours} - counted - elsewhere
    assert left == set()


def test_the_page_shows_the_catalogue() -> None:
    """Repair: python -m tests.docs.metrics."""
    text = page.PAGE.read_text("utf-8")
    assert page.with_tables(text) == text
    assert all(f"`{spec.name}`" in text for spec in CATALOGUE.values())
