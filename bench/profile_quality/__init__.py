"""How much of a profile is what people wrote down about the user, and how much of that arrives there (SPEC §8).

Persona chats and daily-life messages are played through the library with the rule extractor, one night is run for each
user, and the profile is compared with the labels: ``gold`` says to which layer a fact belongs, ``judge`` what counts.
Rules are made on the first half of each data set; of the second half nobody reads more than these figures.
``python -m bench.profile_quality --misses`` prints every miss of the first half, ``--sample N`` judged statements of it.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from bench.profile_quality.gold import PERSONA, Talker, talkers
from bench.profile_quality.judge import Judged, Reached, reaching, statements
from bench.profile_quality.play import play
from bench.report import Limit, Report, table
from bench.stack import Say

__all__ = ["LIMITS", "PERSONA", "run"]
LIMITS = (
    Limit("unsupported", 0.1001, "statements behind slots that no gold fact supports, second half (at most 10 %)"),
    Limit("not_reaching", 0.1001, "extracted identity, restriction and preference facts not in the profile, second half"),
    Limit("without_quote", 1, "statements behind slots without the user's own words, all users"),
)  # fmt: skip
QUICK = 10  # every so many users
Z = 1.96  # 95 %
_HALVES = ("first half", "second half")


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many."""

    hits: int
    of: int

    @property
    def share(self) -> float:
        """In [0, 1]; NaN of nothing."""
        return self.hits / self.of if self.of else math.nan

    def interval(self) -> tuple[float, float]:
        """Wilson's interval at 95 %."""
        if not self.of:
            return math.nan, math.nan
        middle = (self.share + Z**2 / (2 * self.of)) / (1 + Z**2 / self.of)
        spread = Z * math.sqrt(self.share * (1 - self.share) / self.of + Z**2 / (4 * self.of**2))
        wide = spread / (1 + Z**2 / self.of)
        return middle - wide, middle + wide

    def __str__(self) -> str:
        low, high = self.interval()
        return f"{self.share:.3f} [{low:.3f}, {high:.3f}] of {self.of}"


def run(*, quick: bool, say: Say) -> Report:
    """Play both halves and compare."""
    report = Report("profile-quality")
    chosen = talkers(QUICK if quick else 1)
    say(f"{len(chosen)} users through the library and one night")
    told, arrived = judged(chosen)
    rows = []
    for half in (0, 1):
        for what, share in _shares(told[half], arrived[half]).items():
            rows.append((_HALVES[half], what, str(share)))
            report.data[f"{_HALVES[half]}: {what}"] = asdict(share)
    last = _shares(told[1], arrived[1])
    every = [*told[0], *told[1]]
    report.figures = {
        "unsupported": 1 - last["supported by a gold fact"].share,
        "not_reaching": 1 - last["facts that reach the profile"].share,
        "without_quote": sum(not one.quoted for one in every),
    }
    report.tables = [table("Profiles against what people wrote down", ("half", "what", "share [95 %]"), rows)]
    report.data["misses"] = [asdict(one) for one in _misses(told[0], arrived[0])]  # first half only
    return report


def judged(
    chosen: Sequence[Talker],
) -> tuple[tuple[list[Judged], list[Judged]], tuple[list[Reached], list[Reached]]]:
    """Statements and facts of both halves."""
    told: tuple[list[Judged], list[Judged]] = ([], [])
    arrived: tuple[list[Reached], list[Reached]] = ([], [])
    for one in play(chosen):
        told[one.talker.half].extend(statements(one))
        arrived[one.talker.half].extend(reaching(one))
    return told, arrived


def _shares(told: Sequence[Judged], arrived: Sequence[Reached]) -> dict[str, Share]:
    known = [one for one in told if one.supported is not None]
    persona = [one for one in known if one.who.startswith("p")]
    right = [one for one in known if one.same_layer is not None]
    shares = {
        "supported by a gold fact": _share([bool(one.ever) for one in known]),
        "… of the very line it quotes": _share([bool(one.supported) for one in known]),
        "… persona chats alone": _share([bool(one.ever) for one in persona]),
        "… and its layer is the mapped one": _share([bool(one.same_layer) for one in right]),
        "facts that reach the profile": _share([one.reached for one in arrived]),
        "statements that quote": _share([one.quoted for one in told]),
        "statements nobody labelled": Share(len(told) - len(known), len(told)),
    }
    for layer in ("identity", "restriction", "preference"):
        shares[f"… {layer} facts"] = _share([one.reached for one in arrived if one.layer == layer])
        shares[f"… {layer} slots supported"] = _share([bool(one.ever) for one in known if one.layer == layer])
    return shares


def _share(verdicts: Sequence[bool]) -> Share:
    return Share(sum(verdicts), len(verdicts))


def _misses(told: Sequence[Judged], arrived: Sequence[Reached]) -> list[Judged | Reached]:
    wrong = [one for one in told if one.ever is False or not one.quoted]
    return [*wrong, *(one for one in arrived if not one.reached)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what was judged wrong, or a sample of what was judged, of the first half."""
    parser = argparse.ArgumentParser(prog="python -m bench.profile_quality")
    parser.add_argument("--misses", action="store_true", help="every miss of the first half")
    parser.add_argument("--sample", type=int, default=0, help="so many judged statements, to check the judge")
    parser.add_argument("--quick", action="store_true", help="every tenth user")
    chosen = parser.parse_args(arguments)
    first = [one for one in talkers(QUICK if chosen.quick else 1) if one.half == 0]
    told, arrived = judged(first)
    for what, share in _shares(told[0], arrived[0]).items():
        print(f"{what}: {share}")
    known = [one for one in told[0] if one.supported is not None]
    shown: Sequence[Judged | Reached] = _misses(told[0], arrived[0]) if chosen.misses else []
    for one in [*shown, *random.Random(0).sample(known, min(chosen.sample, len(known)))]:
        print(one)
