"""The dashboard and the alerts ask only for what there is: metrics, labels and values of the catalogue."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hermes_memory.adapters.metric_catalogue import CATALOGUE, Kind, Open, Spec

DEPLOY = Path(__file__).parents[2] / "deploy"
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana" / "hermes-memory.json").read_text("utf-8"))
RULES: dict[str, Any] = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text("utf-8"))

OF_ALL = {"process", "job", "instance"}  # labels that every sample has, from us or from who scrapes
FUNCTIONS = {
    "sum", "max", "rate", "increase", "deriv", "histogram_quantile", "clamp_min", "absent", "vector", "time",
}  # fmt: skip
WORDS = {"by", "or", "and"}
SELECTOR = re.compile(r"([a-zA-Z_][a-zA-Z0-9_]*)(?:\{([^}]*)\})?(\[[^\]]+\])?")
MATCHER = re.compile(r'([a-z_]+)(=~|!~|!=|=)"([^"]*)"')
GROUPING = re.compile(r"\b(?:by|without)\s*\(([^)]*)\)")
NUMBER = re.compile(r'"[^"]*"|\b[0-9][0-9.e-]*\b')  # or a text, which may hold some
SUFFIXES = ("_bucket", "_sum", "_count")


def data_panels() -> list[dict[str, Any]]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] not in {"row", "alertlist"}]


def expressions() -> Iterator[tuple[str, str]]:
    for panel in data_panels():
        for target in panel["targets"]:
            yield f"panel {panel['title']}", target["expr"]
    for rule in rules():
        yield f"alert {rule['alert']}", rule["expr"]


def rules() -> list[dict[str, Any]]:
    return [rule for group in RULES["groups"] for rule in group["rules"]]


ALL = list(expressions())


def spec_of(name: str) -> tuple[Spec, bool]:
    """The declared metric, and whether the name is that of a histogram's buckets."""
    if name in CATALOGUE:
        return CATALOGUE[name], False
    for suffix in SUFFIXES:
        spec = CATALOGUE.get(name.removesuffix(suffix))
        if name.endswith(suffix) and spec is not None and spec.kind is Kind.HISTOGRAM:
            return spec, suffix == "_bucket"
    raise AssertionError(f"{name} is not in the catalogue")


def selected(expression: str) -> Iterator[tuple[str, str, str]]:
    """Metric, matchers and range of each selector; everything else must be a function or a word of the language."""
    bare = GROUPING.sub(" ", expression)
    for found in SELECTOR.finditer(NUMBER.sub(lambda found: found[0] if '"' in found[0] else " ", bare)):
        name, matchers, span = found[1], found[2] or "", found[3] or ""
        if name not in FUNCTIONS | WORDS:
            yield name, matchers, span


@pytest.mark.parametrize(
    ("where", "expression"), ALL, ids=[f"{where}-{n}" for n, (where, _) in enumerate(ALL)]
)
def test_every_expression_asks_for_what_is_declared(where: str, expression: str) -> None:
    assert expression.count("(") == expression.count(")"), where
    assert expression.count("{") == expression.count("}"), where
    asked = list(selected(expression))
    assert asked, where
    labels_of_all = set(OF_ALL)
    for name, matchers, span in asked:
        spec, buckets = spec_of(name)
        own = set(spec.labels) | OF_ALL | ({"le"} if buckets else set())
        labels_of_all |= own
        parts = [part for part in matchers.split(",") if part]
        found = [MATCHER.fullmatch(part.strip()) for part in parts]
        assert all(found), f"{where}: {matchers}"
        for matcher in found:
            assert matcher is not None
            check_matcher(spec, own, matcher, where)
        counts = spec.kind is not Kind.GAUGE
        if counts:
            assert span, f"{where}: {name} only grows, it needs rate() or increase()"
            assert f"rate({name}" in expression or f"increase({name}" in expression, where
        if name == spec.name:
            assert spec.kind is not Kind.HISTOGRAM, f"{where}: {name} has no series of its own"
    for group in GROUPING.findall(expression):
        assert {label.strip() for label in group.split(",")} <= labels_of_all, where
    assert ("histogram_quantile" in expression) == ("_bucket" in expression), where


def check_matcher(spec: Spec, own: set[str], matcher: re.Match[str], where: str) -> None:
    label, operator, value = matcher[1], matcher[2], matcher[3]
    assert label in own, f"{where}: {spec.name} has no label {label}"
    values = spec.labels.get(label)
    if value.startswith("$") or values is None:
        return
    if isinstance(values, Open):
        assert label == "status", f"{where}: {label} is not a closed set"
        assert re.fullmatch(r"\[?[0-9]+\]?\.\.", value), where
        return
    asked = value.split("|") if "~" in operator else [value]
    assert set(asked) <= values, f"{where}: {spec.name} never has {label}={value}"


