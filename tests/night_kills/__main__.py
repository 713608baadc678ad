"""Kill nights at random moments: `python -m tests.night_kills --points 20`.

Exits 1 when a user ended otherwise than in the undisturbed night, or a night did not come to its end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.cluster.nodes import three_nodes
from tests.night_kills.kills import KINDS, Hit, Nights


async def campaign(nights: Nights, points: int) -> list[Hit]:
    """One night after the other, the kinds in turn."""
    hits = []
    for number in range(points):
        hit = await nights.hit(KINDS[number % len(KINDS)])
        hits.append(hit)
        print(
            f"{number + 1}/{points} {hit.kind}, {hit.seen} of {hit.users} users in: {hit.seconds:.1f} s,"
            f" {len(hit.other)} ended otherwise",
            flush=True,
        )
    return hits


def show(hits: Sequence[Hit], seed: int, seconds: float) -> None:
    """Print the table."""
    table = Table(title=f"{len(hits)} nights with a kill in {seconds:.0f} s, seed {seed}")
    table.add_column("killed")
    for column in (
        "nights",
        "users in at the kill",
        "s to the end, median",
        "most",
        "users",
        "ended otherwise",
    ):
        table.add_column(column, justify="right")
    for kind in KINDS:
        of = [hit for hit in hits if hit.kind == kind]
        if not of:
            continue
        took, seen = sorted(hit.seconds for hit in of), [hit.seen for hit in of]
        table.add_row(
            kind, str(len(of)), f"{min(seen)} to {max(seen)} of {of[0].users}", f"{took[len(took) // 2]:.1f}",
            f"{took[-1]:.1f}", str(sum(hit.users for hit in of)), str(sum(len(hit.other) for hit in of)),
        )  # fmt: skip
    Console(width=110).print(table)


def main() -> int:
    """Run one campaign and print its table."""
    parser = argparse.ArgumentParser(prog="python -m tests.night_kills", description=__doc__)
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--users", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    began = time.monotonic()

    async def run(folder: Path) -> list[Hit]:
        nights = await Nights.begun(nodes, folder, options.users, random.Random(options.seed))
        return await campaign(nights, options.points)

    with (
        tempfile.TemporaryDirectory(prefix="hermes-nights-") as name,
        three_nodes(Path(name) / "data") as nodes,
    ):
        nodes.hosts()
        hits = asyncio.run(run(Path(name) / "nights"))
    show(hits, options.seed, time.monotonic() - began)
    if options.report:
        options.report.parent.mkdir(parents=True, exist_ok=True)
        options.report.write_text(
            json.dumps([asdict(hit) for hit in hits], indent=2) + "\n", encoding="utf-8"
        )
    return 1 if any(hit.other for hit in hits) else 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
