"""Every error of the domain. They know no HTTP: ``serve_app.problems`` maps codes to statuses.

Each passes all its constructor arguments to ``super().__init__`` so that it survives pickling between
processes, carries a stable ``code`` and says whether the same call may be tried again.
"""

from __future__ import annotations

from typing import ClassVar


class HermesError(Exception):
    """Base of every error raised on purpose.

    ``code`` is stable and in snake case; ``retryable`` says whether repeating the same call can succeed.
    """

    code: ClassVar[str] = "internal"
    retryable: ClassVar[bool] = False

    @property
    def detail(self) -> str:
        """A sentence for people. Never echoes unchecked input."""
        return str(self)


class InvalidInput(HermesError):
    """A value from outside breaks its contract; nothing was changed."""

    code = "invalid_input"

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(field, problem)
        self.field, self.problem = field, problem

    def __str__(self) -> str:
        return f"{self.field}: {self.problem}"


class InvalidId(InvalidInput):
    """An identifier is empty, too long, or holds characters that identifiers may not hold."""

    code = "invalid_id"


class InvalidConfig(InvalidInput):
    """The configuration does not hold together; the process refuses to start."""

    code = "invalid_config"


class NotFound(HermesError):
    """There is nothing by that identifier for this user."""

    code = "not_found"

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return f"no such {self.what}"


class SessionOwned(HermesError):
    """The session is bound to another user (SPEC §2)."""

    code = "session_owned"

    def __str__(self) -> str:
        return "the session belongs to another user"


class MessageIdReused(HermesError):
    """A message id came a second time with other content."""

    code = "message_id_reused"

    def __init__(self, message_id: str) -> None:
        super().__init__(message_id)
        self.message_id = message_id

    def __str__(self) -> str:
        return "a message id was sent before with other content"


class Illegal(HermesError):
    """An event that the transition table does not know for this state; the state stays as it was."""

    code = "illegal_transition"

    def __init__(self, state: str, event: str) -> None:
        super().__init__(state, event)
        self.state, self.event = state, event

    def __str__(self) -> str:
        return f"{self.event} is not possible while {self.state}"


class MemoryFrozen(HermesError):
    """A frozen memory refuses the change; the verified unfreeze is the way (SPEC §5)."""

    code = "memory_frozen"

    def __init__(self, memory_id: str) -> None:
        super().__init__(memory_id)
        self.memory_id = memory_id

    def __str__(self) -> str:
        return "the memory is frozen; unfreeze it first"


class StaleMemory(HermesError):
    """An edit names a version of the memory that is not the current one."""

    code = "stale_version"

    def __init__(self, expected: int, actual: int) -> None:
        super().__init__(expected, actual)
        self.expected, self.actual = expected, actual

    def __str__(self) -> str:
        return f"the memory is at version {self.actual}, not {self.expected}"


class PreconditionMissing(HermesError):
    """An edit came without the version it is based on."""

    code = "precondition_required"

    def __str__(self) -> str:
        return "an edit needs If-Match with the memory's version"


class VersionConflict(HermesError):
    """Another writer committed first: reload and decide again (ARCHITECTURE §2)."""

    code = "version_conflict"
    retryable = True

    def __init__(self, expected: int, actual: int) -> None:
        super().__init__(expected, actual)
        self.expected, self.actual = expected, actual

    def __str__(self) -> str:
        return f"expected version {self.expected}, the ledger has {self.actual}"


class Fenced(HermesError):
    """Another host owns the user now; this one must let go (ARCHITECTURE §2)."""

    code = "fenced"
    retryable = True

    def __init__(self, epoch: int, owner_epoch: int) -> None:
        super().__init__(epoch, owner_epoch)
        self.epoch, self.owner_epoch = epoch, owner_epoch

    def __str__(self) -> str:
        return f"epoch {self.epoch} no longer owns the user; epoch {self.owner_epoch} does"


class LeaseLost(HermesError):
    """A host that could not renew its lease refuses reads as well."""

    code = "lease_lost"
    retryable = True

    def __str__(self) -> str:
        return "the host's lease has run out"


