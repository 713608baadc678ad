"""What the running app shows of itself: conversations in, metrics and log lines out, no content in either."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families

from hermes_memory.adapters import logs
from hermes_memory.adapters.metric_catalogue import CATALOGUE, Open
from hermes_memory.adapters.rule_extractor.extractor import RuleExtractor
from hermes_memory.app.views import VIEWS
from hermes_memory.core.ids import UserKey
from tests.runtime.conftest import Api, Someone, message, serving
from tests.unit.secret_samples import samples as secret_samples
from tests.unit.test_metrics import samples

pytestmark = pytest.mark.asyncio(loop_scope="module")

NAME = "zq7ana"  # no hash holds it
MARKS = ("花生酱", "zq7word", "Zq7street", NAME)
SAID = (
    "我对花生酱过敏", "I live in Zq7street.", "I like zq7word soup.", "My card is 4111 1111 1111 1111.",
    "Actually I live in Oslo, not in Zq7street.",
)  # fmt: skip


class Written(logging.Handler):
    """Every line as JSON and as text, at DEBUG."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []
        self._forms = [logs.JsonLines("local"), logs.TextLines("local")]
        self.addFilter(logs.may_be_told)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines += [form.format(record) for form in self._forms]

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines[::2]]


@contextmanager
def listening() -> Iterator[Written]:
    root, written = logging.getLogger(), Written()
    loggers = [root, *map(logging.getLogger, logs.OURS)]  # another test may have configured them
    levels = [logger.level for logger in loggers]
    root.addHandler(written)
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
    try:
        yield written
    finally:
        root.removeHandler(written)
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@pytest.fixture(scope="module")
def written() -> Iterator[Written]:
    with listening() as found:
        yield found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(tmp_path_factory: pytest.TempPathFactory, written: Written) -> AsyncIterator[Api]:
    del written  # listened to before it starts
    async with serving(
        tmp_path_factory.mktemp("watched"), {"batch": {"delay_s": 0.01, "backoff_s": 0.01, "attempts": 2}}
    ) as client:
        yield client


async def scraped(api: Api) -> bytes:
    answer = await api.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return answer.content


def clean(*texts: str) -> None:
    for text in texts:
        for mark in MARKS:
            assert mark not in text, mark
            assert mark.encode("ascii", "backslashreplace").decode() not in text, mark
        assert "4111 1111" not in text


def without_values(text: bytes) -> str:
    """Names and labels: a number is nobody's word, and may look like a secret one."""
    return "\n".join(line.rpartition(" ")[0] for line in text.decode().splitlines())


async def test_a_conversation_is_counted_from_the_request_to_the_ledger(api: Api) -> None:
    someone = Someone(api, f"{NAME}-counted")
    await someone.say(*SAID)
    answer = await someone.call("POST", "/recall", json={"query": "zq7word 花生酱"})
    assert answer["memories"]
    text = await scraped(api)
    requests = samples(text, "hermes_http_requests_total")
    for route, status in (("/v1/users/{user}/messages", "200"), ("/v1/users/{user}/recall", "200")):
        labels = {"route": route, "method": "POST", "status": status, "process": "ingress"}
        assert requests[tuple(sorted(labels.items()))] >= 1
    stages = samples(text, "hermes_recall_stage_seconds_count")
    told = {(dict(labels)["stage"], dict(labels)["process"]) for labels in stages}
    assert told >= {("embed", "ingress"), ("actor", "ingress"), ("rank", "local"), ("assemble", "local")}

    def total(name: str, **labels: str) -> float:
        found = samples(text, name)
        return sum(value for of, value in found.items() if labels.items() <= dict(of).items())

    assert total("hermes_messages_total") >= len(SAID)
    assert total("hermes_gate_reasons_total", outcome="accepted", reason="new") >= 2
    assert total("hermes_lock_transitions_total", event="freeze_at_once") >= 1
    assert total("hermes_commands_total", command="ingest", outcome="ok") >= 1
    assert total("hermes_command_seconds_count", command="ingest") >= 1
    assert total("hermes_extraction_turns_total") >= len(SAID)
    assert total("hermes_distiller_seconds_count", method="distil") >= 1
    assert total("hermes_ledger_seconds_count", method="commit", process="local") >= 2
    assert total("hermes_activations_total") >= 1
    assert total("hermes_activation_seconds_count") >= 1
    assert total("hermes_users_awake", process="local") >= 1
    assert total("hermes_host_epoch", process="local") >= 1
    assert total("hermes_up") == 2
    assert total("hermes_http_in_flight") == 1  # this scrape


async def test_every_series_is_one_that_is_declared(api: Api) -> None:
    await Someone(api, f"{NAME}-declared").say(*SAID)
    for family in text_string_to_metric_families((await scraped(api)).decode()):
        for sample in family.samples:
            base = sample.name
            for end in ("_bucket", "_sum", "_count"):
                if family.type == "histogram":
                    base = base.removesuffix(end)
            spec = CATALOGUE[base]
            given = {label: value for label, value in sample.labels.items() if label not in {"process", "le"}}
            assert given.keys() == spec.labels.keys(), sample
            for label, value in given.items():
                values = spec.labels[label]
                assert isinstance(values, Open) or value in values, sample


