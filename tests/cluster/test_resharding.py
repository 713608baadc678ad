"""On three nodes with two ingress replicas: users move, hosts stand still, a node goes; nothing acknowledged is lost.

One Ray cluster for the tests of this file, which run in this order, and then for those of test_served_embedding.py.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import httpx
import psutil
import pytest

from actors.crew import RayCrew
from actors.links import RayLink, Unreachable
from actors.placement import Pooled, Seat
from hermes_memory.core.ids import UserKey
from hermes_memory.ports.ledger import HostPool
from tests.cluster.crowd import Crowd
from tests.cluster.nodes import CONFIG, Nodes

pytestmark = pytest.mark.filterwarnings("default")  # Ray runs in this process and warns of itself

SIZES = (3, 1, 2)


@pytest.fixture
def http(nodes: Nodes) -> Iterator[httpx.Client]:
    with nodes.client() as client:
        yield client


def test_the_app_starts_its_hosts_and_they_are_spread_over_the_nodes_for_hosts(nodes: Nodes) -> None:
    hosts = nodes.hosts()
    assert set(hosts) == {"hermes-host-0", "hermes-host-1"}
    placed = [nodes.node_of(host["pid"]) for host in hosts.values()]
    assert set(placed) == set(nodes.cluster.worker_nodes), "one on each, none on the head"


async def test_users_move_under_load_and_callers_only_see_latency(nodes: Nodes, http: httpx.Client) -> None:
    crowd, took = Crowd(nodes.url), {}
    async with crowd.busy():
        await asyncio.sleep(1)
        for hosts in SIZES:
            began = time.monotonic()
            pool = await asyncio.to_thread(nodes.scale, hosts)
            took[hosts] = round(time.monotonic() - began, 2)
            assert pool["hosts"] == hosts
            await asyncio.sleep(1)
    print(f"\nto so many hosts in s: {took}; {crowd.told()}")
    await asyncio.to_thread(crowd.check, http)
    assert crowd.retried == {}, "a caller saw more than latency"
    assert set(await asyncio.to_thread(nodes.hosts)) == {"hermes-host-0", "hermes-host-1"}
    pool = await asyncio.to_thread(nodes.pool)
    assert pool == {"hosts": 2, "revision": 1 + len(SIZES)}


def test_impossible_numbers_of_hosts_are_refused(http: httpx.Client) -> None:
    for hosts in (0, 65, 1_000_000, "2"):
        assert http.post("/v1/admin/hosts", json={"hosts": hosts}).status_code == 422


def _user_of(name: str, prefix: str) -> str:
    pool = Pooled(HostPool(2))
    return next(
        user for n in range(100) if pool.seat_of(UserKey("default", user := f"{prefix}-{n}")).name == name
    )


def test_a_host_that_stands_still_is_noticed_and_its_users_only_wait(
    nodes: Nodes, http: httpx.Client
) -> None:
    before = nodes.hosts()["hermes-host-1"]["pid"]
    user = _user_of("hermes-host-1", "patient")
    began = time.monotonic()
    os.kill(before, signal.SIGSTOP)
    message = {"id": "m-1", "role": "user", "content": "I'm allergic to peanuts."}
    answer = http.post(f"/v1/users/{user}/messages", json={"session_id": user, "messages": [message]})
    took_s = time.monotonic() - began
    print(f"\nSIGSTOP: acknowledged after {took_s:.1f} s")
    assert answer.status_code == 202, answer.text
    assert not psutil.pid_exists(before), "it was ended, so it cannot wake up and go on"
    assert nodes.hosts()["hermes-host-1"]["pid"] != before
    turns = http.get(f"/v1/users/{user}/export").json()["turns"]
    assert [turn["message_id"] for turn in turns] == ["m-1"]


async def test_a_call_that_nobody_waits_for_is_taken_back(nodes: Nodes) -> None:
    import ray

    class Slow:
        def __init__(self) -> None:
            self.under_way = 0

        async def dawdle(self) -> None:
            self.under_way += 1
            try:
                await asyncio.sleep(600)
            finally:
                self.under_way -= 1

        async def count(self) -> int:
            return self.under_way

    remote: Any = ray.remote(Slow)
    link = RayLink("slow", remote.options(num_cpus=0).remote())
    assert await link.call("count", timeout_s=30) == 0
    with pytest.raises(Unreachable) as lost:
        await link.call("dawdle", timeout_s=0.3)
    assert lost.value.silent
    abandoned = asyncio.create_task(link.call("dawdle", timeout_s=60))
    await asyncio.sleep(0.3)
    abandoned.cancel()
    for _ in range(100):
        await asyncio.sleep(0.1)
        if not await link.call("count", timeout_s=5):
            return
    raise AssertionError("calls go on for nobody")


async def test_ending_a_host_that_is_not_there_is_no_error(nodes: Nodes) -> None:
    crew = RayCrew({}, "", "", 10.0)
    assert set(await crew.pooled()) == {Seat("hermes-host-0"), Seat("hermes-host-1")}
    await crew.end(Seat("hermes-host-9"), for_good=True)


async def test_another_configuration_reaches_the_hosts_that_are_there(
    nodes: Nodes, http: httpx.Client
) -> None:
    crowd = Crowd(nodes.url)
    before = [host["pid"] for host in (await asyncio.to_thread(nodes.hosts)).values()]
    changed = CONFIG | {"batch": {"delay_s": 0.1}}
    async with crowd.busy():
        began = time.monotonic()
        await asyncio.to_thread(nodes.deploy, changed)
        deployed_s = time.monotonic() - began
        await asyncio.to_thread(nodes.hosts, before)
        took_s = time.monotonic() - began
        await asyncio.sleep(1)
    print(f"\ndeployed again in {deployed_s:.1f} s, new hosts after {took_s:.1f} s; {crowd.told()}")
    await asyncio.to_thread(crowd.check, http)


async def test_a_node_goes_under_load_and_its_hosts_come_back_on_another(
    nodes: Nodes, http: httpx.Client
) -> None:
    crowd = Crowd(nodes.url)
    before = [host["pid"] for host in (await asyncio.to_thread(nodes.hosts)).values()]
    going = nodes.node_of(before[0])
    lost = [pid for pid in before if nodes.node_of(pid) is going]
    async with crowd.busy():
        await asyncio.sleep(1.5)
        began = time.monotonic()
        await asyncio.to_thread(nodes.cluster.remove_node, going, False)
        hosts = await asyncio.to_thread(nodes.hosts, lost)
        took_s = time.monotonic() - began
        await asyncio.sleep(2)
    print(f"\na node was removed; all hosts answered after {took_s:.1f} s; {crowd.told()}")
    [left] = nodes.cluster.worker_nodes
    assert {nodes.node_of(host["pid"]) for host in hosts.values()} == {left}
    await asyncio.to_thread(crowd.check, http)
