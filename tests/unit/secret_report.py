"""How good the privacy gate is, by kind, and what it costs: ``python -m tests.unit.secret_report [SEED]``."""

from __future__ import annotations

import re
import statistics
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

from hermes_memory.adapters.detectors import SecretDetector
from hermes_memory.core.privacy import mask
from tests.unit.secret_lookalikes import lookalikes
from tests.unit.secret_samples import Sample, bare, samples

TOKEN = re.compile(r"\[(?:id|card|iban|secret|password|code|address)\]")
PIECE = 8  # so many letters or digits of a secret in a row are a leak too


@dataclass
class Report:
    """Counts by kind, and what was wrong."""

    seen: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    costs_s: list[float] = field(default_factory=list)

    def note(self, name: str, good: bool, text: str, masked: str) -> None:
        self.seen[name] += 1
        if not good:
            self.wrong[name] += 1
            self.examples.append(f"{name}: {text!r} -> {masked!r}")

    @property
    def share_right(self) -> float:
        return 1 - self.wrong.total() / self.seen.total()


def leaks(secret: str, text: str) -> bool:
    """Whether ``text`` holds the secret, or eight letters and digits of it in a row, however it is written."""
    wanted, there = bare(secret), bare(TOKEN.sub(" ", text))
    pieces = [wanted[at : at + PIECE] for at in range(len(wanted) - PIECE + 1)]
    return wanted in there or any(piece in there for piece in pieces)


def is_masked(sample: Sample, masked: str) -> bool:
    """Nothing of the secret is left, and nothing else is gone."""
    secrets = sample.secret.split() if sample.name == "address" else [sample.secret]
    rest = bare(sample.text)
    for secret in secrets:
        rest = rest.replace(bare(secret), "", 1)
    return bare(TOKEN.sub(" ", masked)) == rest and not leaks(sample.secret, masked)


def recall(detector: SecretDetector, seed: int) -> Report:
    """Over the sentences that hold a secret."""
    report = Report()
    for sample in samples(seed):
        masked = _timed(detector, sample.text, report)
        report.note(f"{sample.name.partition(' ')[0]} {sample.language}" if sample.name.startswith("key") else f"{sample.name} {sample.language}", is_masked(sample, masked), sample.text, masked)  # fmt: skip
    return report


def precision(detector: SecretDetector, seed: int) -> Report:
    """Over the sentences that only look so."""
    report = Report()
    for name, text in lookalikes(seed):
        masked = _timed(detector, text, report)
        report.note(name, masked == text, text, masked)
    return report


def _timed(detector: SecretDetector, text: str, report: Report) -> str:
    started = time.perf_counter()
    masked = mask(text, detector.find(text))
    report.costs_s.append(time.perf_counter() - started)
    return masked


def main(seed: int) -> None:
    detector = SecretDetector()
    detector.find("warm 温")
    for title, report in (
        ("secrets masked", recall(detector, seed)),
        ("lookalikes left alone", precision(detector, seed)),
    ):
        print(f"{title}, seed {seed}")
        for name, count in sorted(report.seen.items()):
            print(f"  {name:18} {count - report.wrong[name]:5} of {count}")
        costs_ms = [1000 * cost for cost in report.costs_s]
        print(
            f"  all {report.share_right:.4f}; {statistics.median(costs_ms):.3f} ms in the median, {max(costs_ms):.3f} at worst"
        )
        print(*(f"  ! {example}" for example in report.examples), sep="\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
