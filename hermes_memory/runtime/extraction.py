"""The extraction beside a user's mailbox: micro-batches, one in flight, retried, then parked (ARCHITECTURE §4)."""

from __future__ import annotations

import asyncio
import itertools
import logging
import uuid
from dataclasses import dataclass

from hermes_memory.app.commands import FailExtraction, Settle
from hermes_memory.app.distil import distil
from hermes_memory.core.candidate import ExtractionRequest
from hermes_memory.core.episodes import SAID
from hermes_memory.core.failures import told
from hermes_memory.core.ids import digest
from hermes_memory.core.model import Memory, Turn
from hermes_memory.errors import Fenced, HermesError, LeaseLost, LedgerUnavailable
from hermes_memory.runtime.active import ActiveUser
from hermes_memory.runtime.watching import came_before

log = logging.getLogger(__name__)

MAX_PAUSE_S = 60.0  # between two tries of one batch

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
    """Reads a user's waiting turns, batch after batch, for as long as the user is awake and this host's."""

    def __init__(self, user: ActiveUser, rules: BatchRules) -> None:
        self._user, self._rules = user, rules
        # With the generation: the places of an erased user come again.
        self._parked: set[tuple[int, Place]] = set()
        self._task: asyncio.Task[None] | None = None

    @property
    def _who(self) -> dict[str, str]:
        return {"user": self._user.key.hashed}

    def start(self) -> None:
        """Begin; waits for work by itself."""
        self._task = asyncio.create_task(self._work())

    async def stop(self) -> None:
        """End; what was in flight is read again after the next start."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    @property
    def idle(self) -> bool:
        """Whether nothing waits but what is parked."""
        return not self._waiting()

    async def _work(self) -> None:
        while not self._user.closed:
            try:
                await self._next()
            except (Fenced, LeaseLost):
                log.info("an extraction ends: the user is another host's", extra=self._who)
            except Exception as error:  # noqa: BLE001
                log.error("an extraction stumbled: %s", told(error), extra=self._who)
                await self._user.around.clock.sleep(MAX_PAUSE_S)

    async def _next(self) -> None:
        self._user.changed.clear()
        if not self._waiting():
            await self._user.changed.wait()
            return
        await self._until_closed()
        if batch := self._batch():
            await self._read(batch)

    def _waiting(self) -> list[Turn]:
        state = self._user.state
        return [turn for turn in state.pending if (state.generation, _place(turn)) not in self._parked]

    def _batch(self) -> tuple[Place, ...]:
        """The oldest waiting turns: at most so many, and no more text than the first that is too much alone."""
        chosen: list[Place] = []
        chars = 0
        for turn in self._waiting()[: self._rules.turns]:
            chars += len(turn.content)
            if chosen and chars > self._rules.chars:
                break
            chosen.append(_place(turn))
        return tuple(chosen)

    async def _until_closed(self) -> None:
        """Wait until the batch is full, watched by a waiting caller, or old enough."""
        timer = asyncio.ensure_future(self._user.around.clock.sleep(self._rules.delay_s))
        try:
            while not timer.done() and not self._full():
                self._user.changed.clear()
                await came_before(self._user.changed, timer)
        finally:
            timer.cancel()

    def _full(self) -> bool:
        waiting = self._waiting()
        watched = any(turn.job_id in self._user.watches for turn in waiting)
        sized = (
            len(waiting) >= self._rules.turns
            or sum(len(turn.content) for turn in waiting) >= self._rules.chars
        )
        return watched or sized or not waiting

    async def _read(self, places: tuple[Place, ...]) -> None:
        """Read one batch, trying again; a batch that cannot be read is parked and its jobs say why.

        Each try looks at the turns as they are then. A ledger that is away says nothing about the turns: it is
        waited for, and no try is counted.
        """
        failures = 0
        for tries in itertools.count():
            generation = self._user.state.generation
            try:
                await self._user.catch_up()
                if batch := self._still_waiting(places):
                    await self._distil_and_settle(batch)
            except (Fenced, LeaseLost):
                raise
            except LedgerUnavailable as error:
                log.warning("extraction waits: %s", error.code)
            except Exception as failure:  # noqa: BLE001  # whatever went wrong, the turns stay and the job says so
                failures += 1
                if await self._failed(places, failure, failures):
                    self._parked |= {(generation, place) for place in places}
                    return
            else:
                return
            await self._user.around.clock.sleep(min(MAX_PAUSE_S, self._rules.backoff_s * 2**tries))

    def _still_waiting(self, places: tuple[Place, ...]) -> list[Turn]:
        turns = self._user.state.turns
        return [turns[place] for place in places if place in turns and turns[place].pending]

    async def _distil_and_settle(self, batch: list[Turn]) -> None:
        generation, places = self._user.state.generation, tuple(_place(turn) for turn in batch)
        around, policy = self._user.around, self._user.around.policy
        distilled = await distil(
            around.distiller, self._request(batch), policy.rules.entry, policy.dimensions
        )
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
        """The statements that the turns may speak of, by their words: what the extractor can affirm, so no episodes."""
        state, found = self._user.state, dict[str, Memory]()
        said = state.slots.get(SAID)
        statements = state.live.keys() - said.keys() if said else None
        for turn in batch:
            scores = state.shelf.words.scores(self._user.around.policy.words(turn.content))
            found |= {
                memory_id: state.live[memory_id] for memory_id, _ in scores.top(self._rules.known, statements)
            }
        return tuple(found.values())

    async def _failed(self, places: tuple[Place, ...], failure: Exception, failures: int) -> bool:
        """Record a failed try; whether it was the last one and the jobs say so."""
        parked = failures >= self._rules.attempts
        why = failure.code if isinstance(failure, HermesError) else told(failure)
        log.warning("extraction attempt %d failed: %s", failures, why, extra=self._who)
        self._user.around.metrics.count("hermes_extraction_failures_total", parked=str(parked).lower())
        reason = failure.detail if isinstance(failure, HermesError) else type(failure).__name__
        command = FailExtraction(turns=places, reason=reason, parked=parked)
        try:
            await self._user.execute(command, f"fail:{uuid.uuid4().hex}", actor="extraction")
        except (Fenced, LeaseLost):
            raise
        except HermesError as error:  # nobody is told yet, so it is tried again
            log.warning("a failed extraction could not be recorded: %s", error.code)
            return False
        return parked


def _place(turn: Turn) -> Place:
    return turn.session_id, turn.index


def _operation(places: tuple[Place, ...], generation: int) -> str:
    """The same turns of the same generation are settled once, by whoever reads them."""
    named = digest(*(f"{session}\n{index}" for session, index in places))
    return f"settle:{generation}:{named}"
