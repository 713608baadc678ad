"""Which users a host carries while hosts come and go: decided by the size of the pool in the ledger (ADR 5)."""

from __future__ import annotations

from collections.abc import Callable

from hermes_memory.core.ids import UserKey
from hermes_memory.errors import HermesError
from hermes_memory.ports.ledger import HostPool

Owns = Callable[[UserKey], bool]
Share = Callable[[HostPool], Owns]  # what one host carries of the users, for each size of the pool


class Moved(HermesError):
    """The user is carried by another host of a pool of this size: ask that one. Never leaves the runtime."""

    code = "moved"
    retryable = True

    def __init__(self, hosts: int, revision: int) -> None:
        super().__init__(hosts, revision)
        self.hosts, self.revision = hosts, revision

    def __str__(self) -> str:
        return f"the user is another one's of the {self.hosts} hosts (revision {self.revision})"

    @property
    def pool(self) -> HostPool:
        """The pool as the host knows it."""
        return HostPool(self.hosts, self.revision)
