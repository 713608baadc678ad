"""Where everything is: the keys of a user, of the registries and of the store itself.

All keys of a user carry one hash tag, a salted digest, so that they share a slot of a Redis Cluster and that what an
erasure leaves names nobody. What spans users lives in other slots: the facts of the store, the registries by shard,
and the pointers from sessions and jobs to their users.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hermes_memory.core.ids import UserKey, digest
from hermes_memory.errors import InvalidConfig

FORMAT = 1  # of the whole layout; grows with a change that older releases cannot read
SHARDS = 16  # of the registries; written into the keys, so part of the format
USER_PARTS = (
    "head",       # hash: version, generation, owner, live, settings and counters; the tombstone of an erased user
    "memories",   # hash: id → JSON body
    "access",     # hash: id → number in order of arrival, recalls, time of the last one (µs)
    "vectors",    # hash: id → fp16 bytes, of the model whose number the key names
    "coming",     # the same of the next model, while the data changes hands
    "sessions",   # hash: id → JSON body without its summary
    "summaries",  # hash: session id → JSON summary, where there is one
    "turns",      # hash: "index:session" → JSON body without "pending"
    "pending",    # zset: "index:session" by receipt time, of turns that wait
    "done",       # zset: the same of turns that do not
    "messages",   # hash: "session message" → content hash and job
    "jobs",       # hash: id → JSON body
    "open_jobs",  # zset: ids of jobs that are not done, in order of arrival
    "tally",      # hash: "day name" → number
    "audit",      # stream: seq-0 → JSON body
    "alerts",     # hash: id → JSON body of open ones
    "outbox",     # zset: "seq [op, memory id]" by seq
    "buried",     # zset: the same and a reason
    "ops",        # hash: digest of an operation id → "version kind answer", kind r(esult), e(rasure) or x (erased)
    "op_times",   # zset: the same digests by time
    "outside",    # set: what points to the user from other slots
    "freeing",    # set: the same of an erased user, until it is taken away
)  # fmt: skip
KINDS = {"users": "u", "pending": "p", "outbox": "o", "buried": "b", "alerts": "a"}
SHARD_PARTS = ("marks", "ticks", *KINDS, "due_ops", "due_turns")
META_PARTS = ("facts", "packs", "packs_loaded", "packs_vectors", "packs_coming")
_TAG_BYTES = 20
_OPERATION_BYTES = 16


@dataclass(frozen=True, slots=True)
class Layout:
    """Names of keys under a prefix. ``salt`` is drawn once for a store and kept in it."""

    prefix: str
    salt: str = ""

    def __post_init__(self) -> None:
        if not self.prefix or any(char in self.prefix for char in "{}"):
            raise InvalidConfig("ledger.prefix", "must be a text without braces")

    def tag(self, key: UserKey) -> str:
        """The salted digest that stands for a user."""
        return digest(self.salt, "user", key.namespace, key.user_id, size=_TAG_BYTES)

    def operation(self, key: UserKey, operation_id: str) -> str:
        """The salted digest that stands for an operation of a user."""
        return digest(self.salt, "operation", self.tag(key), operation_id, size=_OPERATION_BYTES)

    def user(self, tag: str, model: int) -> list[str]:
        """The keys of a user in the order of USER_PARTS; ``model`` is the number of the model that owns the data."""
        numbers = {"vectors": f":{model}", "coming": f":{model + 1}"}
        parts = ("vectors" if part == "coming" else part for part in USER_PARTS)
        return [
            f"{self.prefix}:{{{tag}}}:{name}{numbers.get(part, '')}"
            for part, name in zip(USER_PARTS, parts, strict=True)
        ]

    def of_user(self, tag: str, part: str) -> str:
        """One key of a user; not one that a model's number is part of."""
        return f"{self.prefix}:{{{tag}}}:{part}"

    def vectors(self, tag: str, model: int) -> str:
        """The vectors of a user by the model of that number."""
        return f"{self.prefix}:{{{tag}}}:vectors:{model}"

    def shard_of(self, tag: str) -> int:
        """The registry that lists a user."""
        return int(tag[:8], 16) % SHARDS

    def shard(self, number: int) -> list[str]:
        """The keys of a registry in the order of SHARD_PARTS."""
        return [f"{self.prefix}:{{registry-{number}}}:{part}" for part in SHARD_PARTS]

    def of_shard(self, number: int, part: str) -> str:
        """One key of a registry."""
        return f"{self.prefix}:{{registry-{number}}}:{part}"

    def meta(self, part: str) -> str:
        """One key of the store itself."""
        return f"{self.prefix}:{{meta}}:{part}"

    def packs(self, model: int) -> list[str]:
        """The keys of the packs in the order of META_PARTS."""
        plain = [self.meta(part) for part in META_PARTS[:3]]
        return [*plain, self.meta(f"packs_vectors:{model}"), self.meta(f"packs_vectors:{model + 1}")]

    def space(self, namespace: str, part: str) -> str:
        """One key of a namespace as a whole: its "notes", their "names", its "alerts"."""
        return f"{self.prefix}:{{space-{digest(self.salt, 'space', namespace, size=_TAG_BYTES)}}}:{part}"

    def session(self, namespace: str, session_id: str) -> str:
        """The digest that stands for a session of a namespace."""
        return digest(self.salt, "session", namespace, session_id, size=_TAG_BYTES)

    def job(self, namespace: str, job_id: str) -> str:
        """The digest that stands for a job of a namespace."""
        return digest(self.salt, "job", namespace, job_id, size=_TAG_BYTES)

    def pointer(self, kind: str, of: str) -> str:
        """The key that leads from a session ("s") or job ("j"), by its digest, to its user."""
        return f"{self.prefix}:{{{of}}}:{kind}"


def place(index: int, session_id: str) -> str:
    """The name of a turn inside its user's keys."""
    return f"{index}:{session_id}"


def message(session_id: str, message_id: str) -> str:
    """The name of a message inside its user's keys; no two pairs share one."""
    return f"{len(session_id)}:{session_id}{message_id}"


def kinds(names: Sequence[str]) -> str:
    """The letters by which scripts know the lists of a registry."""
    return "".join(KINDS[name] for name in names)
