"""The extraction beside a user's mailbox: micro-batches, one in flight, retried, then parked (ARCHITECTURE §4)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from dataclasses import dataclass

from hermes_memory.app.commands import FailExtraction, Settle
from hermes_memory.core.candidate import ExtractionRequest
from hermes_memory.core.ids import digest
from hermes_memory.core.model import Memory, Turn
from hermes_memory.errors import HermesError
from hermes_memory.runtime.active import ActiveUser

log = logging.getLogger(__name__)

Place = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRules:
    """When a batch closes, and how often and how soon a failed one is tried again."""

    turns: int
    chars: int
    delay_s: float
    context_turns: int
    known: int
    attempts: int
    backoff_s: float


class Extraction:
    """Reads a user's waiting turns, batch after batch, for as long as the user is awake."""

    def __init__(self, user: ActiveUser, rules: BatchRules) -> None:
        self._user, self._rules = user, rules
        self._parked: set[Place] = set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin; waits for work by itself."""
        self._task = asyncio.create_task(self._work())

    async def stop(self) -> None:
        """End; what was in flight is read again after the next start."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    @property
    def idle(self) -> bool:
        """Whether nothing waits but what is parked."""
        return not self._waiting()

    async def _work(self) -> None:
        while True:
            self._user.changed.clear()
            if not self._waiting():
                await self._user.changed.wait()
                continue
            await self._until_closed()
            if batch := self._waiting()[: self._rules.turns]:
                await self._read(batch)

    def _waiting(self) -> list[Turn]:
        return [
            turn for turn in self._user.state.pending if (turn.session_id, turn.index) not in self._parked
        ]

    async def _until_closed(self) -> None:
        """Wait until the batch is full, watched by a waiting caller, or old enough."""
        timer = asyncio.ensure_future(self._user.around.clock.sleep(self._rules.delay_s))
        try:
            while not timer.done() and not self._full():
                self._user.changed.clear()
                news = asyncio.ensure_future(self._user.changed.wait())
                await asyncio.wait({timer, news}, return_when=asyncio.FIRST_COMPLETED)
                news.cancel()
        finally:
            timer.cancel()

    def _full(self) -> bool:
        waiting = self._waiting()
        watched = any(self._user.watched(turn.job_id) for turn in waiting)
        sized = (
            len(waiting) >= self._rules.turns
            or sum(len(turn.content) for turn in waiting) >= self._rules.chars
        )
        return watched or sized or not waiting

    async def _read(self, batch: list[Turn]) -> None:
        """Read one batch, trying again; a batch that cannot be read is parked and its jobs say why."""
        places = tuple((turn.session_id, turn.index) for turn in batch)
        for attempt in range(1, self._rules.attempts + 1):
            try:
                await self._distil_and_settle(batch, places)
            except Exception as failure:  # noqa: BLE001  # whatever went wrong, the turns stay and the job says so
                await self._failed(places, failure, attempt)
            else:
                return

    async def _distil_and_settle(self, batch: list[Turn], places: tuple[Place, ...]) -> None:
        generation = self._user.state.generation
        distilled = await self._user.around.distiller.distil(self._request(batch))
        command = Settle(turns=places, distilled=distilled, generation=generation)
        await self._user.execute(command, _operation(places, generation), actor="extraction")

    def _request(self, batch: list[Turn]) -> ExtractionRequest:
        first = batch[0]
        before = [t for t in self._user.state.window(first.session_id) if t.index < first.index]
        return ExtractionRequest(
            turns=tuple(batch),
            context=tuple(before[-self._rules.context_turns :]),
            known=self._touched(batch),
        )

    def _touched(self, batch: list[Turn]) -> tuple[Memory, ...]:
        """The memories that the turns may speak of, by their words: what the extractor can affirm."""
        state, found = self._user.state, dict[str, Memory]()
        for turn in batch:
            scores = state.shelf.words.scores(self._user.around.policy.words(turn.content))
            found |= {memory_id: state.live[memory_id] for memory_id, _ in scores.top(self._rules.known)}
        return tuple(found.values())

    async def _failed(self, places: tuple[Place, ...], failure: Exception, attempt: int) -> None:
        parked = attempt >= self._rules.attempts
        known = isinstance(failure, HermesError)
        log.warning("extraction attempt %d failed: %s", attempt, type(failure).__name__, exc_info=not known)
        self._user.around.metrics.count("hermes_extraction_failures_total", parked=str(parked).lower())
        reason = failure.detail if isinstance(failure, HermesError) else type(failure).__name__
        command = FailExtraction(turns=places, reason=reason, parked=parked)
        try:
            await self._user.execute(command, f"fail:{uuid.uuid4().hex}", actor="extraction")
        except (
            HermesError
        ) as error:  # the ledger is away too: the attempt counts here, the turns are safe there
            log.warning("a failed extraction could not be recorded: %s", error.code)
        if parked:
            self._parked.update(places)
        else:
            await self._user.around.clock.sleep(self._rules.backoff_s * 2 ** (attempt - 1))


def _operation(places: tuple[Place, ...], generation: int) -> str:
    """The same turns of the same generation are settled once, by whoever reads them."""
    named = digest(*(f"{session}\n{index}" for session, index in places))
    return f"settle:{generation}:{named}"
