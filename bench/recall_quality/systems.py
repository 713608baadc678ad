"""Everything that is compared, on the same turns and with the same embedder."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from bench.recall_quality import floors, peer
from bench.recall_quality.data import Person
from bench.recall_quality.product import GATED, LIFTED, Intake, Trial, merged
from bench.recall_quality.scores import Answer
from bench.recall_quality.vectors import RememberingEmbedder
from bench.stack import Say
from hermes_memory.config import load_settings
from hermes_memory.ports.embedder import Embedder
from hermes_memory.wiring import build_embedder, build_policy

PRODUCT, DEFAULTS = "hermes, caps lifted", "hermes, gates as they come"
ROOMY = {"actors": {"idle_s": 86_400.0, "memory_budget_mb": 4096}}  # nobody falls asleep meanwhile


class Systems:
    """The product under two configurations, the floors, and a peer where one is installed.

    Args:
        say: Is told what happens.
        overrides: Configuration keys by section, over both configurations of the product.
    """

    def __init__(self, say: Say, overrides: Mapping[str, Any]) -> None:
        settings = load_settings(None, overrides)
        self._say = say
        self._overrides = merged(ROOMY, overrides)
        self._embedder: Embedder = RememberingEmbedder(build_embedder(settings))
        self._words = build_policy(settings).words

    def trial(self, people: Sequence[Person], overrides: Mapping[str, Any] | None = None) -> Trial:
        """The product with its caps lifted, and with further overrides."""
        return Trial(people, LIFTED, self._embedder, merged(self._overrides, overrides or {}))

    def answers(self, name: str, people: Sequence[Person], *, peers: bool = False) -> dict[str, list[Answer]]:
        """System → its answers to every question about ``people``; with ``peers`` also what others sell."""
        found: dict[str, list[Answer]] = {}
        for system, config in ((PRODUCT, LIFTED), (DEFAULTS, GATED)):
            trial = Trial(people, config, self._embedder, self._overrides)
            try:
                self._say(f"{name}: {system}: {_words_of(trial.intake)}")
                found[system] = trial.ask()
            finally:
                trial.close()
        self._say(f"{name}: floors")
        found |= asyncio.run(floors.answers(people, self._embedder, self._words))
        if peers and peer.installed():
            self._say(f"{name}: {peer.NAME}")
            found[peer.NAME] = asyncio.run(peer.answers(people, self._embedder))
        elif peers:
            self._say(f"{peer.NAME}: not installed (pip install mem0ai), not compared")
        return found


def _words_of(intake: Intake) -> str:
    return (
        f"{intake.turns} turns in {intake.seconds:.0f} s, {intake.memories} live memories, "
        f"{intake.kept:.1%} of the gold turns kept"
    )
