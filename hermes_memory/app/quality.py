"""Alarms about a namespace's figures of quality, and the last figures, kept for who asks (SPEC §10)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from hermes_memory.core.ids import digest
from hermes_memory.core.quality import Figure
from hermes_memory.ports.ledger import Alert, Ledger

NOTE = "quality"  # the last figures of a namespace


def quality_alert_id(namespace: str, figure: str) -> str:
    """One alert for each figure of a namespace: the next night puts it in the place of the last one."""
    return "alert_" + digest(namespace, "quality", figure)


def quality_alerts(namespace: str, figures: Iterable[Figure], at: datetime) -> list[Alert]:
    """An alert for each figure that breaks its limit; ``measured`` are the figure and the limit."""
    return [
        Alert(
            id=quality_alert_id(namespace, figure.name), kind=f"quality_{figure.name}", at=at,
            measured=(figure.value, figure.limit),
        )
        for figure in figures
        if figure.value is not None and figure.limit is not None and figure.alarming
    ]  # fmt: skip


async def tell(ledger: Ledger, namespace: str, figures: Iterable[Figure], at: datetime) -> list[Alert]:
    """Raise the alarms, and close those of figures that keep their limits again; returns what was raised.

    A figure of too few cases neither opens nor closes anything: nobody knows.
    """
    figures = list(figures)
    raised = quality_alerts(namespace, figures, at)
    for alert in raised:
        await ledger.raise_alert(namespace, alert)
    for figure in figures:
        if figure.value is not None and not figure.alarming:
            await ledger.close_alert(namespace, quality_alert_id(namespace, figure.name))
    return raised


async def keep(
    ledger: Ledger, namespace: str, figures: Iterable[Figure], *, users: int, since: str, at: datetime
) -> None:
    """Keep the figures of ``users`` users, of the days from ``since`` on, as the last ones."""
    records = [figure_record(figure) for figure in figures]
    value = {"measured_at": at.isoformat(), "since": since, "users": users, "figures": records}
    await ledger.put_note(namespace, NOTE, value)


async def last(ledger: Ledger, namespace: str) -> dict[str, Any]:
    """The last figures; none where no night has measured any."""
    note = await ledger.note(namespace, NOTE)
    nothing: dict[str, Any] = {"measured_at": None, "since": None, "users": 0, "figures": []}
    return dict(note.value) if note is not None else nothing


def figure_record(figure: Figure) -> dict[str, Any]:
    """The JSON form of a figure."""
    return {
        "name": figure.name, "value": figure.value, "part": figure.part, "cases": figure.cases,
        "low": figure.low, "high": figure.high, "least": figure.least, "most": figure.most,
        "alarming": figure.alarming,
    }  # fmt: skip
