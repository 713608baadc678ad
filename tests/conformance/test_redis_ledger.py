"""The Redis ledger keeps the port's promises on a real server."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from hermes_memory.adapters.redis_ledger import Redis, RedisLedger
from hermes_memory.ports.ledger import Ledger
from hermes_memory.testing.ledger_suite import LedgerSuite
from tests.conformance.redis_servers import Server, in_memory

PREFIXES = (f"test{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with in_memory() as started:
        yield started


class TestRedisLedger(LedgerSuite):
    """All promises of the port."""

    @pytest.fixture
    def make_ledger(self, server: Server) -> Callable[[], Ledger]:
        prefix = next(PREFIXES)
        return lambda: RedisLedger(Redis(url=server.url), prefix=prefix)
