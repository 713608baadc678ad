"""The user's own hand: edit, delete, confirm, freeze, the verified unfreeze, and answers (SPEC §5, §11)."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from hermes_memory.app.commands import (
    AnswerChallenge,
    ConfirmMemory,
    Delete,
    Edit,
    EraseKind,
    FreezeMemory,
    RequestUnfreeze,
)
from hermes_memory.app.confirming import close_questions
from hermes_memory.app.desk import Decision, Desk, Draft
from hermes_memory.app.records import memory_record
from hermes_memory.app.state import UserState
from hermes_memory.core.board import Op
from hermes_memory.core.candidate import Candidate
from hermes_memory.core.conflicts import opposes
from hermes_memory.core.frozen import confirm, freeze
from hermes_memory.core.ids import digest
from hermes_memory.core.merging import parts_of
from hermes_memory.core.model import (
    LIVE,
    MAX_CONTENT_CHARS,
    Affirmed,
    Category,
    Evidence,
    EvidenceKind,
    Granularity,
    Intent,
    Lock,
    Memory,
    Revision,
    Role,
    Scope,
    Turn,
)
from hermes_memory.core.reasons import Reason
from hermes_memory.core.text import content_hash
from hermes_memory.core.transitions import LockEvent
from hermes_memory.core.window import Erased, without
from hermes_memory.errors import (
    ChallengeRefused,
    CoreFull,
    Illegal,
    InvalidInput,
    MemoryFrozen,
    NotFound,
    PreconditionMissing,
    StaleMemory,
)
from hermes_memory.ports.embedder import Vector


@dataclass(frozen=True, slots=True)
class Reading:
    """What the extractor made of an edited text: its vector and, if it read one statement, that."""

    vector: Vector
    candidate: Candidate | None


def edit(state: UserState, command: Edit, desk: Desk) -> Decision:
    """Change a memory by hand. The edit becomes evidence; a frozen one needs a token, used once (SPEC §5)."""
    draft = Draft(state, desk)
    memory = draft.memory(command.memory_id)
    if memory.granularity is Granularity.SPAN:
        raise InvalidInput("memory", "is merged from others; change one of its parts")
    frozen = memory.lock is Lock.FROZEN
    why = _spend_token(draft, memory, command.unfreeze_token) if frozen else ""
    if command.expected_version is None:
        raise PreconditionMissing
    if command.expected_version != memory.version:
        raise StaleMemory(command.expected_version, memory.version)
    message_id = "edit_" + digest(desk.operation_id)
    before = draft.board.revision(memory, Reason.EDITED, message_id)
    if frozen:
        memory = draft.board.open(memory, why, message_id)
    changed = _apply(memory, command, desk, message_id).with_(
        history=(*memory.history, before), updated_at=desk.now
    )
    memory = draft.board.put(changed)
    if command.content is not None:
        draft.vectors[memory.id] = desk.prepared.vector
    draft.board.log(Op.EDITED, Reason.EDITED, memory, message_id)
    if frozen:
        memory = draft.board.refreeze(memory, message_id)
    _agree(draft, memory)
    close_questions(draft)
    draft.tidy()
    return draft.decide(memory_record(draft.board[memory.id]))


def _agree(draft: Draft, memory: Memory) -> None:
    """What no longer contradicts since the edit is nobody's rival."""
    dimensions = draft.desk.policy.dimensions
    pairs = [(memory, draft.board.get(memory.rival_of or ""))]
    pairs += [(rival, memory) for rival in draft.board.live() if rival.rival_of == memory.id]
    for rival, old in pairs:
        if old is not None and not opposes(rival, old, dimensions):
            draft.board.put(draft.board[rival.id].with_(rival_of=None))


