from __future__ import annotations

import pytest

from hermes_memory.adapters.metrics import NullMetrics, PrometheusMetrics
from hermes_memory.ports.metrics import Metrics


def test_counts_and_timings_are_rendered() -> None:
    metrics = PrometheusMetrics()
    metrics.count("refused", reason="filler")
    metrics.count("refused", 2, reason="filler")
    metrics.count("recalls")
    metrics.observe("recall_ms", 3.0, layer="all")
    metrics.observe("candidates", 4)
    text = metrics.render().decode()
    assert 'hermes_refused_total{reason="filler"} 3.0' in text
    assert "hermes_recalls_total 1.0" in text
    assert 'hermes_recall_ms_bucket{layer="all",le="5.0"} 1.0' in text
    assert "hermes_candidates_count 1.0" in text


def test_registries_are_apart() -> None:
    one, two = PrometheusMetrics(), PrometheusMetrics()
    one.count("recalls")
    two.count("recalls")
    assert "hermes_recalls_total 1.0" in two.render().decode()


def test_other_label_names_are_refused() -> None:
    metrics = PrometheusMetrics()
    metrics.count("refused", reason="filler")
    with pytest.raises(ValueError, match="label"):
        metrics.count("refused", code="filler")


def test_null_metrics_render_nothing() -> None:
    metrics = NullMetrics()
    port: Metrics = metrics
    port.count("a", b="c")
    port.observe("a_ms", 1.0)
    assert metrics.render() == b""
