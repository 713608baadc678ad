"""What the long-term index took a moment ago, and may not have kept if its process died just then."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from hermes_memory.core.ids import UserKey


class RecentWrites:
    """Memories by user with the time at which the index took what they say."""

    def __init__(self) -> None:
        self._at: dict[UserKey, dict[str, datetime]] = {}

    def __bool__(self) -> bool:
        return bool(self._at)

    def note(self, key: UserKey, memory_ids: Iterable[str], at: datetime) -> None:
        """They were taken at that time."""
        if ids := dict.fromkeys(memory_ids, at):
            self._at.setdefault(key, {}).update(ids)

    def forget(self, before: datetime) -> None:
        """What was taken before is kept by now."""
        left = {key: {i: at for i, at in ids.items() if at >= before} for key, ids in self._at.items()}
        self._at = {key: ids for key, ids in left.items() if ids}

    def by_user(self) -> list[tuple[UserKey, list[str]]]:
        """The memories of each user, in the order in which they were taken."""
        return [(key, list(ids)) for key, ids in self._at.items()]