def _apply(memory: Memory, command: Edit, desk: Desk, message_id: str) -> Memory:
    changes: dict[str, Any] = {}
    if command.content is not None:
        changes = _new_content(memory, command.content, desk, message_id)
    if command.scope is not None:
        changes["scope"] = _scope(command.scope)
    if command.scene is not None:
        changes["scene"] = desk.policy.mask(command.scene)
    for name in ("valid_from", "valid_to"):
        if (value := getattr(command, name)) is not None:
            changes[name] = value
    if not changes:
        raise InvalidInput("body", "names nothing to change")
    edited = memory.with_(**changes)
    if edited.valid_from and edited.valid_to and edited.valid_to < edited.valid_from:
        raise InvalidInput("valid_to", "lies before valid_from")
    return edited


def _protects(read: Candidate | None, desk: Desk) -> bool:
    """Whether the new words are about safety, wherever they stand."""
    return read is not None and desk.policy.dimensions.safety(read.dimension) is not None


def _scope(name: str) -> Scope:
    try:
        return Scope(name)
    except ValueError:
        raise InvalidInput("scope", f"must be one of {', '.join(Scope)}") from None


def _new_content(memory: Memory, content: str, desk: Desk, message_id: str) -> dict[str, Any]:
    content = desk.policy.mask(content.strip())
    if not content or len(content) > MAX_CONTENT_CHARS:
        raise InvalidInput("content", f"must have 1 to {MAX_CONTENT_CHARS} characters")
    read = desk.prepared.candidate
    same = read is not None and (read.dimension == memory.dimension or read.layer is memory.layer)
    evidence = Evidence(
        session_id="panel", turn_index=0, message_id=message_id, role=Role.USER, quote=content, start=0,
        end=len(content), created_at=desk.now, intent=Intent.CORRECTION, kind=EvidenceKind.EDIT, extractor="panel",
    )  # fmt: skip
    polarity = read.polarity if same else memory.polarity
    subject = read.subject if same else memory.subject
    return {
        "subject": subject,
        "content": content,
        "object": read.object if same else content,
        "dimension": read.dimension if same else memory.dimension,
        "safety": memory.safety or _protects(read, desk),
        "predicate": read.predicate if same else memory.predicate,
        "polarity": polarity,
        "negative": read.negative if same else memory.negative,
        "content_hash": content_hash(subject, polarity, content),
        "evidence": (*memory.evidence, evidence),
        "source_confidence": 1.0,
    }


def _spend_token(draft: Draft, memory: Memory, token: str | None) -> str:
    """Use a token up; the reason that was given for it, with its source dialog. Raises MemoryFrozen."""
    challenges = dict(draft.state.settings.challenges)
    hashed = digest(token or "")
    for challenge_id, challenge in challenges.items():
        opens = challenge["memory_id"] == memory.id and challenge.get("token_hash")
        if opens and token and hmac.compare_digest(challenge["token_hash"], hashed):
            if draft.desk.now.timestamp() > challenge["token_expires_at"]:
                break
            challenges.pop(challenge_id)
            draft.change_settings(challenges=challenges)
            return f"{challenge['reason']} (session {challenge['source_session_id']})"
    raise MemoryFrozen(memory.id)


def request_unfreeze(state: UserState, command: RequestUnfreeze, desk: Desk) -> Decision:
    """Open a challenge: a one-time code to echo in a later request (SPEC §5). ``desk.prepared`` is the code.

    An operator needs no second verification: for them it is the token.
    """
    draft = Draft(state, desk)
    memory = draft.memory(command.memory_id)
    if memory.lock is not Lock.FROZEN:
        raise Illegal(memory.lock, LockEvent.UNFREEZE)
    if command.source_session_id not in state.sessions:
        raise InvalidInput("source_session_id", "is not a session of this user")
    code: str = desk.prepared
    locks = desk.policy.rules.locks
    expires_at = desk.now + timedelta(minutes=locks.challenge_minutes)
    challenge_id = "chl_" + digest(desk.operation_id)
    challenge = {
        "memory_id": memory.id, "code_hash": digest(code), "tries": 0, "expires_at": expires_at.timestamp(),
        "reason": desk.policy.mask(command.reason), "source_session_id": command.source_session_id,
    }  # fmt: skip
    answer = {
        "challenge_id": challenge_id,
        "prompt": f"Echo the code to unfreeze this memory once: {memory.content}",
        "code": code,
        "expires_at": expires_at.isoformat(),
    }
    if command.by_operator:
        challenge, answer = _with_token(challenge, code, desk)
    alive = {k: v for k, v in state.settings.challenges.items() if _alive(v, desk)}
    draft.change_settings(challenges={**alive, challenge_id: challenge})
    return draft.decide(answer)


