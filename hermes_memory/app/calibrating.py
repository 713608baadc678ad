"""Calibrates an embedder: its vectors of labelled pairs, and the fit to them (SPEC §7.3)."""

from __future__ import annotations

from hermes_memory.core.calibration import EmbedderProfile
from hermes_memory.core.fitting import Embedded, Figures, FitRules, fit
from hermes_memory.core.labelled import LabelledPairs
from hermes_memory.ports.embedder import Embedder


async def calibrate(
    embedder: Embedder, pairs: LabelledPairs, rules: FitRules
) -> tuple[EmbedderProfile, tuple[Figures, ...]]:
    """The profile of ``embedder`` and how well it separates the pairs.

    Raises:
        InvalidInput: too few pairs, or vectors that cannot be used.
    """
    pairs.check(rules.least_pairs, rules.least_groups)  # before a model is loaded
    queries, passages = await embedder.queries(pairs.queries), await embedder.passages(pairs.passages)
    asked = await embedder.queries([text for text, _ in pairs.asked]) if pairs.asked else None
    fitted = fit(Embedded(pairs, queries, passages, rules, asked))
    info = embedder.info
    return EmbedderProfile(info.name, info.dimension, fitted.calibration), fitted.figures
