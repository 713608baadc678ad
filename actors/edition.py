"""What a host was made with: hosts outlive the app, so a new deployment finds those of an earlier one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from hermes_memory import __version__


@dataclass(frozen=True, slots=True)
class Edition:
    """What a deployment makes its hosts with.

    Args:
        digest: Of the configuration, the data directory and the version of this software.
        at_ns: When it was deployed, in nanoseconds since 1970.
    """

    digest: str = ""
    at_ns: int = 0

    def replaces(self, other: Edition) -> bool:
        """Whether hosts of ``other`` have to go: replicas of both are there for a while, and the later one counts."""
        return self.digest != other.digest and self.at_ns > other.at_ns


def edition_of(document: Mapping[str, Any], data: str, at_ns: int) -> Edition:
    """The edition of a configuration as plain data, deployed at ``at_ns``."""
    said = json.dumps([__version__, data, document], sort_keys=True)
    return Edition(blake2b(said.encode(), digest_size=8).hexdigest(), at_ns)


UNKNOWN = Edition()  # of what nobody has deployed; replaces nothing
