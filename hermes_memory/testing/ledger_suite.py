"""What every Ledger promises, as tests that every adapter inherits (STYLE 10).

    class TestMyLedger(LedgerSuite):
        @pytest.fixture
        def make_ledger(self, tmp_path):
            return lambda: MyLedger(tmp_path / "ledger")

Each call of ``make_ledger`` gives another, unopened handle on one store, which is empty when a test begins.
Needs pytest-asyncio in auto mode.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from hermes_memory.ports.ledger import Ledger
from hermes_memory.testing.builders import EMBEDDER
from hermes_memory.testing.ledger_commit_checks import CommitChecks
from hermes_memory.testing.ledger_erasure_checks import ErasureChecks
from hermes_memory.testing.ledger_feeding_checks import FeedingChecks
from hermes_memory.testing.ledger_frozen_checks import FrozenChecks
from hermes_memory.testing.ledger_host_pool_checks import HostPoolChecks
from hermes_memory.testing.ledger_note_checks import NoteChecks
from hermes_memory.testing.ledger_pack_checks import PackChecks
from hermes_memory.testing.ledger_pack_reembedding_checks import PackReembeddingChecks
from hermes_memory.testing.ledger_query_checks import QueryChecks
from hermes_memory.testing.ledger_reembedding_checks import ReembeddingChecks
from hermes_memory.testing.ledger_tally_checks import TallyChecks

MakeLedger = Callable[[], Ledger]


class LedgerSuite(
    CommitChecks,
    FrozenChecks,
    ErasureChecks,
    QueryChecks,
    FeedingChecks,
    HostPoolChecks,
    NoteChecks,
    TallyChecks,
    PackChecks,
    ReembeddingChecks,
    PackReembeddingChecks,
):
    """All checks; a subclass provides ``make_ledger``."""

    @pytest.fixture
    def make_ledger(self) -> MakeLedger:
        """Provided by the subclass."""
        raise NotImplementedError

    @pytest.fixture
    async def ledger(self, make_ledger: MakeLedger) -> AsyncIterator[Ledger]:
        """An open handle on an empty store."""
        handle = make_ledger()
        await handle.open(EMBEDDER)
        yield handle
        await handle.close()

    @pytest.fixture
    async def peer(self, ledger: Ledger, make_ledger: MakeLedger) -> AsyncIterator[Ledger]:
        """A second handle on the same store, as another host has it."""
        handle = make_ledger()
        await handle.open(EMBEDDER)
        yield handle
        await handle.close()
