"""What the night does for a namespace once all its users are through: quality, alarms, what users have in common."""

from __future__ import annotations

from typing import Any

from hermes_memory.app import cohorts, quality
from hermes_memory.app.night import NightRun
from hermes_memory.core.night_sums import Numbers
from hermes_memory.core.quality import counts_of, figures
from hermes_memory.core.rules import CohortRules, QualityRules
from hermes_memory.ports.ledger import Ledger


class NamespaceClosing:
    """Takes the figures from the sums, opens or closes their alerts (SPEC §10), and makes the cohort anew (S2 §7.2)."""

    def __init__(self, ledger: Ledger, rules: QualityRules, cohort_rules: CohortRules) -> None:
        self._ledger, self._rules, self._cohort_rules = ledger, rules, cohort_rules

    async def __call__(self, namespace: str, sums: Numbers, run: NightRun) -> dict[str, Any]:
        """See ``Closing``."""
        measured = figures(counts_of(sums), self._rules)
        raised = await quality.tell(self._ledger, namespace, measured, run.now)
        await quality.keep(
            self._ledger, namespace, measured, users=sums["users"], since=run.since, at=run.now
        )
        cohort = await cohorts.keep(self._ledger, namespace, sums.get("cohort", {}), self._cohort_rules)
        return {
            "users": sums["users"],
            "memories": sums["memories"],
            "figures": [quality.figure_record(figure) for figure in measured],
            "alerts": [alert.kind.removeprefix("quality_") for alert in raised],
            "cohort": {"members": cohort["members"], "slots": sum(map(len, cohort["slots"].values()))},
        }
