"""The Ray actors of user hosts: made, found, ended. Named and detached, so they outlive whoever made them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import ray
from ray.actor import ActorHandle
from ray.exceptions import RayError

from actors.edition import UNKNOWN, Edition
from actors.host import NAMESPACE, UserActorHost
from actors.links import Link, RayLink, Unreachable
from actors.placement import Seat, is_pooled

MAX_CONCURRENCY = 4096

_T = TypeVar("_T")


class Crew(Protocol):
    """Who makes and ends hosts. All methods raise Unreachable."""

    async def connect(self, seat: Seat) -> Link:
        """The host of a seat, made if it is not there."""
        ...

    async def pooled(self) -> dict[Seat, Link]:
        """The hosts of the pool, and of larger pools before, that are there."""
        ...

    async def end(self, seat: Seat, *, for_good: bool) -> None:
        """End a host by force; it comes back unless it is ``for_good``. One that is not there is no error."""
        ...


class RayCrew:
    """Hosts as Ray actors.

    Args:
        document: The configuration as plain data.
        node_resource: See ``start_host``.
        timeout_s: How long Ray may take to answer.
    """

    def __init__(
        self,
        document: dict[str, Any],
        data: str,
        node_resource: str,
        timeout_s: float,
        edition: Edition = UNKNOWN,
    ) -> None:
        self._document, self._data, self._edition = document, data, edition
        self._node_resource, self._timeout_s = node_resource, timeout_s

    async def connect(self, seat: Seat) -> Link:
        """See ``Crew.connect``."""
        actor = await self._asked(
            seat.name,
            lambda: start_host(seat, self._document, self._data, self._node_resource, self._edition),
        )
        return RayLink(seat.name, actor)

    async def pooled(self) -> dict[Seat, Link]:
        """See ``Crew.pooled``."""
        names = await self._asked("Ray", host_names)
        found: dict[Seat, Link] = {}
        for name in filter(is_pooled, names):
            actor = await self._asked(name, lambda name=name: _find(name))  # type: ignore[misc]  # bound now
            if actor is not None:
                found[Seat(name)] = RayLink(name, actor)
        return found

    async def end(self, seat: Seat, *, for_good: bool) -> None:
        """See ``Crew.end``."""
        await self._asked(seat.name, lambda: _kill(seat.name, for_good))

    async def nodes(self) -> int:
        """How many machines the cluster has now. Raises Unreachable."""
        return await self._asked("Ray", lambda: sum(node["Alive"] for node in ray.nodes()))  # type: ignore[no-untyped-call]

    async def _asked(self, name: str, question: Callable[[], _T]) -> _T:
        """Ray's own calls block: on a thread, with a limit. (Ray raises bare ValueErrors too.)"""
        try:
            return await asyncio.wait_for(asyncio.to_thread(question), self._timeout_s)
        except TimeoutError:
            raise Unreachable(name, True) from None
        except (RayError, ValueError):
            raise Unreachable(name, False) from None


def start_host(
    seat: Seat, document: dict[str, Any], data: str, node_resource: str = "", edition: Edition = UNKNOWN
) -> ActorHandle[Any]:
    """The named, detached actor, made if it is not there; Ray restarts it for ever and never repeats a call.

    Hosts are spread over the nodes; over those that declare ``node_resource``, where some do.
    """
    remote: Any = ray.remote(UserActorHost)
    declared = node_resource and ray.cluster_resources().get(node_resource, 0)  # type: ignore[no-untyped-call]
    actor: ActorHandle[Any] = remote.options(
        name=seat.name,
        namespace=NAMESPACE,
        lifetime="detached",
        get_if_exists=True,
        num_cpus=0,
        resources={node_resource: 1} if declared else {},
        scheduling_strategy="SPREAD",
        max_restarts=-1,
        max_task_retries=0,
        max_concurrency=MAX_CONCURRENCY,
    ).remote(seat, document, data, edition=edition)
    return actor


def host_names() -> list[str]:
    """Every host that is there, pooled or of one user. Asks Ray, and blocks."""
    named = ray.util.list_named_actors(all_namespaces=True)
    return [entry["name"] for entry in named if entry["namespace"] == NAMESPACE]


def _find(name: str) -> ActorHandle[Any] | None:
    try:
        found: ActorHandle[Any] = ray.get_actor(name, NAMESPACE)
    except ValueError:
        return None
    return found


def _kill(name: str, for_good: bool) -> None:
    if (actor := _find(name)) is not None:
        ray.kill(actor, no_restart=for_good)
