"""What the load did and was told: the account that the product is held to when the faults are over."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Said:
    """One message that was acknowledged; ``word`` is in no other message."""

    user: str
    message_id: str
    word: str
    round: int  # how often the user had been erased before


@dataclass(slots=True)
class Journal:
    """Grows while the load runs; ``violations`` must stay empty."""

    said: dict[tuple[str, str], Said] = field(default_factory=dict)
    deleted: set[tuple[str, str]] = field(default_factory=set)  # (user, memory id), acknowledged
    released: set[tuple[str, str]] = field(
        default_factory=set
    )  # (user, message id) that a deleted memory cited
    erasing: set[str] = field(default_factory=set)  # users who are being erased at this moment
    unsure: set[str] = field(default_factory=set)  # users whose erasure no answer came to
    rounds: Counter[str] = field(default_factory=Counter)  # erasures that were acknowledged
    frozen: dict[str, tuple[str, str]] = field(default_factory=dict)  # user: (memory id, content)
    versions: dict[str, int] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    unanswered: int = 0  # operations that no answer came to within the deadline, retries included
    slowest_s: float = 0.0

    def acknowledge(self, user: str, message_id: str, word: str) -> None:
        """A message was acknowledged."""
        self.said[user, message_id] = Said(user, message_id, word, self.rounds[user])

    def see_version(self, user: str, version: int) -> None:
        """The version in an answer may not be older than the one before; an erasure counts on."""
        before = self.versions.get(user, 0)
        if version < before:
            self.violations.append(f"version regression: {user} from {before} to {version}")
        self.versions[user] = max(before, version)

    def see_texts(self, user: str, texts: list[str]) -> None:
        """What one user is shown holds nobody else's words."""
        mine = f"{user}x"
        for text in texts:
            for word in text.replace(".", " ").split():
                if word.startswith("chaos-") and not word.startswith(mine):
                    self.violations.append(f"cross-user: {user} was shown {word}")

    def took(self, since: float) -> None:
        """Note how long an operation took, all tries together."""
        self.slowest_s = max(self.slowest_s, time.monotonic() - since)

    def wanted(self, user: str) -> dict[str, Said]:
        """The messages that must be there now, by id: acknowledged since the last erasure, and not deleted."""
        return {
            said.message_id: said
            for said in self.said.values()
            if said.user == user
            and user not in self.unsure
            and said.round == self.rounds[user]
            and (user, said.message_id) not in self.released
        }

    def unwanted(self, user: str) -> set[str]:
        """The words that an erasure has taken away for ever."""
        if user in self.unsure:
            return set()
        return {
            said.word for said in self.said.values() if said.user == user and said.round < self.rounds[user]
        }
