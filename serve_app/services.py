"""What the routes work with: the users, the ledger for jobs and readiness, the embedder, the policy."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, Protocol
from urllib.parse import unquote

from fastapi import Depends, Path, Request

from hermes_memory.adapters.metrics import PrometheusMetrics
from hermes_memory.app.desk import Policy
from hermes_memory.app.users import Users
from hermes_memory.config import Settings
from hermes_memory.core.ids import MAX_ID_CHARS, UserKey, check_id
from hermes_memory.ports.embedder import Embedder
from hermes_memory.ports.ledger import HostPool, Ledger

DEFAULT_NAMESPACE = "default"

Probe = Callable[[], Awaitable[dict[str, Any]]]
Scrape = Callable[[], Awaitable[dict[str, bytes]]]


class Hosts(Protocol):
    """The pool of hosts, where there is one."""

    @property
    def pool(self) -> HostPool:
        """How many there are."""
        ...

    async def scale(self, hosts: int) -> HostPool:
        """Let so many carry the users. Raises InvalidInput and StartupFailed."""
        ...


async def _nobody() -> dict[str, bytes]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Everything behind the routes; ``probes`` name what readiness depends on.

    ``scrape`` gives the metrics of the other processes by name. ``hosts`` is None where their number is fixed.
    """

    users: Users
    ledger: Ledger
    embedder: Embedder
    policy: Policy
    settings: Settings
    metrics: PrometheusMetrics
    probes: dict[str, Probe]
    scrape: Scrape = _nobody
    hosts: Hosts | None = None


def services(request: Request) -> Services:
    """The services of the running app."""
    found: Services = request.app.state.services
    return found


def namespace() -> str:
    """The chat application that asks: in the embedded default there is one."""
    return DEFAULT_NAMESPACE


def path_id(quoted: str, field: str) -> str:
    """An id from the path, where it is percent-encoded (``limits.QuotedPath``), decoded and checked."""
    return check_id(unquote(quoted), field)


def _in_path() -> Any:
    return Path(json_schema_extra={"minLength": 1, "maxLength": MAX_ID_CHARS})


def user_key(user: Annotated[str, _in_path()], space: Annotated[str, Depends(namespace)]) -> UserKey:
    """The user named in the path, checked."""
    return UserKey(space, path_id(user, "user"))


def session_id(session: Annotated[str, _in_path()]) -> str:
    """The session named in the path, checked."""
    return path_id(session, "session")


def memory_id(memory: Annotated[str, _in_path()]) -> str:
    """The memory named in the path, checked."""
    return path_id(memory, "memory")


def job_id(job: Annotated[str, _in_path()]) -> str:
    """The job named in the path, checked."""
    return path_id(job, "job")


def challenge_id(challenge: Annotated[str, _in_path()]) -> str:
    """The unfreeze challenge named in the path, checked."""
    return path_id(challenge, "challenge")


def confirmation_id(confirmation: Annotated[str, _in_path()]) -> str:
    """The confirmation request named in the path, checked."""
    return path_id(confirmation, "confirmation")


def alert_id(alert: Annotated[str, _in_path()]) -> str:
    """The alert request named in the path, checked."""
    return path_id(alert, "alert")


Services_ = Annotated[Services, Depends(services)]
User = Annotated[UserKey, Depends(user_key)]
SessionPath = Annotated[str, Depends(session_id)]
MemoryPath = Annotated[str, Depends(memory_id)]
JobPath = Annotated[str, Depends(job_id)]
ChallengePath = Annotated[str, Depends(challenge_id)]
ConfirmationPath = Annotated[str, Depends(confirmation_id)]
AlertPath = Annotated[str, Depends(alert_id)]
