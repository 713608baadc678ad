"""One Redis behind one interface: a server, a master found by Sentinel, or a Cluster.

redis-py's own retries are off, for it sends again whatever it sent. Here a call says whether it may be sent twice:
reads, and scripts that know what they did before. A caller that is cancelled only stops waiting: what was sent ends
by itself, so no connection goes back to the pool with a reply to come.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from redis import exceptions
from redis.asyncio import Redis as Client
from redis.asyncio import RedisCluster, Sentinel
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.maint_notifications import MaintNotificationsConfig

from hermes_memory.adapters.redis_ledger.scripts import script
from hermes_memory.errors import InvalidConfig, LedgerUnavailable

_T = TypeVar("_T")
_WHY_CHARS = 160
_BACKOFF_S = 0.05
_CONCURRENT_STEPS = 32  # of one call that looks at many users in a Cluster
Step = tuple[Any, ...]  # a command and its arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class Redis:
    """How to reach it.

    ``url`` is ``redis://`` or ``rediss://`` with host, port, user and database; with ``sentinels`` ("host:port")
    and ``master`` only its user, database and scheme count. ``timeout_s`` bounds connecting, each reply, and the
    wait for a free one of ``max_connections``. ``attempts`` is how often a call that may be repeated is sent.
    """

    url: str
    password: str | None = None
    cluster: bool = False
    sentinels: tuple[str, ...] = ()
    master: str = ""
    timeout_s: float = 2.0
    max_connections: int = 32
    attempts: int = 3


def client_of(to: Redis) -> Any:
    """A client, not yet connected. Raises InvalidConfig for settings that do not hold together.

    To be called outside the loop: some of them read package metadata from disk.
    """
    common: dict[str, Any] = {
        "socket_timeout": to.timeout_s,
        "socket_connect_timeout": to.timeout_s,
        "max_connections": to.max_connections,
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
        "driver_info": None,  # else each new connection reads package metadata from disk
        "maint_notifications_config": MaintNotificationsConfig(enabled=False),
    }
    if to.password is not None:
        common["password"] = to.password
    if to.cluster and to.sentinels:
        raise InvalidConfig("ledger.cluster", "cannot be used together with sentinels")
    if bool(to.sentinels) != bool(to.master):
        raise InvalidConfig("ledger.master", "must be named if, and only if, sentinels are")
    try:
        if to.cluster:
            # Redirections are followed, for then nothing was run; lost connections are ours to judge.
            return RedisCluster.from_url(to.url, **common)
        if to.sentinels:
            return _by_sentinel(to, common)
        return Client.from_url(to.url, **common)
    except ValueError as error:
        raise InvalidConfig("ledger.url", f"is not a Redis URL: {error}") from None


def _by_sentinel(to: Redis, common: dict[str, Any]) -> Any:
    places = [(host, int(port)) for host, _, port in (each.rpartition(":") for each in to.sentinels)]
    options = dict(parse_url(to.url))
    tls = options.pop("connection_class", None) is not None
    for unused in ("host", "port"):
        options.pop(unused, None)
    timeouts = {
        name: common[name] for name in ("socket_timeout", "socket_connect_timeout", "retry", "protocol")
    }
    sentinel: Any = Sentinel(places, sentinel_kwargs=timeouts, ssl=tls, **options, **common)  # type: ignore[no-untyped-call]
    return sentinel.master_for(to.master)


def translated(error: BaseException) -> BaseException:
    """A failure of the store as LedgerUnavailable; anything else as it is."""
    if isinstance(error, exceptions.DataError):
        return error  # a value that no command takes: ours to mend
    if isinstance(error, exceptions.RedisError | OSError | TimeoutError):
        return LedgerUnavailable(f"{type(error).__name__}: {error}"[:_WHY_CHARS])
    return error


def _is_lost(error: BaseException) -> bool:
    """Whether the connection failed rather than the command, so that another attempt may succeed."""
    lost = (
        exceptions.ConnectionError,
        exceptions.TimeoutError,
        exceptions.ClusterDownError,
        OSError,
        TimeoutError,
    )
    refused = (exceptions.AuthenticationError, exceptions.AuthorizationError)
    return isinstance(error, lost) and not isinstance(error, refused)


class Link:
    """The open connection: runs commands and scripts, bounded, shielded, with failures translated."""

    def __init__(self, to: Redis, client: Any) -> None:
        self.cluster = to.cluster
        self._client = client
        self._attempts = to.attempts
        self._timeout_s = to.timeout_s
        self._room = asyncio.Semaphore(to.max_connections)
        self._running: set[asyncio.Task[Any]] = set()

    async def close(self) -> None:
        """Wait for what was sent, then let go of the connections."""
        while self._running:
            await asyncio.wait(set(self._running))
        await self._client.aclose()
        pool = getattr(self._client, "connection_pool", None)
        for sentinel in getattr(getattr(pool, "sentinel_manager", None), "sentinels", ()):
            await sentinel.aclose()

    async def command(self, *parts: Any, again: bool = True) -> Any:
        """The reply to one command; ``again``: it may be sent a second time."""
        return await self._run(lambda: self._client.execute_command(*parts), again)

    async def script(
        self, name: str, keys: Sequence[str], values: Sequence[Any], *, again: bool = True
    ) -> Any:
        """The reply of a script; ``again`` as for ``command``."""
        return await self._run(lambda: self._evaluate(name, keys, values), again)

    async def commands(self, steps: Sequence[Step], *, again: bool = True) -> list[Any]:
        """The replies to several commands, one after the other; in a Cluster their order is not kept."""
        if not steps:
            return []
        return await self._run(lambda: self._pipeline(steps), again)

    async def in_order(self, steps: Sequence[Step]) -> list[Any]:
        """As ``commands``, each after the one before it; they may be sent a second time."""
        if not self.cluster:
            return await self.commands(steps)
        return [await self.command(*step) for step in steps]

    async def scripts(self, name: str, calls: Sequence[tuple[Sequence[str], Sequence[Any]]]) -> list[Any]:
        """The replies of one script for many users."""
        return await self._spread([partial(self.script, name, keys, values) for keys, values in calls])

    async def servers(self, *parts: Any) -> list[Any]:
        """The replies of all masters to one command."""
        if not self.cluster:
            return [await self.command(*parts)]
        replies = await self._run(
            lambda: self._client.execute_command(*parts, target_nodes=RedisCluster.PRIMARIES), True
        )
        return [replies] if len(self._client.get_primaries()) == 1 else list(replies.values())

    async def _spread(self, calls: Sequence[Callable[[], Awaitable[Any]]]) -> list[Any]:
        found: list[Any] = []
        for start in range(0, len(calls), _CONCURRENT_STEPS):
            found += await asyncio.gather(*(call() for call in calls[start : start + _CONCURRENT_STEPS]))
        return found

    async def _pipeline(self, steps: Sequence[Step]) -> list[Any]:
        async with self._client.pipeline(transaction=False) as pipe:
            for step in steps:
                pipe.execute_command(*step)
            replies: list[Any] = await pipe.execute()
        return replies

    async def _evaluate(self, name: str, keys: Sequence[str], values: Sequence[Any]) -> Any:
        wanted = script(name)
        try:
            return await self._client.execute_command("EVALSHA", wanted.sha, len(keys), *keys, *values)
        except exceptions.NoScriptError:  # a server that was restarted, or is new: nothing was run
            return await self._client.execute_command("EVAL", wanted.source, len(keys), *keys, *values)

    async def _run(self, call: Callable[[], Awaitable[_T]], again: bool) -> _T:
        task = asyncio.ensure_future(self._attempted(call, self._attempts if again else 1))
        self._running.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # its caller may have left

    async def _attempted(self, call: Callable[[], Awaitable[_T]], attempts: int) -> _T:
        for attempt in range(1, attempts + 1):
            try:
                return await self._bounded(call)
            except Exception as error:
                if attempt == attempts or not _is_lost(error):
                    failure = translated(error)
                    if failure is error:
                        raise
                    raise failure from error
                await asyncio.sleep(_BACKOFF_S * 2 ** (attempt - 1) * (1 + random.random()))
        raise AssertionError("the last attempt returns or raises")

    async def _bounded(self, call: Callable[[], Awaitable[_T]]) -> _T:
        async with asyncio.timeout(self._timeout_s):
            await self._room.acquire()
        try:
            return await call()
        finally:
            self._room.release()
