"""The account at the end: what the product holds against what the journal says it acknowledged."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import httpx

from hermes_memory.core.ids import UserKey
from hermes_memory.ports.index import VectorIndex
from hermes_memory.ports.ledger import Ledger
from tests.chaos.journal import Journal

QUIET_S = 120.0  # how long what waits may take to be settled and delivered
PAGE = 500
NAMESPACE = "default"


@dataclass(slots=True)
class Account:
    """How often each promise was broken; every number must be 0."""

    broken: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    messages: int = 0
    memories: int = 0
    documents: int = 0

    PROMISES = (
        "acknowledged writes lost",
        "applied twice",
        "cross-user",
        "frozen changed",
        "version regressions",
        "erased or deleted came back",
        "index differs from the ledger",
        "odd answers",
    )

    def blame(self, promise: str, example: str) -> None:
        """One more break of a promise."""
        self.broken[promise] += 1
        self.examples.append(f"{promise}: {example}")

    @property
    def clean(self) -> bool:
        """Whether every promise was kept."""
        return not self.broken


def account_of(http: httpx.Client, users: Iterable[str], journal: Journal) -> Account:
    """Everything that can be seen over HTTP, once nothing waits any more."""
    account = Account()
    for violation in journal.violations:
        account.blame(_promise_of(violation), violation)
    for user in users:
        exported = exported_when_quiet(http, user)
        check_user(user, exported, journal, account)
    return account


def _promise_of(violation: str) -> str:
    kinds = {
        "version regression": "version regressions",
        "cross-user": "cross-user",
        "a frozen restriction": "frozen changed",
        "an allergy": "acknowledged writes lost",
    }
    return next((promise for start, promise in kinds.items() if violation.startswith(start)), "odd answers")


def check_user(user: str, exported: dict[str, Any], journal: Journal, account: Account) -> None:
    """One user's export against the journal."""
    memories, wanted = exported["memories"], journal.wanted(user)
    turns = Counter(turn["message_id"] for turn in exported["turns"])
    cited = {piece["message_id"] for memory in memories for piece in memory["evidence"]}
    account.messages += len(wanted)
    account.memories += len(memories)
    for message_id in wanted:
        if message_id not in cited:
            account.blame("acknowledged writes lost", f"{message_id} is not cited")
        if message_id not in turns:
            account.blame("acknowledged writes lost", f"{message_id} is no turn")
    for message_id, times in turns.items():
        if times > 1:
            account.blame("applied twice", f"{message_id} is {times} turns")
    stated = Counter((p["message_id"], m["content"]) for m in memories for p in m["evidence"])
    for (message_id, _), times in stated.items():
        if times > 1:
            account.blame("applied twice", f"{message_id} stands in {times} equal memories")
    _check_gone(user, exported, journal, account)
    _check_frozen(user, memories, journal, account)
    before = journal.versions.get(user, 0)
    if exported["version"] < before:
        account.blame("version regressions", f"{user} is at {exported['version']}, was at {before}")


def _check_gone(user: str, exported: dict[str, Any], journal: Journal, account: Account) -> None:
    said = [exported["memories"], exported["turns"]]
    text = str(said).translate(str.maketrans(".,'\"[]{}", " " * 8))
    for word in journal.unwanted(user) & set(text.split()):
        account.blame("erased or deleted came back", word)
    for memory in exported["memories"]:
        if (user, memory["id"]) in journal.deleted:
            account.blame("erased or deleted came back", memory["id"])
    mine = f"{user}x"
    for word in text.split():
        if word.startswith("chaos-") and word != user and not word.startswith(mine):
            account.blame("cross-user", f"{user} holds {word}")


def _check_frozen(user: str, memories: list[dict[str, Any]], journal: Journal, account: Account) -> None:
    if user not in journal.frozen:
        return
    memory_id, content = journal.frozen[user]
    found = [(m["content"], m["lock"]) for m in memories if m["id"] == memory_id]
    if found != [(content, "frozen")]:
        account.blame("frozen changed", f"{memory_id} of {user}: {found}")


def exported_when_quiet(http: httpx.Client, user: str) -> dict[str, Any]:
    """A user's export once no turn waits for extraction."""
    deadline = time.monotonic() + QUIET_S
    while True:
        answer = http.get(f"/v1/users/{user}/export")
        if answer.is_success:
            exported: dict[str, Any] = answer.json()
            if not any(turn["pending"] for turn in exported["turns"]) or time.monotonic() > deadline:
                return exported
        elif time.monotonic() > deadline:
            raise AssertionError(f"{user} cannot be exported: {answer.status_code}")
        time.sleep(0.5)


async def wait_until_delivered(ledger: Ledger, pause: Callable[[float], Any]) -> float:
    """Wait until the outbox is empty; the seconds that it took."""
    started = time.monotonic()
    while await ledger.outbox_users("", 1):
        if time.monotonic() - started > QUIET_S:
            raise AssertionError("the outbox does not run dry")
        await pause(0.2)
    return time.monotonic() - started


async def compare_index(
    ledger: Ledger, index: VectorIndex, users: Iterable[str], wanted: Callable[[Any], bool], account: Account
) -> None:
    """Each user's documents in the index are those memories of the ledger that can be found; nothing is buried."""
    for user in users:
        key = UserKey(NAMESPACE, user)
        stored = await ledger.documents(key, await ledger.memory_ids(key))
        should = sorted(memory.id for memory, _ in stored if wanted(memory))
        holds = await index.ids(key)
        account.documents += len(holds)
        if holds != should:
            missing, extra = set(should) - set(holds), set(holds) - set(should)
            account.blame(
                "index differs from the ledger", f"{user}: {len(missing)} missing, {len(extra)} too many"
            )
    if await ledger.outbox_users("", 1, buried=True):
        account.blame("index differs from the ledger", "documents were buried")
