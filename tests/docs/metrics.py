"""The tables of metrics, from ``hermes_memory.adapters.metric_catalogue``.

python -m tests.docs.metrics      writes them into the page that shows them
"""

from __future__ import annotations

import re
from pathlib import Path

from hermes_memory.adapters.metric_catalogue import CATALOGUE, Open, Spec, Values

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "metrics.md"
MOST_SHOWN = 10  # of a closed set; larger ones are told by where they come from

GROUPS = {  # prefixes, in the order of the catalogue
    "http": ("hermes_http_", "hermes_messages_"),
    "recall": ("hermes_recall", "hermes_rerank_"),
    "gates": ("hermes_changes_", "hermes_gate_", "hermes_tally_", "hermes_lock_", "hermes_status_"),
    "commands": ("hermes_command",),
    "extraction": ("hermes_extraction_", "hermes_distiller_"),
    "outbox": ("hermes_outbox_",),
    "actors": ("hermes_users_", "hermes_activation", "hermes_passivations_", "hermes_lease_", "hermes_host_"),
    "stores": ("hermes_ledger_", "hermes_index_"),
    "processes": ("hermes_up", "hermes_undeclared_", "process_"),
}


def table(group: str) -> str:
    """The metrics whose names begin with one of a group's prefixes."""
    rows = [_row(spec) for spec in CATALOGUE.values() if spec.name.startswith(GROUPS[group])]
    return "\n".join(["| metric | kind | what it is | labels |", "|---|---|---|---|", *rows])


def _row(spec: Spec) -> str:
    labels = "; ".join(f"`{label}`: {_shown(label, values)}" for label, values in spec.labels.items())
    return f"| `{spec.name}` | {spec.kind} | {spec.help} | {labels or '—'} |"


def _shown(label: str, values: Values) -> str:
    if isinstance(values, Open):
        return f"at most {values.at_most}"
    if len(values) <= MOST_SHOWN:
        return " ".join(f"`{value}`" for value in sorted(values))
    sources = {
        "reason": "a [reason code](reasons.md)",
        "op": "an `op` of the audit",
        "code": "a code of [errors](errors.md), `timeout`, `internal`, `cancelled` or `moved`",
        "outcome": "`ok`, or as `code`",
        "command": "a command, in snake case",
        "method": "a method of the port",
        "event": "an event of [the tables](gates.md)",
        "of": "a name of [quality](quality.md), but for refusals",
    }
    return sources[label]


def with_tables(text: str) -> str:
    """The page with what stands between its marks written anew."""
    for group in GROUPS:
        mark = re.compile(rf"(<!-- {group} -->\n).*?(<!-- end {group} -->)", re.DOTALL)
        text = mark.sub(lambda found, group=group: found[1] + table(group) + "\n" + found[2], text)  # type: ignore[misc]
    return text


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
