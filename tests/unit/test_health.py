"""Readiness names every dependency, whatever goes wrong with it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hermes_memory.errors import LedgerUnavailable
from serve_app.routes import health
from serve_app.services import Probe


async def fine() -> dict[str, Any]:
    return {"hosts": 2}


async def away() -> dict[str, Any]:
    raise LedgerUnavailable("it is away")


async def broken() -> dict[str, Any]:
    raise ZeroDivisionError


async def slow() -> dict[str, Any]:
    await asyncio.sleep(60)
    return {}


@pytest.mark.parametrize(
    ("probe", "found"),
    [
        (fine, {"ok": True, "hosts": 2}), (away, {"ok": False, "code": "ledger_unavailable"}),
        (broken, {"ok": False, "code": "internal"}), (slow, {"ok": False, "code": "timeout"}),
    ],
)  # fmt: skip
async def test_a_dependency_answers_or_is_named(
    probe: Probe, found: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "PROBE_TIMEOUT_S", 0.01)
    assert await health._probe(probe) == found
