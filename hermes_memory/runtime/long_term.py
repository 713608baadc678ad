"""Recall through a long-term index: it nominates, the actor ranks (ARCHITECTURE §3).

The index is asked by meaning and by words at once, within a bound of time. It may be behind the ledger: what it names
counts only where the user's state knows it too, and its vectors come from the ledger. A recall never depends on it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hermes_memory.app.recall import Nominated, Probe
from hermes_memory.core.ids import UserKey
from hermes_memory.errors import HermesError
from hermes_memory.ports.index import Hit, VectorIndex
from hermes_memory.runtime.breaker import Breaker

if TYPE_CHECKING:
    from hermes_memory.runtime.active import Surroundings

log = logging.getLogger(__name__)

Asked = list[asyncio.Task[list[Hit]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRules:
    """How an index is asked.

    ``nominations`` by meaning and as many by words, within ``timeout_s``. After ``failures`` in a row it is left alone
    for ``pause_s``. ``always``: it is asked for active memories too.
    """

    nominations: int
    timeout_s: float
    failures: int
    pause_s: float
    always: bool = False


class LongTerm:
    """The index of a host with its bounds; all its users share what is known of its health."""

    def __init__(self, index: VectorIndex, rules: SearchRules) -> None:
        self.index, self.rules = index, rules
        self._breaker = Breaker(rules.failures, rules.pause_s)

    async def nominate(
        self, key: UserKey, probe: Probe, rests: Callable[[str], bool], around: Surroundings
    ) -> Nominated | None:
        """What may answer; None when the index is down, whatever is wrong with it.

        ``rests`` tells, once the index has answered, which ids are still archived and have a vector in the ledger.
        """
        if not self._breaker.lets(around.clock.now()):
            around.metrics.count("hermes_recall_index_skipped_total")
            return None
        try:
            async with asyncio.timeout(self.rules.timeout_s):
                nominated = await self._ask(key, probe, rests, around)
        except Exception as error:  # noqa: BLE001  # a recall answers without it, and says so
            self._note(error, around)
            return None
        except BaseException:
            self._breaker.given_up()
            raise
        self._breaker.succeeded()
        return nominated

    async def _ask(
        self, key: UserKey, probe: Probe, rests: Callable[[str], bool], around: Surroundings
    ) -> Nominated:
        async with asyncio.TaskGroup() as group:
            cold = self._search(group, key, probe, archived=True)
            warm = self._search(group, key, probe, archived=False) if self.rules.always else None
        apart = probe.apart[: self.rules.nominations]
        wanted = [memory_id for memory_id in dict.fromkeys([*_ids(cold), *apart]) if rests(memory_id)]
        documents = await around.ledger.documents(key, wanted) if wanted else []
        return Nominated(
            vectors={memory.id: vector for memory, vector in documents},
            active=None if warm is None else frozenset(_ids(warm)),
        )

    def _search(self, group: asyncio.TaskGroup, key: UserKey, probe: Probe, *, archived: bool) -> Asked:
        index, most = self.index, self.rules.nominations
        asked = [group.create_task(index.near(key, probe.vector, most, archived=archived))]
        if probe.words:
            asked.append(group.create_task(index.match(key, probe.words, most, archived=archived)))
        return asked

    def _note(self, error: Exception, around: Surroundings) -> None:
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        self._breaker.failed(around.clock.now())
        around.metrics.count("hermes_recall_index_failures_total", kind=type(error).__name__)
        log.warning(
            "no answer from the index: %s", error if isinstance(error, HermesError) else type(error).__name__
        )


def _ids(asked: Asked) -> Iterable[str]:
    return [hit.memory_id for task in asked for hit in task.result()]