@pytest.mark.parametrize(
    ("method", "path", "status", "route"),
    [
        ("GET", "/v1/users/{name}/nothing/here", 404, "unmatched"),
        ("POST", "/v1/users/{name}/profile", 405, "/v1/users/{user}/profile"),
        ("GET", "/v1/users/{name}/memories?zq7word=1", 422, "/v1/users/{user}/memories"),
        ("GET", "/v1/users/{name}/memories/zq7word", 404, "/v1/users/{user}/memories/{memory}"),
        ("BREW", "/v1/users/{name}/profile", 405, "/v1/users/{user}/profile"),
    ],
)
async def test_what_is_refused_is_counted_by_template(
    api: Api, method: str, path: str, status: int, route: str
) -> None:
    answer = await api.request(method, path.replace("{name}", NAME))
    assert answer.status_code == status
    labels = {
        "route": route,
        "method": method if method != "BREW" else "other",
        "status": str(status),
        "process": "ingress",
    }
    text = await scraped(api)
    assert samples(text, "hermes_http_requests_total")[tuple(sorted(labels.items()))] >= 1
    clean(without_values(text), answer.text)


async def test_a_request_is_a_line_with_a_hash_and_its_id(api: Api, written: Written) -> None:
    someone = Someone(api, f"{NAME}-lines")
    answer = await api.get(f"{someone.path}/profile")
    line = [event for event in written.events if event.get("request_id") == answer.headers["X-Request-Id"]]
    assert len(line) == 1
    ms = line[0].pop("ms")
    assert 0 < ms < 60_000
    assert line[0].pop("time")
    assert line[0] == {
        "level": "INFO", "logger": "serve_app.measuring", "process": "local", "event": "request",
        "user": UserKey("default", someone.name).hashed, "request_id": answer.headers["X-Request-Id"],
        "route": "/v1/users/{user}/profile", "method": "GET", "status": 200,
    }  # fmt: skip


async def test_an_unexpected_error_is_a_500_with_a_stack_and_no_words(
    api: Api, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raising(*_: Any) -> Any:
        raise ValueError(f"cannot read {MARKS}")

    for query in VIEWS:
        monkeypatch.setitem(VIEWS, query, raising)
    someone = Someone(api, f"{NAME}-unexpected")
    before = len(written.events)
    answer = await api.get(f"{someone.path}/profile")
    assert answer.status_code == 500
    assert answer.json()["code"] == "internal"
    told = [event for event in written.events[before:] if event["level"] == "ERROR"]
    assert len(told) == 1
    assert told[0]["request_id"] == answer.headers["X-Request-Id"]
    assert told[0]["user"] == UserKey("default", someone.name).hashed
    assert "ValueError at runtime/test_watched.py:" in told[0]["event"]
    assert "hermes_memory/runtime/active.py:" in told[0]["event"]
    clean(answer.text, *written.lines)


async def test_a_failing_extraction_quotes_nothing(
    api: Api, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def raising(*_: Any) -> Any:
        raise ValueError(f"cannot read {MARKS}")

    monkeypatch.setattr(RuleExtractor, "extract", raising)
    someone = Someone(api, f"{NAME}-failing")
    said = await someone.say(*SAID)
    assert said["status"] == "failed"
    text = await scraped(api)
    failures = samples(text, "hermes_extraction_failures_total")
    assert failures[("parked", "true"), ("process", "local")] >= 1
    assert failures[("parked", "false"), ("process", "local")] >= 1
    clean(str(said), without_values(text), *written.lines)
    assert any(
        "extraction attempt" in event["event"] and "ValueError at " in event["event"]
        for event in written.events
    )


async def test_conversations_leave_no_words_in_logs_metrics_or_errors(api: Api, written: Written) -> None:
    secrets = [sample for sample in secret_samples(3) if len(sample.text) <= 256]
    someone = Someone(api, f"{NAME}-whole")
    await someone.say(*SAID)
    answers = []
    for sample in secrets[:40]:
        await someone.say(sample.text)
        answers.append(await api.post(f"{someone.path}/recall", json={"query": "x", "top_k": sample.secret}))
    bad = {"session_id": NAME, "messages": [message("zq7word", role="zq7word")], "花生酱": 1}
    answers.append(await api.post(f"{someone.path}/messages", json=bad))
    answers.append(
        await api.post(
            f"{someone.path}/messages", content=b"{zq7word", headers={"Content-Type": "application/json"}
        )
    )
    answers.append(
        await api.request("PATCH", f"{someone.path}/memories/zq7word", json={"content": "zq7word"})
    )
    await asyncio.sleep(0.05)
    text = without_values(await scraped(api))
    assert all(answer.status_code >= 400 for answer in answers)
    clean(text, *written.lines, *(answer.text for answer in answers))
    whole = "\n".join(written.lines)
    for sample in secrets:
        if len(sample.secret) > 7:
            assert sample.secret not in text, sample
            assert sample.secret not in whole, sample
    assert len(written.lines) > 100
