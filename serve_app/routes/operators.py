"""What operators see and do: alerts, and the night's work for one user (API, Operators)."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter

from hermes_memory.app.commands import Maintain
from hermes_memory.app.quality import last
from hermes_memory.app.users import operation_id_of
from hermes_memory.app.views import alerts_page, dead_letters_page
from hermes_memory.errors import NotFound
from serve_app.routes.memories import Cursor, Limit
from serve_app.schemas import HostsIn, MaintainIn
from serve_app.services import DEFAULT_NAMESPACE, AlertPath, Hosts, Services, Services_, User

router = APIRouter(tags=["operators"])


@router.get("/v1/admin/alerts", summary="What waits for an operator")
async def get_alerts(at: Services_, cursor: Cursor = None, limit: Limit = 50) -> dict[str, Any]:
    """Freezes that found the core tier full, memories contradicted often, parked extractions, bad figures of quality."""
    return await alerts_page(at.ledger, DEFAULT_NAMESPACE, cursor, limit)


@router.get("/v1/admin/metrics", summary="The last figures of quality")
async def get_metrics(at: Services_) -> dict[str, Any]:
    """As the last night measured them; no figures before the first."""
    return await last(at.ledger, DEFAULT_NAMESPACE)


@router.post("/v1/admin/alerts/{alert}", summary="Close an alert")
async def post_alert(alert: AlertPath, at: Services_) -> dict[str, Any]:
    """It has been seen to; the same thing happening again opens it again."""
    if not await at.ledger.close_alert(DEFAULT_NAMESPACE, alert):
        raise NotFound("open alert")
    return {"id": alert, "status": "closed"}


@router.get("/v1/admin/dead-letters", summary="What the long-term index refused")
async def get_dead_letters(at: Services_, cursor: Cursor = None, limit: Limit = 50) -> dict[str, Any]:
    """By user, with the oldest 200 memories of each. `hermes reindex --user` tries again and clears what it settles."""
    return await dead_letters_page(at.ledger, DEFAULT_NAMESPACE, cursor, limit)


@router.post("/v1/admin/users/{user}/maintain", summary="The night's work for one user")
async def maintain(key: User, at: Services_, body: MaintainIn | None = None) -> dict[str, Any]:
    """What the nightly job does, as of ``now``."""
    now = body.now if body is not None and body.now is not None else datetime.now(UTC)
    command = Maintain(now=now)
    answer: dict[str, Any] = await at.users.execute(key, command, operation_id_of(command))
    return answer


@router.get("/v1/admin/hosts", summary="How many hosts carry the users")
async def get_hosts(at: Services_) -> dict[str, Any]:
    """404 where their number is fixed: in one process, and with an actor for each user."""
    return asdict(_hosts(at).pool)


@router.post("/v1/admin/hosts", summary="Let another number of hosts carry the users")
async def post_hosts(body: HostsIn, at: Services_) -> dict[str, Any]:
    """New hosts are started first, then users move; nothing is lost, callers see a delay at most."""
    return asdict(await _hosts(at).scale(body.hosts))


def _hosts(at: Services) -> Hosts:
    if at.hosts is None:
        raise NotFound("pool of hosts")
    return at.hosts