def test_the_dashboard_can_be_imported_anywhere() -> None:
    named = {variable["name"]: variable for variable in DASHBOARD["templating"]["list"]}
    assert named["datasource"]["type"] == "datasource"
    assert named["datasource"]["query"] == "prometheus"
    assert named["process"]["query"]["query"] == "label_values(hermes_up, process)"
    sources = [part["datasource"] for panel in DASHBOARD["panels"] if panel["type"] != "row" for part in
               [panel, *panel.get("targets", [])]]  # fmt: skip
    assert all(source == {"type": "prometheus", "uid": "${datasource}"} for source in sources)
    assert "id" not in DASHBOARD  # Grafana gives one
    assert DASHBOARD["schemaVersion"] >= 39


def test_every_panel_has_a_title_a_unit_and_a_place_of_its_own() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    titles = [panel["title"] for panel in panels if panel["type"] != "row"]
    assert all(titles)
    assert len(set(titles)) == len(titles)
    for panel in data_panels():
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert all(target["legendFormat"] for target in panel["targets"]), panel["title"]
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24, panel["title"]
        assert not taken & cells, panel["title"]
        taken |= cells


UNITS = {"s": ("_seconds",), "bytes": ("_bytes",)}


def test_a_panel_has_the_unit_of_what_it_shows() -> None:
    for panel in data_panels():
        unit = panel["fieldConfig"]["defaults"]["unit"]
        for target in panel["targets"]:
            expression = target["expr"]
            names = [name for name, _, _ in selected(expression)]
            whole = "rate(" not in expression or "histogram_quantile" in expression
            for ends, of in UNITS.items():
                bases = [name.removesuffix("_bucket").removesuffix("_total") for name in names]
                shows = whole and all(base.endswith(of) for base in bases)
                assert (unit == ends) == shows, f"{panel['title']}: {unit}"


def test_legends_name_labels_that_the_series_have() -> None:
    for panel in data_panels():
        for target in panel["targets"]:
            groups = GROUPING.findall(target["expr"])
            kept = {label.strip() for group in groups for label in group.split(",")}
            assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= kept, panel["title"]


def test_every_metric_is_on_the_dashboard_or_known_not_to_be() -> None:
    shown = {spec_of(name)[0].name for panel in data_panels() for target in panel["targets"]
             for name, _, _ in selected(target["expr"])}  # fmt: skip
    left = {"process_virtual_memory_bytes", "process_max_fds"}
    assert set(CATALOGUE) - shown == left


def test_every_alert_says_what_it_is_and_how_grave() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names)
    for rule in rules():
        assert rule["alert"].startswith("Hermes")
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert set(rule["annotations"]) == {"summary", "description"}
        used = re.findall(r"\$labels\.(\w+)", str(rule["annotations"]))
        kept = {label.strip() for group in GROUPING.findall(rule["expr"]) for label in group.split(",")}
        assert set(used) <= kept | ({"process"} if "by" not in rule["expr"] else set()), rule["alert"]
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert re.fullmatch(r"[0-9]+[mh]", rule.get("for", "1m"))


@pytest.mark.parametrize("what", ["lag", "lease", "parked", "ledger", "p99"])
def test_what_must_be_watched_is(what: str) -> None:
    metrics = {
        "lag": "hermes_outbox_oldest_seconds", "lease": 'hermes_lease_renewals_total{outcome="lost"}',
        "parked": 'hermes_extraction_failures_total{parked="true"}', "ledger": "hermes_ledger_failures_total",
        "p99": "histogram_quantile(0.99",
    }  # fmt: skip
    assert any(metrics[what] in rule["expr"] for rule in rules())


@pytest.mark.parametrize(
    "wrong",
    [
        "sum(rate(hermes_made_up_total[5m]))", 'sum(rate(hermes_messages_total{user="x"}[5m]))', "hermes_messages_total",
        'sum(rate(hermes_commands_total{outcome="nonsense"}[5m]))', "sum by (reason) (hermes_users_awake)",
        "rate(hermes_recall_seconds[5m])", "sum(rate(hermes_recall_seconds_bucket[5m]))", "sum((hermes_up)",
    ],
)  # fmt: skip
def test_the_check_itself_finds_mistakes(wrong: str) -> None:
    with pytest.raises(AssertionError):
        test_every_expression_asks_for_what_is_declared("a mistake", wrong)
