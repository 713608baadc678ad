"""How the deployment of a language model stands. No Ray here: the launcher looks before Ray's parts may be loaded."""

from __future__ import annotations

from enum import StrEnum


class Standing(StrEnum):
    """In words for people; readiness shows them (API, Operators)."""

    READY = "ready"
    STARTING = "starting"  # a node that may carry it is there
    WAITING = "waiting for a GPU"  # no node of the cluster offers what it asks for
    FAILED = "failed"  # it was tried, and does not start
    ABSENT = "not deployed"
