"""Requests made from the OpenAPI document, good and bad: none ends in a 5xx, and every answer is as described."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.python import asgi
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from hermes_memory.config import load_settings
from tests.runtime.conftest import QUICK
from tests.runtime.local_app import local_app
from tests.runtime.test_bad_input import ROUTES

NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
SMALL = settings(
    max_examples=500 if NIGHTLY else 6,
    derandomize=not NIGHTLY,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
OPERATIONS = [
    *dict.fromkeys(f"{method} {path.replace('{frozen}', '{memory}')}" for method, path, _ in ROUTES),
    "GET /healthz", "GET /readyz", "GET /metrics",
]  # fmt: skip
NAMED = [operation for operation in OPERATIONS if "{" in operation]

Operations = dict[str, APIOperation[Any, Any, Any, Any]]
_numbers = itertools.count()


@pytest.fixture(scope="module")
def operations(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operations]:
    app = local_app(tmp_path_factory.mktemp("data"), load_settings(None, QUICK))
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    found = [result.ok() for result in schema.get_all_operations() if isinstance(result, Ok)]
    yield {operation.label: operation for operation in found}
    asgi.shutdown_lifespans()


def test_every_operation_is_tried(operations: Operations) -> None:
    assert set(operations) == set(OPERATIONS)


@pytest.mark.parametrize("label", OPERATIONS)
def test_any_data(operations: Operations, label: str) -> None:
    for mode in GenerationMode:
        if mode is GenerationMode.NEGATIVE and label not in NAMED:
            continue  # takes nothing that could be wrong
        probe(operations[label], mode)


@pytest.mark.parametrize("label", NAMED)
def test_data_for_a_user_who_is_known(operations: Operations, label: str) -> None:
    operation = operations[label]
    with asgi.get_client(operation.app) as client:
        names = a_user(client, f"u-{next(_numbers)}")
    named = {name: value for name, value in names.items() if f"{{{name}}}" in label}
    probe(operation, GenerationMode.POSITIVE, path_parameters=named)
    if len(operation.query) or len(operation.headers) or len(operation.body):
        probe(operation, GenerationMode.NEGATIVE, path_parameters=named)


def probe(operation: APIOperation[Any, Any, Any, Any], mode: GenerationMode, **given_parts: Any) -> None:
    @SMALL
    @given(case=operation.as_strategy(generation_mode=mode, **given_parts))
    def check(case: Case) -> None:
        case.call_and_validate(checks=CHECKS, timeout=20)

    check()


def a_user(client: asgi.ASGIClient, name: str) -> dict[str, str]:
    """The names in the paths of a user who has a frozen memory, an open question and an open challenge."""
    at, job = f"/v1/users/{name}", ""
    for session, content in (("1", "我对花生过敏"), ("2", "我对花生不过敏")):
        said: Any = {"session_id": f"{name}-{session}", "messages": [{"role": "user", "content": content}]}
        answer = client.post(f"{at}/messages?wait=true", json=said)
        assert answer.status_code == 200, answer.text
        job = answer.json()["job_id"]
    (asked,) = client.get(f"{at}/confirmations").json()["confirmations"]
    memory: str = asked["memory_ids"][0]
    wanted = {"reason": "a test", "source_session_id": f"{name}-1"}
    challenge = client.post(f"{at}/memories/{memory}/unfreeze", json=wanted).json()["challenge_id"]
    return {
        "user": name, "session": f"{name}-1", "memory": memory, "job": job, "challenge": challenge,
        "confirmation": asked["id"],
    }  # fmt: skip
