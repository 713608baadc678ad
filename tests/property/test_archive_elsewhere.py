"""Random lives of a user whose archive is searched by an index: all that lives has its vector in the actor."""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests.property.test_invariants import Life

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


class LifeBesideAnIndex(Life):
    """The same life, and the same invariants, without the vectors of the archive."""

    archive_vectors = False


LifeBesideAnIndex.TestCase.settings = settings(stateful_step_count=35)
TestLifeBesideAnIndex = LifeBesideAnIndex.TestCase