def _with_token(challenge: dict[str, Any], token: str, desk: Desk) -> tuple[dict[str, Any], dict[str, Any]]:
    """A challenge that is met, and the answer with its token: for one change, for minutes."""
    expires_at = desk.now + timedelta(minutes=desk.policy.rules.locks.token_minutes)
    met = {**challenge, "token_hash": digest(token), "token_expires_at": expires_at.timestamp()}
    return met, {"token": token, "expires_at": expires_at.isoformat()}


def _alive(challenge: dict[str, Any], desk: Desk) -> bool:
    return bool(desk.now.timestamp() <= max(challenge["expires_at"], challenge.get("token_expires_at", 0.0)))


def answer_challenge(state: UserState, command: AnswerChallenge, desk: Desk) -> Decision:
    """Give a token for the right code; a wrong one is counted and, after the last try, ends the challenge."""
    draft = Draft(state, desk)
    challenges = dict(state.settings.challenges)
    challenge = challenges.get(command.challenge_id)
    if challenge is None or challenge["memory_id"] != command.memory_id or "token_hash" in challenge:
        raise NotFound("challenge")
    locks = desk.policy.rules.locks
    if desk.now.timestamp() > challenge["expires_at"] or challenge["tries"] >= locks.challenge_tries:
        raise ChallengeRefused("the challenge has run out")
    if not hmac.compare_digest(challenge["code_hash"], digest(command.answer)):
        challenges[command.challenge_id] = {**challenge, "tries": challenge["tries"] + 1}
        draft.change_settings(challenges=challenges)
        return draft.decide(None, ChallengeRefused("the answer is wrong"))
    challenges[command.challenge_id], answer = _with_token(challenge, desk.prepared, desk)
    draft.change_settings(challenges=challenges)
    return draft.decide(answer)


def confirm_memory(state: UserState, command: ConfirmMemory, desk: Desk) -> Decision:
    """The panel's confirm: once per memory and session."""
    draft = Draft(state, desk)
    memory = draft.memory(command.memory_id)
    if memory.status not in LIVE:
        raise Illegal(memory.status, LockEvent.CONFIRM)
    message_id = "confirm_" + digest(command.memory_id, command.session_id)
    said = Affirmed(session_id=command.session_id, message_id=message_id, at=desk.now)
    draft.board.log(Op.REINFORCED, Reason.PANEL, memory, message_id)
    after = confirm(draft.board, memory, said, desk.policy.rules, explicit=True)
    if after == memory:
        return Decision(None, memory_record(memory))
    draft.tidy()
    return draft.decide(memory_record(draft.board[memory.id]))


def freeze_memory(state: UserState, command: FreezeMemory, desk: Desk) -> Decision:
    """Freeze by hand, if the core tier has room."""
    draft = Draft(state, desk)
    memory = draft.memory(command.memory_id)
    if memory.status not in LIVE or memory.granularity is Granularity.SPAN:
        raise Illegal(memory.status, LockEvent.FREEZE_BY_HAND)
    after = freeze(draft.board, memory, LockEvent.FREEZE_BY_HAND, Reason.BY_HAND, desk.policy.rules, None)
    if after.lock is not Lock.FROZEN:
        return draft.decide(None, CoreFull())
    return draft.decide(
        memory_record(draft.board.put(after.with_(freeze_reason=desk.policy.mask(command.reason))))
    )


def delete(state: UserState, command: Delete, desk: Desk) -> Decision:
    """Remove one memory and every copy of its words, and answer with a receipt of counts (SPEC §11).

    ``desk.prepared`` are all raw turns that the ledger still keeps: the state holds only the recent ones.
    """
    draft = Draft(state, desk)
    return draft.decide(_remove(draft, [draft.memory(command.memory_id)]))


