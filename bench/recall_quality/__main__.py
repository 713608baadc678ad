"""``python -m bench.recall_quality --vary recall.threshold=0.5 [--vary …] [--on dev|test|zh|memdaily] [--set …]``.

One row for the configuration as it is and one for each variant. Choose on ``dev``; the others are for telling what was
chosen. Where a variant changes only what recall reads, nothing is taken in again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from rich.console import Console

from bench.recall_quality import tables
from bench.recall_quality.data import DEV, LOCOMO, LOCOMO_ZH, MEMDAILY, Person, read_locomo, read_memdaily
from bench.recall_quality.keys import only_asked, overrides_of
from bench.recall_quality.scores import Answer
from bench.recall_quality.systems import Systems


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask every variant and print the rows."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.recall_quality", description="Variants side by side."
    )
    parser.add_argument(
        "--on", choices=("dev", "test", "zh", "memdaily"), default="dev", help="which questions"
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for all rows")
    parser.add_argument(
        "--vary", action="append", default=[], metavar="KEY=VALUE …", help="one row; may name several"
    )
    chosen = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 160)
    people = _people(chosen.on)
    systems = Systems(lambda text: console.print(f"[dim]{text}[/dim]"), overrides_of(chosen.set))
    rows: dict[str, list[Answer]] = {}
    trial = systems.trial(people)
    try:
        rows["as it is"] = trial.ask()
        for variant in chosen.vary:
            pairs = variant.split()
            if only_asked(pairs):
                rows[variant] = trial.ask(overrides_of(pairs))
                continue
            other = systems.trial(people, overrides_of(pairs))
            rows[variant] = other.ask()
            other.close()
    finally:
        trial.close()
    drawn = tables.hits if chosen.on == "memdaily" else tables.quality
    console.print(drawn(f"{chosen.on}, hermes with its caps lifted", rows))
    return 0


def _people(which: str) -> Sequence[Person]:
    if which == "memdaily":
        return read_memdaily(MEMDAILY).people
    if which == "zh":
        return read_locomo(LOCOMO_ZH).people
    return [person for person in read_locomo(LOCOMO).people if (person.name in DEV) is (which == "dev")]


if __name__ == "__main__":
    raise SystemExit(main())
