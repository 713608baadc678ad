"""The whole path on a cluster while the language model that reads is broken in every way.

On the cluster of test_resharding.py, after the others that use it. The model is a socket of this process.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests import reading_under_faults as faults
from tests.cluster.harness import free_port
from tests.cluster.nodes import CONFIG, Nodes
from tests.faulty_endpoint import FaultyEndpoint
from tests.model_reader import read
from tests.reading_under_faults import BATCH, EXTRACTOR, open_alerts, talk_through

pytestmark = pytest.mark.filterwarnings("default")  # Ray runs in this process and warns of itself

MORE_S = 0.5  # than in good times may a 202 take; whoever waits for the model waits a second at least


@pytest.fixture(scope="module")
def port(nodes: Nodes) -> int:
    """Where the model is; the app is deployed anew, with hosts that know of it."""
    found = free_port()
    reader = {**EXTRACTOR, "base_url": f"http://127.0.0.1:{found}/v1"}
    config: dict[str, Any] = {**CONFIG, "extractor": reader, "batch": BATCH}
    before = {host["pid"] for host in nodes.hosts().values()}
    began = time.monotonic()
    nodes.deploy(config)
    nodes.hosts(but=before)
    print(f"\nwith a language model: {time.monotonic() - began:.1f} s")
    return found


@pytest.fixture
async def endpoint(port: int) -> AsyncIterator[FaultyEndpoint]:
    made = FaultyEndpoint(answer=read, port=port)
    await made.start()
    yield made
    await made.stop()


async def test_whatever_befalls_the_model_messages_are_taken_in_and_read_in_the_end(
    endpoint: FaultyEndpoint, nodes: Nodes
) -> None:
    async with httpx.AsyncClient(base_url=nodes.url, timeout=60, trust_env=False) as http:
        await talk_through(http, endpoint, "warming up")
        asked = len(endpoint.asked)
        talks = [await talk_through(http, endpoint, fault) for fault in (*faults.FAULTS, faults.EVERY_SECOND)]
        for talk in talks:
            print(talk.told())
        print(f"the model was asked {len(endpoint.asked) - asked} times, {endpoint.most_running} at once")
        healthy, *others = talks
        assert max(talk.usual_s for talk in others) < 3 * healthy.usual_s + MORE_S
        assert await open_alerts(http) == []
        text = (await http.get("/metrics")).text
        told = {line.split("{")[0] for line in text.splitlines() if line and not line.startswith("#")}
        assert {"hermes_extraction_tokens_total", "hermes_extraction_calls_total"} <= told
