"""Checks of how many hosts carry the users: one number that every process reads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hermes_memory.ports.ledger import HostPool, Ledger
from hermes_memory.testing.builders import EMBEDDER


class HostPoolChecks:
    """The number is durable, and its revision tells of every change."""

    async def test_a_pool_is_empty_before_the_first_number(self, ledger: Ledger) -> None:
        assert await ledger.host_pool() == HostPool(0, 0)

    async def test_a_new_number_raises_the_revision(self, ledger: Ledger, peer: Ledger) -> None:
        assert await ledger.resize_host_pool(4) == HostPool(4, 1)
        assert await peer.host_pool() == HostPool(4, 1)
        assert await peer.resize_host_pool(2) == HostPool(2, 2)
        assert await ledger.host_pool() == HostPool(2, 2)
        assert await ledger.resize_host_pool(4) == HostPool(4, 3)

    async def test_the_same_number_again_changes_nothing(self, ledger: Ledger) -> None:
        await ledger.resize_host_pool(4)
        assert await ledger.resize_host_pool(4) == HostPool(4, 1)

    async def test_of_two_who_resize_at_once_each_counts_or_changes_nothing(
        self, ledger: Ledger, peer: Ledger
    ) -> None:
        same = await asyncio.gather(*((ledger, peer)[i % 2].resize_host_pool(4) for i in range(6)))
        assert set(same) == {HostPool(4, 1)}
        await asyncio.gather(ledger.resize_host_pool(2), peer.resize_host_pool(3))
        now = await ledger.host_pool()
        assert now.revision >= 3
        assert now.hosts in {2, 3}

    async def test_the_pool_outlives_the_handle(
        self, ledger: Ledger, make_ledger: Callable[[], Ledger]
    ) -> None:
        await ledger.resize_host_pool(4)
        await ledger.close()
        handle = make_ledger()
        await handle.open(EMBEDDER)
        assert await handle.host_pool() == HostPool(4, 1)
        await handle.close()
