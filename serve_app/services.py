"""What the routes work with: the users, the ledger for jobs and readiness, the embedder, the policy."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Path, Request

from hermes_memory.adapters.metrics import PrometheusMetrics
from hermes_memory.app.desk import Policy
from hermes_memory.app.users import Users
from hermes_memory.config import Settings
from hermes_memory.core.ids import UserKey, check_id
from hermes_memory.ports.embedder import Embedder
from hermes_memory.ports.ledger import Ledger

DEFAULT_NAMESPACE = "default"

Probe = Callable[[], Awaitable[dict[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Everything behind the routes; ``probes`` name what readiness depends on."""

    users: Users
    ledger: Ledger
    embedder: Embedder
    policy: Policy
    settings: Settings
    metrics: PrometheusMetrics
    probes: dict[str, Probe]


def services(request: Request) -> Services:
    """The services of the running app."""
    found: Services = request.app.state.services
    return found


def namespace() -> str:
    """The chat application that asks: in the embedded default there is one."""
    return DEFAULT_NAMESPACE


def user_key(user: Annotated[str, Path()], space: Annotated[str, Depends(namespace)]) -> UserKey:
    """The user named in the path, checked."""
    return UserKey(space, check_id(user, "user"))


def session_id(session: Annotated[str, Path()]) -> str:
    """The session named in the path, checked."""
    return check_id(session, "session")


def memory_id(memory: Annotated[str, Path()]) -> str:
    """The memory named in the path, checked."""
    return check_id(memory, "memory")


Services_ = Annotated[Services, Depends(services)]
User = Annotated[UserKey, Depends(user_key)]
SessionPath = Annotated[str, Depends(session_id)]
MemoryPath = Annotated[str, Depends(memory_id)]
