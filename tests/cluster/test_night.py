"""A night that is killed in the middle ends as one that nothing disturbed (SPEC §9): the driver, a host.

On the cluster of test_resharding.py, after it; leaves as many nodes as there were. More points, and nodes: `make chaos-night`.
"""

from __future__ import annotations

import asyncio
import random

import pytest

from tests.cluster.nodes import Nodes
from tests.night_kills.kills import Nights

pytestmark = pytest.mark.filterwarnings("default")  # Ray runs in this process and warns of itself

USERS = 40


@pytest.fixture(scope="module")
def nights(nodes: Nodes, tmp_path_factory: pytest.TempPathFactory) -> Nights:
    """After an undisturbed night. Another moment in each run; the seed that is shown brings one back."""
    seed = random.randrange(1_000_000)
    print(f"\nseed {seed}")
    folder = tmp_path_factory.mktemp("nights")
    return asyncio.run(Nights.begun(nodes, folder, USERS, random.Random(seed)))


@pytest.mark.parametrize("kind", ["driver", "host"])
async def test_a_night_goes_on_after_a_kill_and_ends_as_if_nothing_had_been(
    nights: Nights, kind: str
) -> None:
    hit = await nights.hit(kind)
    print(f"\n{kind} killed with {hit.seen} of {hit.users} users in; over after {hit.seconds:.1f} s")
    assert hit.seen < hit.users, "it was over before"
    assert hit.other == []