def erase_kind(state: UserState, command: EraseKind, desk: Desk) -> Decision:
    """Remove one kind of memories: a layer, or the events."""
    draft = Draft(state, desk)
    layer = None if command.kind == "event" else command.kind
    doomed = [m for m in draft.board if m.layer == layer and (layer or m.category is Category.EVENT)]
    return draft.decide(_remove(draft, doomed)) if doomed else Decision(None, _receipt(0, 0, 0))


def _remove(draft: Draft, doomed: list[Memory]) -> dict[str, Any]:
    doomed = [*doomed, *(part for memory in doomed for part in parts_of(draft.board, memory))]
    doomed = list({memory.id: memory for memory in doomed}.values())
    ids = {memory.id for memory in doomed}
    quotes = {piece.quote for memory in doomed for piece in memory.evidence}
    for memory in doomed:
        draft.erase(memory.id)
        draft.board.delete(memory, Reason.ERASED)
    _forget_links(draft, ids)
    draft.tidy()
    kept: Iterable[Turn] = draft.desk.prepared or draft.state.turns.values()
    draft.rewritten = [_without(turn, quotes) for turn in kept if _holds(turn.content, quotes)]
    _forget_in_summaries(draft, doomed)
    requests = {k: v for k, v in draft.state.settings.confirmations.items() if not ids & set(v["memory_ids"])}
    challenges = {k: v for k, v in draft.state.settings.challenges.items() if v["memory_id"] not in ids}
    draft.change_settings(confirmations=requests, challenges=challenges)
    slots = _forget_slots(draft, ids)
    vectors = sum(1 for i in ids if draft.state.elsewhere(i) or draft.state.vector(i) is not None)
    return _receipt(len(ids), vectors, len(draft.rewritten), slots)


def _forget_slots(draft: Draft, ids: set[str]) -> int:
    """How many slots named one of the memories; habits that were read from one are forgotten with it."""
    now = draft.current_settings()
    named = sum(1 for behind in now.profile.values() if ids & set(behind))
    kept = {name: slot for name, slot in now.behavior.items() if not ids & set(slot["memory_ids"])}
    draft.change_settings(behavior=kept)
    return named + len(now.behavior) - len(kept)


def _forget_links(draft: Draft, ids: set[str]) -> None:
    for memory in list(draft.board):
        if memory.rival_of in ids:
            draft.board.put(memory.with_(rival_of=None))


def _forget_in_summaries(draft: Draft, doomed: list[Memory]) -> None:
    """Take the words of the memories, now and before, out of the summaries of open conversations (SPEC §11)."""
    pieces = [piece for memory in doomed for piece in memory.evidence]
    told: list[Memory | Revision] = [*doomed, *(past for memory in doomed for past in memory.history)]
    quotes = frozenset([*(piece.quote for piece in pieces), *(each.content for each in told)])
    things = frozenset(each.object for each in told)
    for session in (each for each in draft.state.sessions.values() if each.summary.pieces):
        stretches: dict[int, list[tuple[int, int]]] = {}
        for piece in pieces:
            if piece.session_id == session.id:
                stretches.setdefault(piece.turn_index, []).append((piece.start, piece.end))
        cleaned = without(session.summary, Erased(stretches=stretches, quotes=quotes, things=things))
        if cleaned != session.summary:
            draft.sessions[session.id] = replace(session, summary=cleaned)


def _holds(text: str, quotes: Iterable[str]) -> bool:
    return any(quote in text for quote in quotes)


def _without(turn: Turn, quotes: set[str]) -> Turn:
    content = turn.content
    for quote in sorted(quotes, key=len, reverse=True):
        content = content.replace(quote, "[erased]")
    return replace(turn, content=content)


def _receipt(memories: int, vectors: int, turns: int, slots: int = 0) -> dict[str, Any]:
    erased = {
        "memories": memories,
        "vectors": vectors,
        "turns": turns,
        "audit": 0,
        "jobs": 0,
        "profile_slots": slots,
    }
    return {"erased": erased, "remaining": 0}
