"""Recall: the few memories that matter now (API, Recall)."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter

from hermes_memory.app.commands import Recall
from hermes_memory.app.recall import read
from serve_app.problems import TooLarge
from serve_app.schemas import RecallIn
from serve_app.services import Services_, User

router = APIRouter(tags=["recall"])


@router.post(
    "/v1/users/{user}/recall", summary="What matters for a query, as a prompt-ready block with its reasons"
)
async def post_recall(key: User, body: RecallIn, at: Services_) -> dict[str, Any]:
    """Embed the query here, then ask the user's actor; no model call besides."""
    limits = at.settings.api
    if len(body.query) > limits.max_query_chars:
        raise TooLarge("query", f"has more than {limits.max_query_chars} characters")
    started = time.perf_counter()
    embedding = asyncio.create_task(at.embedder.queries([body.query]))
    await asyncio.sleep(0)  # the model begins, on its own thread; the query is read meanwhile
    words = at.policy.words(body.query)
    asked = read(body.query, body.as_of or datetime.now(UTC), body.timezone, at.policy)
    vectors = await embedding
    embedded = time.perf_counter()
    wanted = Recall(
        query=body.query,
        vector=vectors[0],
        words=words,
        session_id=body.session_id,
        scene=body.scene,
        top_k=body.top_k,
        budget_chars=body.budget_chars,
        as_of=body.as_of,
        timezone=body.timezone,
        asked=asked,
        include=frozenset(body.include),
    )
    sent = time.perf_counter()
    answer = await at.users.ask(key, wanted)
    done = time.perf_counter()
    answer["timings_ms"] |= {
        "embed": _ms(embedded - started),
        "actor": _ms(done - sent),
        "all": _ms(done - started),
    }
    at.metrics.observe("hermes_recall_seconds", done - started)
    at.metrics.observe("hermes_recall_stage_seconds", embedded - started, stage="embed")
    at.metrics.observe("hermes_recall_stage_seconds", done - sent, stage="actor")
    return answer


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
