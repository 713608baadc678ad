"""Two threads with a connection each: one writes and commits in groups, one reads snapshots.

A task is a function of the connection. A caller that is cancelled only stops waiting: its task is skipped
if it has not begun, and otherwise ends as if nobody had left.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hermes_memory.adapters.sqlite_ledger.scrub import Scrub, Scrubber
from hermes_memory.adapters.sqlite_ledger.store import translated
from hermes_memory.core.failures import told
from hermes_memory.errors import LedgerUnavailable

_T = TypeVar("_T")
Work = Callable[[sqlite3.Connection], _T]
GROUP_MAX = 64  # tasks that share one fsync
_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Task:
    work: Work[Any]
    scrub: Scrub = Scrub.NONE
    future: Future[Any] = field(default_factory=Future)


@dataclass(slots=True)
class _Outcome:
    value: Any = None
    error: BaseException | None = None


class _TransactionLostError(Exception):
    """The whole transaction is gone, not only one task's part."""


def _fail(tasks: list[_Task], error: BaseException) -> None:
    for task in tasks:
        if not task.future.done():
            task.future.set_exception(error)


class _ConnectionThread:
    """Owns a connection and serves tasks in the order in which they came."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], name: str) -> None:
        self._connect = connect
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._closing = False
        self._lock = threading.Lock()
        self._ended: Future[None] = Future()
        # A daemon: an application that forgets to close must still be able to exit; the file stays whole.
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._thread.start()

    async def run(self, work: Work[_T]) -> _T:
        """The result of ``work``, or its error; a failing store raises LedgerUnavailable."""
        result: _T = await self._submit(_Task(work))
        return result

    async def stop(self) -> None:
        """Serve what was accepted, close the connection and end the thread."""
        with self._lock:
            if not self._closing:
                self._closing = True
                self._tasks.put(None)
        await asyncio.shield(asyncio.wrap_future(self._ended))

    async def _submit(self, task: _Task) -> Any:
        with self._lock:
            if self._closing:
                raise LedgerUnavailable("it is closed")
            self._tasks.put(task)
        return await asyncio.wrap_future(task.future)

    def _main(self) -> None:
        conn: sqlite3.Connection | None = None
        try:
            conn = self._connect()
        except BaseException as error:  # noqa: BLE001 - every caller is told
            self._refuse_all(translated(error))
        else:
            self._serve(conn)
        finally:
            if conn is not None:
                conn.close()
            self._ended.set_result(None)

    def _refuse_all(self, error: BaseException) -> None:
        while (task := self._tasks.get()) is not None:
            if task.future.set_running_or_notify_cancel():
                task.future.set_exception(error)

    def _serve(self, conn: sqlite3.Connection) -> None:
        raise NotImplementedError


class Reader(_ConnectionThread):
    """Each task sees one snapshot and waits for no commit."""

    def _serve(self, conn: sqlite3.Connection) -> None:
        conn.execute("PRAGMA query_only=ON")
        while (task := self._tasks.get()) is not None:
            if not task.future.set_running_or_notify_cancel():
                continue
            try:
                conn.execute("BEGIN")
                try:
                    value = task.work(conn)
                finally:
                    if conn.in_transaction:
                        conn.execute("ROLLBACK")
            except BaseException as error:  # noqa: BLE001 - the caller is told
                task.future.set_exception(translated(error))
            else:
                task.future.set_result(value)


class Writer(_ConnectionThread):
    """Each task is atomic by its own savepoint; tasks that wait together share one transaction and fsync.

    Nothing is answered before the outer COMMIT, nor, for a task that removed content, before the files were
    scrubbed of it.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection], name: str) -> None:
        self._scrubber = Scrubber()
        super().__init__(connect, name)

    async def run_scrubbed(self, level: Scrub, work: Work[_T]) -> tuple[_T, bool]:
        """As ``run``; also whether the files are scrubbed. If not, it is tried again until they are."""
        result: tuple[_T, bool] = await self._submit(_Task(work, level))
        return result

    def _serve(self, conn: sqlite3.Connection) -> None:
        open_ = True
        while open_:
            try:
                first = self._tasks.get(timeout=self._scrubber.retry_s)
            except queue.Empty:
                self._scrubber.run(conn)
                continue
            group, open_ = self._group(first)
            group = [task for task in group if task.future.set_running_or_notify_cancel()]
            if not group:
                continue
            try:
                self._answer(conn, group, self._outcomes(conn, group))
            except BaseException as error:  # noqa: BLE001 - every caller is told
                # A rollback that fails, say: the thread lives on and nobody waits for ever.
                _log.error("the ledger's writer failed: %s", told(error))
                _fail(group, translated(error))
        self._scrubber.run(conn)

    def _group(self, first: _Task | None) -> tuple[list[_Task], bool]:
        """``first`` and what waits behind it; False when the end of the queue is among it."""
        group: list[_Task] = []
        task = first
        while task is not None:
            group.append(task)
            if len(group) == GROUP_MAX:
                return group, True
            try:
                task = self._tasks.get_nowait()
            except queue.Empty:
                return group, True
        return group, False

    def _outcomes(self, conn: sqlite3.Connection, group: list[_Task]) -> list[_Outcome]:
        try:
            conn.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:  # busy beyond the timeout: waiting again for each would help nobody
            return [_Outcome(error=translated(error)) for _ in group]
        try:
            outcomes = [self._step(conn, task) for task in group]
            conn.execute("COMMIT")
        except (sqlite3.Error, _TransactionLostError) as error:
            if conn.in_transaction:
                conn.execute("ROLLBACK")
            return self._one_by_one(conn, group, error)
        return outcomes

    def _one_by_one(
        self, conn: sqlite3.Connection, group: list[_Task], error: BaseException
    ) -> list[_Outcome]:
        """Nothing of the group was applied. One task too big for the disk must not fail its neighbours."""
        if len(group) == 1:
            cause = error.__cause__ if isinstance(error, _TransactionLostError) and error.__cause__ else error
            return [_Outcome(error=translated(cause))]
        return [self._outcomes(conn, [task])[0] for task in group]

    def _step(self, conn: sqlite3.Connection, task: _Task) -> _Outcome:
        conn.execute("SAVEPOINT step")
        try:
            value = task.work(conn)
        except BaseException as error:
            if not conn.in_transaction:  # SQLite rolled everything back by itself (full, I/O error …)
                raise _TransactionLostError from error
            conn.execute("ROLLBACK TO step")
            conn.execute("RELEASE step")
            return _Outcome(error=translated(error))
        conn.execute("RELEASE step")
        return _Outcome(value=value)

    def _answer(self, conn: sqlite3.Connection, group: list[_Task], outcomes: list[_Outcome]) -> None:
        pairs = list(zip(group, outcomes, strict=True))
        wanted = max((task.scrub for task, outcome in pairs if outcome.error is None), default=Scrub.NONE)
        self._scrubber.owe(wanted)
        clean = self._scrubber.run(conn) if wanted else False
        for task, outcome in pairs:
            if outcome.error is not None:
                task.future.set_exception(outcome.error)
            else:
                task.future.set_result((outcome.value, clean) if task.scrub else outcome.value)
