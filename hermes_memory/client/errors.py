"""From a problem that the server answered back to the error that the domain raised there."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hermes_memory import errors
from hermes_memory.errors import HermesError


class ApiError(HermesError):
    """The server refused a call in a way that has no error of its own in ``hermes_memory.errors``."""

    def __init__(self, status: int, code: str, detail: str, retryable: bool) -> None:
        super().__init__(status, code, detail, retryable)
        self.status = status
        # The server says what these are, so here they belong to the instance.
        self.code = code  # type: ignore[misc]
        self.retryable = retryable  # type: ignore[misc]
        self._detail = detail

    def __str__(self) -> str:
        return f"{self._detail} ({self.status} {self.code})"


class ServerUnreachable(HermesError):
    """No connection to the server came about; nothing was sent."""

    code = "server_unreachable"
    retryable = True

    def __init__(self, url: str, why: str) -> None:
        super().__init__(url, why)
        self.url, self.why = url, why

    def __str__(self) -> str:
        return f"no server answers at {self.url}: {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What the server said, and the id of what the call was about, which the server never echoes."""

    status: int
    code: str
    detail: str
    retryable: bool = False
    request_id: str | None = None
    retry_after_s: float = 1.0
    about: str = ""


def error_of(problem: Problem) -> HermesError:
    """The error that the in-process ``Memory`` raises in the same case; ``ApiError`` where it has none."""
    build = _BUILD.get(problem.code, _unknown)
    error = build(problem)
    if problem.request_id:
        error.add_note(f"request id {problem.request_id}")
    return error


def _unknown(problem: Problem) -> HermesError:
    return ApiError(problem.status, problem.code, problem.detail, problem.retryable)


def _field(kind: type[errors.InvalidInput]) -> Callable[[Problem], HermesError]:
    def build(problem: Problem) -> HermesError:
        field, colon, what = problem.detail.partition(": ")
        return kind(field, what) if colon else kind("input", problem.detail)

    return build


def _rest(kind: Callable[[str], HermesError], prefix: str) -> Callable[[Problem], HermesError]:
    """An error of one text, which ``detail`` shows after ``prefix``."""
    return lambda problem: kind(problem.detail.removeprefix(prefix))


def _numbers(
    kind: Callable[[int, int], HermesError], order: tuple[int, int]
) -> Callable[[Problem], HermesError]:
    """An error of two numbers; ``order`` says where ``detail`` shows the first and the second."""

    def build(problem: Problem) -> HermesError:
        found = [int(digits) for digits in re.findall(r"\d+", problem.detail)]
        return kind(found[order[0]], found[order[1]]) if len(found) == 2 else _unknown(problem)

    return build


def _illegal(problem: Problem) -> HermesError:
    event, found, state = problem.detail.partition(" is not possible while ")
    return errors.Illegal(state, event) if found else _unknown(problem)


def _embedder_mismatch(problem: Problem) -> HermesError:
    found = re.match(r"the data was embedded with (.+), the configuration names (.+?);", problem.detail)
    unfinished = "unfinished" in problem.detail
    return errors.EmbedderMismatch(found[1], found[2], unfinished) if found else _unknown(problem)


def _model_failed(problem: Problem) -> HermesError:
    what, found, why = problem.detail.partition(" gave no usable answer: ")
    return errors.ModelFailed(what, why, problem.retry_after_s) if found else _unknown(problem)


def _data_in_use(problem: Problem) -> HermesError:
    found = re.match(r"(.+) is in use by (.+?);", problem.detail)
    return errors.DataInUse(found[1], found[2]) if found else _unknown(problem)


_BUILD: Mapping[str, Callable[[Problem], HermesError]] = {
    errors.InvalidInput.code: _field(errors.InvalidInput),
    errors.InvalidId.code: _field(errors.InvalidId),
    errors.InvalidConfig.code: _field(errors.InvalidConfig),
    errors.NotFound.code: _rest(errors.NotFound, "no such "),
    errors.SessionOwned.code: lambda _: errors.SessionOwned(),
    errors.MessageIdReused.code: lambda problem: errors.MessageIdReused(problem.about),
    errors.Illegal.code: _illegal,
    errors.MemoryFrozen.code: lambda problem: errors.MemoryFrozen(problem.about),
    errors.StaleMemory.code: _numbers(errors.StaleMemory, (1, 0)),
    errors.PreconditionMissing.code: lambda _: errors.PreconditionMissing(),
    errors.VersionConflict.code: _numbers(errors.VersionConflict, (0, 1)),
    errors.Fenced.code: _numbers(errors.Fenced, (0, 1)),
    errors.LeaseLost.code: lambda _: errors.LeaseLost(),
    errors.ChallengeRefused.code: _rest(errors.ChallengeRefused, ""),
    errors.CoreFull.code: lambda _: errors.CoreFull(),
    errors.Refused.code: _rest(errors.Refused, "not stored: "),
    errors.UserPaused.code: lambda _: errors.UserPaused(),
    errors.Overloaded.code: lambda problem: errors.Overloaded(problem.retry_after_s),
    errors.OutcomeUnknown.code: lambda _: errors.OutcomeUnknown(),
    errors.LedgerUnavailable.code: _rest(errors.LedgerUnavailable, "the ledger is unavailable: "),
    errors.IndexUnavailable.code: _rest(errors.IndexUnavailable, "the index is unavailable: "),
    errors.ExtractionFailed.code: _rest(errors.ExtractionFailed, "extraction failed: "),
    errors.ModelFailed.code: _model_failed,
    errors.DataInUse.code: _data_in_use,
    errors.StartupFailed.code: lambda _: errors.StartupFailed("the server"),
    errors.EmbedderMismatch.code: _embedder_mismatch,
}
