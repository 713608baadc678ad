"""The extraction beside a user's mailbox: micro-batches, one in flight, retried, then parked (ARCHITECTURE §4)."""

from __future__ import annotations

import asyncio
import itertools
import logging
import uuid
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from hermes_memory.app.commands import FailExtraction, Settle
from hermes_memory.app.distil import distil
from hermes_memory.core.candidate import OVER_BUDGET, SAID, ExtractionRequest
from hermes_memory.core.failures import told
from hermes_memory.core.ids import digest
from hermes_memory.core.model import Memory, Turn
from hermes_memory.errors import ExtractionFailed, Fenced, HermesError, LeaseLost, LedgerUnavailable
from hermes_memory.ports.distiller import Distilled
from hermes_memory.runtime.active import ActiveUser
from hermes_memory.runtime.counting import NO_PRICES, Prices, count_failed_extraction, count_usage
from hermes_memory.runtime.watching import came_before

log = logging.getLogger(__name__)

MAX_PAUSE_S = 60.0  # between two tries of one batch
LONGEST_PAUSE_S = 300.0  # where a model asks for more

Place = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRules:
    """When a batch closes, and how often and how soon a failed one is tried again.

    ``tokens_per_day``: what a language model may take for a user; 0: as much as it likes.
    """

    turns: int
    chars: int
    delay_s: float
    context_turns: int
    known: int
    attempts: int
    backoff_s: float
    parked_retry_s: float
    tokens_per_day: int = 0
    prices: Prices = NO_PRICES


@dataclass(frozen=True, slots=True)
class _Parked:
    """A batch that could not be read, and when it is tried again. The places of an erased user come again."""

    generation: int
    places: tuple[Place, ...]
    due: datetime


@dataclass(frozen=True, slots=True)
class _Read:
    """What was made of a batch and is not settled yet: a ledger that is away shall cost no second reading."""

    generation: int
    batch: list[Turn]
    distilled: Distilled


