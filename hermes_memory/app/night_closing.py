"""What the night does for a namespace once all its users are through: figures of quality and alarms (SPEC §10)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes_memory.app.night import NightRun
from hermes_memory.core.ids import digest
from hermes_memory.core.night_sums import Numbers
from hermes_memory.core.quality import Figure, figures
from hermes_memory.core.rules import QualityRules
from hermes_memory.ports.ledger import Alert, Ledger


class QualityClosing:
    """Takes the figures from the sums, and opens or closes their alerts. A figure of too few cases does neither."""

    def __init__(self, ledger: Ledger, rules: QualityRules) -> None:
        self._ledger, self._rules = ledger, rules

    async def __call__(self, namespace: str, sums: Numbers, run: NightRun) -> dict[str, Any]:
        """See ``Closing``."""
        measured = figures(_counts(sums), self._rules)
        for figure in measured:
            if figure.value is not None:
                await self._tell(namespace, figure, run)
        return {
            "users": sums["users"],
            "memories": sums["memories"],
            "figures": [_record(figure) for figure in measured],
            "alerts": [figure.name for figure in measured if figure.alarming],
        }

    async def _tell(self, namespace: str, figure: Figure, run: NightRun) -> None:
        alert_id = "alert_" + digest(namespace, "quality", figure.name)
        if not figure.alarming:
            await self._ledger.close_alert(namespace, alert_id)
            return
        alert = Alert(
            id=alert_id, kind=f"quality_{figure.name}", at=run.now, measured=(figure.value or 0.0, _limit(figure))
        )  # fmt: skip
        await self._ledger.raise_alert(namespace, alert)


def _limit(figure: Figure) -> float:
    """The one that an alarming figure broke."""
    low = figure.least is not None and figure.value is not None and figure.value < figure.least
    limit = figure.least if low else figure.most
    return 0.0 if limit is None else limit


def _counts(sums: Numbers) -> Mapping[str, int]:
    slots = sum(sums.get("slots", {}).values())
    return {**sums["tally"], "slots": slots, "slots_adrift": sums.get("slots_adrift", 0)}


def _record(figure: Figure) -> dict[str, Any]:
    return {
        "name": figure.name, "value": figure.value, "part": figure.part, "cases": figure.cases,
        "low": figure.low, "high": figure.high, "least": figure.least, "most": figure.most,
        "alarming": figure.alarming,
    }  # fmt: skip