class ChallengeRefused(HermesError):
    """A wrong or worn-out answer to an unfreeze challenge, or a token that does not open this memory."""

    code = "challenge_refused"

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return self.why


class CoreFull(HermesError):
    """The core tier has no room; the freeze waits and the operator is told (SPEC §4.2)."""

    code = "core_full"

    def __str__(self) -> str:
        return "the core tier is full; the freeze waits for an operator"


class Refused(HermesError):
    """A gate refused what a caller asked to store; ``reason`` is from the published list."""

    code = "refused"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"not stored: {self.reason}"


class UserPaused(HermesError):
    """The user has paused remembering (SPEC §11)."""

    code = "user_paused"

    def __str__(self) -> str:
        return "remembering is paused for this user"


class Overloaded(HermesError):
    """A bounded queue is full; try again after ``retry_after_s`` seconds."""

    code = "overloaded"
    retryable = True

    def __init__(self, retry_after_s: float) -> None:
        super().__init__(retry_after_s)
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        return "too many requests are waiting"


class OutcomeUnknown(HermesError):
    """The call was sent and no answer came within the deadline; it may or may not have been applied."""

    code = "outcome_unknown"
    retryable = True

    def __str__(self) -> str:
        return "no answer within the deadline; repeat with the same ids to learn the outcome"


class LedgerUnavailable(HermesError):
    """The system of record cannot be reached or cannot write; nothing was acknowledged."""

    code = "ledger_unavailable"
    retryable = True

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return f"the ledger is unavailable: {self.why}"


class IndexUnavailable(HermesError):
    """The long-term index cannot be reached or does not answer in time; the ledger holds everything it should."""

    code = "index_unavailable"
    retryable = True

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return f"the index is unavailable: {self.why}"


class ExtractionFailed(HermesError):
    """The extractor gave no usable answer; the turns stay and are tried again.

    ``after_s``: the least pause before that, as a model asked for; ``tokens``: what the failed try has used.
    """

    code = "extraction_failed"
    retryable = True

    def __init__(self, why: str, after_s: float = 0.0, tokens: int = 0) -> None:
        super().__init__(why, after_s, tokens)
        self.why, self.after_s, self.tokens = why, after_s, tokens

    def __str__(self) -> str:
        return f"extraction failed: {self.why}"


class ModelFailed(HermesError):
    """A model, in this process or behind an endpoint, gave no usable answer. Never says what it was asked.

    ``after_s``: the least pause before the next try, as the endpoint asked for.
    """

    code = "model_failed"
    retryable = True

    def __init__(self, what: str, why: str, after_s: float = 0.0) -> None:
        super().__init__(what, why, after_s)
        self.what, self.why, self.after_s = what, why, after_s

    def __str__(self) -> str:
        return f"{self.what} gave no usable answer: {self.why}"


class DataInUse(HermesError):
    """Another process serves this data directory."""

    code = "data_in_use"

    def __init__(self, path: str, holder: str) -> None:
        super().__init__(path, holder)
        self.path, self.holder = path, holder

    def __str__(self) -> str:
        return f"{self.path} is in use by {self.holder}; stop it first or choose another --data directory"


class StartupFailed(HermesError):
    """A part of the server did not come up; what had started was stopped again."""

    code = "startup_failed"
    retryable = True

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return f"{self.what} did not start; is the machine short of memory or very busy?"


class EmbedderMismatch(HermesError):
    """The data was embedded by another model or dimension; ``hermes reembed`` converts it.

    ``unfinished``: it has begun to convert the data to the configured one.
    """

    code = "embedder_mismatch"

    def __init__(self, stored: str, configured: str, unfinished: bool = False) -> None:
        super().__init__(stored, configured, unfinished)
        self.stored, self.configured, self.unfinished = stored, configured, unfinished

    def __str__(self) -> str:
        what = (
            "re-embedding is unfinished: run `hermes reembed` again"
            if self.unfinished
            else "run `hermes reembed`"
        )
        return (
            f"the data was embedded with {self.stored}, the configuration names {self.configured}; "
            f"{what} or configure the former"
        )
