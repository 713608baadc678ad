"""The values that cohorts count (``configs/words/cohorts.toml``)."""

from __future__ import annotations

import tomllib
from importlib.resources.abc import Traversable

from hermes_memory.core.cohorts import Catalogue


def load_catalogue(path: Traversable) -> Catalogue:
    """Dimension → wording of users → the value that is told."""
    return {
        dimension: {wording: value for value, wordings in values.items() for wording in wordings}
        for dimension, values in tomllib.loads(path.read_text(encoding="utf-8")).items()
    }