class Extraction:
    """Reads a user's waiting turns, batch after batch, for as long as the user is awake and this host's."""

    def __init__(self, user: ActiveUser, rules: BatchRules) -> None:
        self._user, self._rules = user, rules
        self._parked: list[_Parked] = []
        self._unsettled: _Read | None = None
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
        """Whether nothing waits but what is parked: the host looks again for those who have such turns."""
        return not self._waiting()

    @property
    def parked(self) -> int:
        """How many turns are set aside, to be tried again later."""
        return len(self._set_aside())

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
        if due := self._due():
            self._parked.remove(due)
            await self._read(due.places, attempts=1)
        elif not self._waiting():
            await self._for_work()
        else:
            await self._until_closed()
            if batch := self._batch():
                await self._read(batch, self._rules.attempts)

    def _due(self) -> _Parked | None:
        """A parked batch whose time has come."""
        now = self._user.around.clock.now()
        return next((parked for parked in self._parked if parked.due <= now), None)

    async def _for_work(self) -> None:
        """Wait until something changes, or the next parked batch is due."""
        if not self._parked:
            await self._user.changed.wait()
            return
        clock = self._user.around.clock
        next_s = (min(parked.due for parked in self._parked) - clock.now()).total_seconds()
        timer = asyncio.ensure_future(clock.sleep(next_s))
        try:
            await came_before(self._user.changed, timer)
        finally:
            timer.cancel()

    def _waiting(self) -> list[Turn]:
        aside = self._set_aside()
        return [turn for turn in self._user.state.pending if _place(turn) not in aside]

    def _set_aside(self) -> set[Place]:
        """The places of what is parked; what was erased or is read by now is forgotten."""
        state = self._user.state
        self._parked = [
            parked for parked in self._parked
            if parked.generation == state.generation and self._still_waiting(parked.places)
        ]  # fmt: skip
        return {place for parked in self._parked for place in parked.places}

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
        """Wait until the batch is full, watched by a waiting caller, of a conversation that is over, or old enough."""
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
        sessions = self._user.state.sessions
        over = any(turn.session_id in sessions and sessions[turn.session_id].ended for turn in waiting)
        sized = (
            len(waiting) >= self._rules.turns
            or sum(len(turn.content) for turn in waiting) >= self._rules.chars
        )
        return watched or over or sized or not waiting

    async def _read(self, places: tuple[Place, ...], attempts: int) -> None:
        """Read one batch, trying again; one that cannot be read is parked for long, and its jobs say why.

        Each try looks at the turns as they are then. A ledger that is away says nothing about the turns: it is
        waited for, and no try is counted.
        """
        failures, self._unsettled = 0, None
        for tries in itertools.count():
            asked_s, generation = 0.0, self._user.state.generation
            try:
                await self._user.catch_up()
                generation = self._user.state.generation
                day, _ = await self._today(places)
                if batch := self._still_waiting(places):
                    await self._distil_and_settle(batch, day, last_try=failures + 1 >= attempts)
            except (Fenced, LeaseLost):
                raise
            except LedgerUnavailable as error:
                log.warning("extraction waits: %s", error.code)
            except Exception as failure:  # noqa: BLE001  # whatever went wrong, the turns stay and the job says so
                failures += 1
                parked = failures >= attempts or _over_budget(failure)
                if await self._failed(places, generation, failure, failures, parked=parked):
                    self._parked.append(_Parked(generation, places, await self._until(places, failure)))
                    return
                asked_s = failure.after_s if isinstance(failure, ExtractionFailed) else 0.0
            else:
                return
            pause_s = min(MAX_PAUSE_S, self._rules.backoff_s * 2**tries)
            await self._user.around.clock.sleep(max(pause_s, min(asked_s, LONGEST_PAUSE_S)))

    def _still_waiting(self, places: tuple[Place, ...]) -> list[Turn]:
        turns = self._user.state.turns
        return [turns[place] for place in places if place in turns and turns[place].pending]

    async def _distil_and_settle(self, batch: list[Turn], day: str, *, last_try: bool) -> None:
        generation, places = self._user.state.generation, tuple(_place(turn) for turn in batch)
        held = self._unsettled
        if held is None or (held.generation, held.batch) != (generation, batch):
            held = _Read(generation, batch, await self._distil(batch, day, last_try=last_try))
            self._unsettled = held
        command = Settle(turns=places, distilled=held.distilled, generation=generation, day=day)
        await self._user.execute(command, _operation(places, generation), actor="extraction")
        self._unsettled = None

    async def _distil(self, batch: list[Turn], day: str, *, last_try: bool) -> Distilled:
        around, policy = self._user.around, self._user.around.policy
        request = self._request(batch, day, last_try=last_try)
        distilled = await distil(around.distiller, request, policy.rules.entry, policy.dimensions)
        count_usage(around.metrics, distilled.extraction, len(batch), self._rules.prices)
        return distilled

    def _request(self, batch: list[Turn], day: str, *, last_try: bool) -> ExtractionRequest:
        first, budget, spent = batch[0], self._rules.tokens_per_day, self._user.state.settings.spent
        before = [t for t in self._user.state.window(first.session_id) if t.index < first.index]
        return ExtractionRequest(
            turns=tuple(batch),
            context=tuple(before[-self._rules.context_turns :]),
            known=self._touched(batch),
            last_try=last_try,
            tokens_left=max(0, budget - spent.on(day)) if budget else None,
        )

    async def _today(self, places: tuple[Place, ...]) -> tuple[str, tzinfo]:
        """The day, ISO, in the time zone of the last turn, which is the user's as far as we know; and that zone."""
        turns = self._still_waiting(places)
        zone = await self._user.around.zones.of(turns[-1].timezone if turns else None) or UTC
        return self._user.around.clock.now().astimezone(zone).date().isoformat(), zone

    async def _until(self, places: tuple[Place, ...], failure: Exception) -> datetime:
        """When a parked batch is tried again: after long, or on the next day where the tokens of this one are spent."""
        now = self._user.around.clock.now()
        if not _over_budget(failure):
            return now + timedelta(seconds=self._rules.parked_retry_s)
        today, zone = await self._today(places)
        spent = date.fromisoformat(max(today, self._user.state.settings.spent.day))
        return datetime.combine(spent + timedelta(days=1), time.min, zone).astimezone(UTC)

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

    async def _failed(
        self, places: tuple[Place, ...], generation: int, failure: Exception, failures: int, *, parked: bool
    ) -> bool:
        """Record a failed try; whether it is parked and the jobs say so."""
        why = failure.code if isinstance(failure, HermesError) else told(failure)
        log.warning("extraction attempt %d failed: %s", failures, why, extra=self._who)
        tokens = failure.tokens if isinstance(failure, ExtractionFailed) else 0
        count_failed_extraction(self._user.around.metrics, tokens, parked=parked)
        day, _ = await self._today(places)
        reason = _reason(failure)
        command = FailExtraction(
            turns=places, generation=generation, reason=reason, parked=parked, day=day, tokens=tokens
        )
        try:
            await self._user.execute(command, f"fail:{uuid.uuid4().hex}", actor="extraction")
        except (Fenced, LeaseLost):
            raise
        except HermesError as error:  # nobody is told yet, so it is tried again
            log.warning("a failed extraction could not be recorded: %s", error.code)
            return False
        return parked


def _over_budget(failure: Exception) -> bool:
    return isinstance(failure, ExtractionFailed) and failure.why == OVER_BUDGET


def _reason(failure: Exception) -> str:
    """What a job says. A stranger's words may hold what the user said."""
    if _over_budget(failure):
        return OVER_BUDGET
    return failure.detail if isinstance(failure, HermesError) else type(failure).__name__


def _place(turn: Turn) -> Place:
    return turn.session_id, turn.index


def _operation(places: tuple[Place, ...], generation: int) -> str:
    """The same turns of the same generation are settled once, by whoever reads them."""
    named = digest(*(f"{session}\n{index}" for session, index in places))
    return f"settle:{generation}:{named}"
