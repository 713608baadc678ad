"""Memory in this process: the same core and ledger as the server, without Ray."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from hermes_memory.adapters.data_lock import DataLock
from hermes_memory.app.commands import (
    Ask,
    Command,
    Delete,
    EndSession,
    EraseUser,
    Feedback,
    GetMemory,
    Incoming,
    Ingest,
    ListMemories,
    Recall,
)
from hermes_memory.app.desk import Policy
from hermes_memory.app.users import operation_id_of
from hermes_memory.config import Settings, load_settings
from hermes_memory.core.ids import UserKey, check_id, digest
from hermes_memory.core.model import MAX_FELT, Role, Signal
from hermes_memory.errors import InvalidInput
from hermes_memory.ports.distiller import Distiller
from hermes_memory.ports.embedder import Embedder
from hermes_memory.runtime.host import UserHost
from hermes_memory.runtime.local import LocalUsers
from hermes_memory.wiring import build_distiller, build_embedder, build_host, build_policy, let_go

T = TypeVar("T")

CALL_TIMEOUT_S = 120.0


class Memory:
    """A synchronous handle on a memory in a directory. One at a time for each directory; usable as a context.

    Example::

        with Memory.open("./data") as memory:
            memory.remember("ana", "I'm allergic to peanuts.")
            print(memory.recall("ana", "a recipe for cookies")["context"])
    """

    def __init__(
        self,
        loop: _Loop,
        host: UserHost,
        embedder: Embedder,
        distiller: Distiller,
        policy: Policy,
        lock: DataLock,
        settings: Settings,
        namespace: str,
    ) -> None:
        self._loop, self._host, self._policy = loop, host, policy
        self._embedder, self._distiller = embedder, distiller
        self._lock, self._settings, self._namespace = lock, settings, namespace
        self._users = LocalUsers(host)

    @classmethod
    def open(
        cls,
        data: str | Path,
        *,
        config: str | Path | None = None,
        namespace: str = "default",
        **overrides: Any,
    ) -> Memory:
        """Open or create the memory in directory ``data``.

        ``config`` names a TOML file of overrides; ``overrides`` are sections given as keyword arguments.

        Raises:
            DataInUse: a server or another Memory holds the directory.
            InvalidConfig: the configuration does not hold together.
            EmbedderMismatch: the data was embedded with another model.
        """
        settings = load_settings(Path(config) if config else None, overrides)
        lock = DataLock(Path(data))
        lock.acquire({"what": "Memory.open"})
        loop = _Loop()
        try:
            embedder = build_embedder(settings)
            distiller = build_distiller(settings, embedder)
            host = build_host("local", settings, Path(data), distiller, embedder.info)
            loop.run(host.start())
        except BaseException:
            loop.close()
            lock.release()
            raise
        return cls(loop, host, embedder, distiller, build_policy(settings), lock, settings, namespace)

    def remember(
        self,
        user: str,
        text: str,
        *,
        session: str | None = None,
        message_id: str | None = None,
        said_at: datetime | None = None,
        timezone: str | None = None,
        scene: str | None = None,
    ) -> dict[str, Any]:
        """Store one user message, wait until it is settled, and return the job with its changes.

        A session belongs to one user; without one the message goes into the user's default session.

        Raises:
            InvalidInput: blank text, an unusable id, or a time in the future.
            SessionOwned: the session belongs to another user.
        """
        if not text.strip():
            raise InvalidInput("text", "is blank")
        key = self._key(user)
        message = Incoming(role=Role.USER, content=text, id=message_id, created_at=said_at)
        command = Ingest(
            session_id=check_id(f"default-{digest(user)}" if session is None else session, "session"),
            messages=(message,),
            timezone=timezone or self._settings.api.default_timezone,
            scene=scene,
        )
        return self._loop.run(self._remember(key, command))

    def send(
        self, user: str, session: str, messages: Sequence[Incoming], *, timezone: str | None = None
    ) -> dict[str, Any]:
        """Store messages of any role, with their own ids and times, and wait until they are settled.

        Raises:
            MessageIdReused: one of the ids was sent before with other content.
            SessionOwned: the session belongs to another user.
        """
        command = Ingest(
            session_id=check_id(session, "session"),
            messages=tuple(messages),
            timezone=timezone or self._settings.api.default_timezone,
        )
        return self._loop.run(self._remember(self._key(user), command))

    async def _remember(self, key: UserKey, command: Ingest) -> dict[str, Any]:
        accepted = await self._users.execute(key, command, operation_id_of(command))
        job = await self._users.wait(key, accepted["job_id"], CALL_TIMEOUT_S)
        return job or accepted

    def recall(
        self,
        user: str,
        query: str,
        *,
        session: str | None = None,
        scene: str | None = None,
        top_k: int | None = None,
        budget_chars: int | None = None,
        as_of: datetime | None = None,
        timezone: str | None = None,
    ) -> dict[str, Any]:
        """What matters for ``query``: the answer of ``POST …/recall`` (``context``, ``memories`` …).

        ``timezone`` is where the user is now: what is meant for a part of the day goes by it.
        """
        if not query.strip():
            raise InvalidInput("query", "is blank")
        wanted = self._loop.run(self._embedder.queries([query]))
        return self.ask(
            user,
            Recall(
                query=query, vector=wanted[0], words=self._policy.words(query), session_id=session, scene=scene,
                top_k=top_k, budget_chars=budget_chars, as_of=as_of, timezone=timezone,
            ),
        )  # fmt: skip

    def memories(self, user: str, **filters: str) -> list[dict[str, Any]]:
        """Every record of a user, newest first; ``filters`` such as ``status="active"``."""
        records: list[dict[str, Any]] = []
        cursor: str | None = None
        while True:
            page = self.ask(user, ListMemories(filters=filters, cursor=cursor, limit=200))
            records += page["memories"]
            cursor = page["next_cursor"]
            if cursor is None:
                return records

    def why(self, user: str, memory_id: str) -> list[dict[str, Any]]:
        """The evidence of one memory: the user's own words, where and when. Raises NotFound."""
        evidence: list[dict[str, Any]] = self.ask(user, GetMemory(memory_id=memory_id))["evidence"]
        return evidence

    def forget(self, user: str, memory_id: str | None = None) -> dict[str, Any]:
        """Remove one memory, or, without an id, everything of the user; the receipt counts what went."""
        receipt: dict[str, Any] = self.execute(
            user, Delete(memory_id=memory_id) if memory_id else EraseUser()
        )
        return receipt

    def end_session(self, user: str, session: str) -> None:
        """A conversation is over: what lasts moves on, the rest is archived."""
        self.execute(user, EndSession(session_id=session))

    def feedback(
        self, user: str, session: str, memory_ids: Sequence[str], signal: Signal | str
    ) -> dict[str, Any]:
        """What the user made of recalled memories: like, dislike, click or ignore. Moves their rank only.

        The answer says how many signals were ``counted`` and which ids are ``unknown``.

        Raises:
            InvalidInput: another signal, none or too many ids.
            NotFound: none of the memories is there.
            SessionOwned: the session belongs to another user.
        """
        check_id(session, "session")
        if signal not in set(Signal):
            raise InvalidInput("signal", f"is none of {', '.join(Signal)}")
        if not 1 <= len(memory_ids) <= MAX_FELT:
            raise InvalidInput("memory_ids", f"must be 1 to {MAX_FELT}")
        command = Feedback(session_id=session, memory_ids=tuple(memory_ids), signal=Signal(signal))
        answer: dict[str, Any] = self.execute(user, command)
        return answer

    def execute(self, user: str, command: Command) -> Any:
        """Any command of ``hermes_memory.app.commands``."""
        return self._loop.run(self._users.execute(self._key(user), command, operation_id_of(command)))

    def ask(self, user: str, query: Ask) -> dict[str, Any]:
        """Any query of ``hermes_memory.app.commands``."""
        return self._loop.run(self._users.ask(self._key(user), query))

    def close(self) -> None:
        """Write down what is only in memory and let go of the directory. May be called twice."""
        if self._loop.closed:
            return
        try:
            self._loop.run(self._host.stop())
            self._loop.run(let_go(self._embedder, self._distiller))
        finally:
            self._loop.close()
            self._lock.release()

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _key(self, user: str) -> UserKey:
        return UserKey(self._namespace, user)


class _Loop:
    """An event loop on a thread of its own, so that synchronous callers drive the same async code."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="hermes-memory", daemon=True)
        self._thread.start()
        self.closed = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run to the end and return the result; errors come through as they are."""
        if self.closed:
            work.close()
            raise InvalidInput("memory", "is closed")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        """Stop the loop and join the thread."""
        self.closed = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
