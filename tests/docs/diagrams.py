"""The diagrams of the two state machines, drawn from ``hermes_memory.core.transitions``.

python -m tests.docs.diagrams      writes them into the page that shows them
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from hermes_memory.core.transitions import LOCKS, STATUSES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "gates.md"
_START = {"locks": "pending", "statuses": "active"}


def drawn(name: str) -> str:
    """A Mermaid state diagram and the table it stands for."""
    table: Mapping[Any, StrEnum] = LOCKS if name == "locks" else STATUSES
    arrows = [f"    {before} --> {after}: {event}" for (before, event), after in table.items()]
    rows = [f"| `{before}` | `{event}` | `{after}` |" for (before, event), after in table.items()]
    return "\n".join(
        [
            "```mermaid", "stateDiagram-v2", f"    [*] --> {_START[name]}", *arrows, "```", "",
            "| from | event | to |", "|---|---|---|", *rows,
        ]
    )  # fmt: skip


def with_diagrams(text: str) -> str:
    """The page with what stands between its marks drawn anew."""
    for name in _START:
        mark = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- end {name} -->)", re.DOTALL)
        text = mark.sub(lambda found, name=name: found[1] + drawn(name) + found[2], text)  # type: ignore[misc]
    return text


def missing(text: str) -> Iterable[str]:
    """The marks that the page lacks."""
    return (name for name in _START if f"<!-- {name} -->" not in text)


if __name__ == "__main__":
    PAGE.write_text(with_diagrams(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
