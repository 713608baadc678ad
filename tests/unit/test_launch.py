"""What the launcher writes down before anything is started."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hermes_memory.config import Settings, load_settings
from hermes_memory.ports.ledger import HostPool
from hermes_memory.wiring import build_ledger, embedder_info
from serve_app import launch


def settings(**actors: object) -> Settings:
    return load_settings(None, {"embedder": {"kind": "hash", "calibration": "hash"}, "actors": actors})


async def _pool(chosen: Settings, data: Path) -> HostPool:
    ledger = build_ledger(chosen, data)
    await ledger.open(embedder_info(chosen))
    try:
        return await ledger.host_pool()
    finally:
        await ledger.close()


@pytest.mark.parametrize("hosts", [(2,), (2, 4), (4, 2, 2)])
def test_a_server_starts_with_the_configured_number_of_hosts(tmp_path: Path, hosts: tuple[int, ...]) -> None:
    for number in hosts:
        asyncio.run(launch._set_pool(settings(hosts=number), tmp_path))
    pool = asyncio.run(_pool(settings(), tmp_path))
    assert pool == HostPool(hosts[-1], len(set(hosts)))


def test_with_an_actor_for_each_user_there_is_no_pool(tmp_path: Path) -> None:
    chosen = settings(placement="dedicated")
    asyncio.run(launch._set_pool(chosen, tmp_path))
    assert asyncio.run(_pool(chosen, tmp_path)) == HostPool()
