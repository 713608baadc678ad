"""The user's own hand: edit, the verified unfreeze, confirm, freeze, delete (SPEC §5, §11)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hermes_memory.app.commands import (
    AnswerChallenge,
    ConfirmMemory,
    Delete,
    EndSession,
    EraseKind,
    FreezeMemory,
    RequestUnfreeze,
)
from hermes_memory.app.editing import Reading
from hermes_memory.core.board import Board
from hermes_memory.core.model import (
    Category,
    EvidenceKind,
    Intent,
    Layer,
    Lock,
    Memory,
    Polarity,
    Scope,
    Status,
    Tier,
)
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
from hermes_memory.ports.ledger import GrantKind
from tests.small_world import DAY, HOUR, NOW, Said, a_candidate, a_turn, policy, rules, say, vector
from tests.tiny_ledger import Person

MINUS = Polarity.NEGATIVE


def home(name: str = "苏州", **over: Any) -> Said:
    return say(f"我住在{name}", object=name, **over)


def peanuts(**over: Any) -> Said:
    return say("我对花生过敏", **({"dimension": "allergy", "object": "花生"} | over))


def reading(text: str, **over: Any) -> Reading:
    """What the extractor makes of the edited text."""
    turn = a_turn(content=text, session_id="panel", message_id="panel")
    return Reading(vector(text), a_candidate(turn, **over) if over else None)


def at_home() -> tuple[Person, Memory]:
    person = Person()
    return person, person.remember(home())


def with_allergy() -> tuple[Person, Memory]:
    person = Person()
    memory = person.remember(peanuts())
    assert memory.lock is Lock.FROZEN
    return person, memory


# edit


def test_spec_11_an_edit_becomes_evidence_and_history() -> None:
    person, memory = at_home()
    person.pass_time(days=1)
    text = "用户住在杭州"
    record = person.edit(memory, reading(text, object="杭州"), content=text)
    edited = person.memory(memory.id)
    assert (edited.content, edited.object, edited.version, edited.source_confidence) == (text, "杭州", 2, 1.0)
    assert record["version"] == 2
    piece = edited.evidence[-1]
    assert (piece.quote, piece.kind, piece.intent, piece.role) == (
        text,
        EvidenceKind.EDIT,
        Intent.CORRECTION,
        "user",
    )
    assert text[piece.start : piece.end] == piece.quote
    (revision,) = edited.history
    assert (revision.content, revision.object, revision.reason, revision.version) == (
        "我住在苏州",
        "苏州",
        "edited",
        1,
    )
    assert edited.updated_at == person.now
    assert person.ledger.audit[-1].op == "edited"


def test_spec_11_an_edit_moves_the_vector_and_the_words() -> None:
    person, memory = at_home()
    person.edit(memory, reading("用户住在杭州", object="杭州"), content="用户住在杭州")
    stored = person.state.shelf.vectors.get(memory.id)
    assert stored is not None
    assert stored.tolist() == vector("用户住在杭州").tolist()
    assert person.state.shelf.words.scores(("杭",)).ids == [memory.id]
    assert person.state.shelf.words.scores(("苏",)).ids == []


def test_an_edit_that_the_extractor_does_not_read_keeps_the_fields() -> None:
    person, memory = at_home()
    for read in (reading("改了"), reading("改了", dimension="drink", object="改")):
        person.edit(person.memory(memory.id), read, content="改了")
        edited = person.memory(memory.id)
        assert (edited.dimension, edited.predicate, edited.object) == ("city", "city", "改了")


def test_an_edit_that_is_read_in_the_same_layer_takes_its_fields() -> None:
    person, memory = at_home()
    read = reading("用户没有猫", dimension="pet", object="猫", polarity=MINUS, negative=True)
    person.edit(memory, read, content="用户没有猫")
    edited = person.memory(memory.id)
    assert (edited.dimension, edited.object, edited.polarity, edited.negative) == ("pet", "猫", MINUS, True)


def test_spec_3_1_an_edit_into_a_matter_of_safety_carries_the_flag() -> None:
    person = Person()
    memory = person.remember(say("我不吃花生", dimension="food_taboo", object="花生", polarity=MINUS))
    assert not memory.safety
    person.edit(
        memory, reading("用户对花生过敏", dimension="allergy", object="花生"), content="用户对花生过敏"
    )
    assert person.memory(memory.id).safety


def test_spec_7_1_an_edit_into_an_allergy_is_always_there_whatever_it_was_before() -> None:
    person, memory = at_home()
    text = "我对花生过敏"
    person.edit(memory, reading(text, dimension="allergy", object="花生"), content=text)
    assert memory.id in person.state.always
    person.edit(person.memory(memory.id), reading("x"), content="我住在苏州")
    assert person.memory(memory.id).safety  # it never falls by an edit that nothing reads


def test_spec_4_1_3_an_edit_is_masked() -> None:
    person, memory = at_home()
    person.edit(memory, reading("x"), content="  key sk-abc123  ")
    assert person.memory(memory.id).content == "key [secret]"
    assert "sk-abc123" not in repr(person.last)


@pytest.mark.parametrize(
    "changes",
    [
        {"scope": "scene", "scene": "travel"}, {"scope": "session"}, {"valid_from": NOW - DAY},
        {"valid_to": NOW + DAY}, {"valid_from": NOW, "valid_to": NOW},
    ],
)  # fmt: skip
def test_an_edit_of_other_fields_needs_no_reading(changes: dict[str, Any]) -> None:
    person, memory = at_home()
    person.edit(memory, **changes)
    edited = person.memory(memory.id)
    assert {name: getattr(edited, name) for name in changes} == changes
    assert (edited.content, edited.version, len(edited.evidence)) == (memory.content, 2, 1)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({}, "body"), ({"content": "   "}, "content"), ({"content": "长" * 257}, "content"),
        ({"scope": "world"}, "scope"), ({"valid_from": NOW, "valid_to": NOW - DAY}, "valid_to"),
    ],
)  # fmt: skip
def test_a_bad_edit_is_refused_and_changes_nothing(changes: dict[str, Any], field: str) -> None:
    person, memory = at_home()
    with pytest.raises(InvalidInput) as caught:
        person.edit(memory, reading("x"), **changes)
    assert caught.value.field == field
    assert person.memory(memory.id) == memory


def test_an_edit_names_the_version_it_is_based_on() -> None:
    person, memory = at_home()
    with pytest.raises(PreconditionMissing):
        person.edit(memory, expected_version=None, scope="session")
    with pytest.raises(StaleMemory) as caught:
        person.edit(memory, expected_version=7, scope="session")
    assert (caught.value.expected, caught.value.actual) == (7, 1)


def test_an_edit_of_nothing_known_is_not_found() -> None:
    person, memory = at_home()
    with pytest.raises(NotFound):
        person.edit(memory.with_(id="other"), scope="session")


# the verified unfreeze (SPEC §5)


def challenge(person: Person, memory: Memory, code: str = "c0de") -> str:
    request = RequestUnfreeze(memory_id=memory.id, reason="doctor says so", source_session_id="s1")
    answer = person.act(request, code)
    assert answer["code"] == code
    assert memory.content in answer["prompt"]
    return str(answer["challenge_id"])


def echo(
    person: Person, memory: Memory, challenge_id: str, answer: str = "c0de", gives: str = "t0ken"
) -> Any:
    return person.act(AnswerChallenge(memory_id=memory.id, challenge_id=challenge_id, answer=answer), gives)


def unlocked() -> tuple[Person, Memory]:
    person, memory = with_allergy()
    assert echo(person, memory, challenge(person, memory))["token"] == "t0ken"
    return person, memory


@pytest.mark.parametrize("token", [None, "", "guess"])
def test_spec_5_a_frozen_memory_refuses_an_edit_without_a_token_before_anything_else(
    token: str | None,
) -> None:
    person, memory = with_allergy()
    with pytest.raises(MemoryFrozen):
        person.edit(memory, expected_version=99, scope="session", unfreeze_token=token)
    assert person.memory(memory.id) == memory


def test_spec_5_a_token_allows_one_change_and_freezes_again() -> None:
    person, memory = unlocked()
    text = "用户对腰果过敏"
    person.edit(
        memory, reading(text, dimension="allergy", object="腰果"), content=text, unfreeze_token="t0ken"
    )
    edited = person.memory(memory.id)
    assert (edited.object, edited.lock, edited.tier, edited.status) == (
        "腰果",
        Lock.FROZEN,
        Tier.CORE,
        Status.ACTIVE,
    )
    assert edited.unfreeze_reason == "doctor says so (session s1)"
    assert [(e.op, e.before, e.after) for e in person.ledger.audit[-3:]] == [
        ("unfrozen", "frozen", "unfrozen"), ("edited", None, None), ("refrozen", "unfrozen", "frozen"),
    ]  # fmt: skip
    assert person.last is not None
    assert person.last.grants == {memory.id: GrantKind.UNFREEZE}
    with pytest.raises(MemoryFrozen):
        person.edit(edited, scope="session", unfreeze_token="t0ken")


def test_spec_5_a_refused_edit_does_not_use_the_token_up() -> None:
    person, memory = unlocked()
    with pytest.raises(StaleMemory):
        person.edit(memory, expected_version=9, scope="session", unfreeze_token="t0ken")
    with pytest.raises(InvalidInput):
        person.edit(memory, unfreeze_token="t0ken")
    person.edit(memory, scope="session", unfreeze_token="t0ken")
    assert person.memory(memory.id).scope is Scope.SESSION


def test_spec_5_a_token_opens_the_memory_it_was_given_for_and_no_other() -> None:
    person, memory = unlocked()
    other = person.remember(say("我对虾过敏", dimension="allergy", object="虾", at=NOW + HOUR))
    with pytest.raises(MemoryFrozen):
        person.edit(other, scope="session", unfreeze_token="t0ken")
    person.edit(memory, scope="session", unfreeze_token="t0ken")


@pytest.mark.parametrize(("minutes", "opens"), [(5, True), (5.1, False)])
def test_spec_5_a_token_lasts_five_minutes(minutes: float, opens: bool) -> None:
    person, memory = unlocked()
    person.pass_time(minutes=minutes)
    if opens:
        person.edit(memory, scope="session", unfreeze_token="t0ken")
        return
    with pytest.raises(MemoryFrozen):
        person.edit(memory, scope="session", unfreeze_token="t0ken")


def test_spec_5_the_code_and_the_token_are_stored_as_digests_only() -> None:
    person, _ = unlocked()
    assert "t0ken" not in repr(person.ledger.settings)
    assert "c0de" not in repr(person.ledger.settings)


def test_spec_5_an_operator_opens_a_frozen_memory_once_with_a_reason_and_a_source() -> None:
    person = Person()
    memory = person.remember(peanuts())
    asked = RequestUnfreeze(memory_id=memory.id, reason="a mistake", source_session_id="s1", by_operator=True)
    token = person.act(asked, "a token")["token"]
    person.edit(memory, Reading(vector("我对虾过敏"), None), content="我对虾过敏", unfreeze_token=token)
    opened = person.memory(memory.id)
    assert (opened.content, opened.lock, opened.unfreeze_reason) == (
        "我对虾过敏", Lock.FROZEN, "a mistake (session s1)",
    )  # fmt: skip
    with pytest.raises(MemoryFrozen):
        person.edit(opened, Reading(vector("x"), None), content="我对蟹过敏", unfreeze_token=token)


def test_spec_5_a_challenge_allows_three_tries() -> None:
    person, memory = with_allergy()
    challenge_id = challenge(person, memory)
    for _ in range(3):
        with pytest.raises(ChallengeRefused, match="wrong"):
            echo(person, memory, challenge_id, "guess")
    with pytest.raises(ChallengeRefused, match="run out"):
        echo(person, memory, challenge_id)


def test_spec_5_the_third_try_may_be_right() -> None:
    person, memory = with_allergy()
    challenge_id = challenge(person, memory)
    for _ in range(2):
        with pytest.raises(ChallengeRefused):
            echo(person, memory, challenge_id, "guess")
    assert echo(person, memory, challenge_id)["token"]


@pytest.mark.parametrize(("minutes", "opens"), [(10, True), (10.1, False)])
def test_spec_5_a_challenge_lasts_ten_minutes(minutes: float, opens: bool) -> None:
    person, memory = with_allergy()
    challenge_id = challenge(person, memory)
    person.pass_time(minutes=minutes)
    if opens:
        assert echo(person, memory, challenge_id)["token"]
        return
    with pytest.raises(ChallengeRefused, match="run out"):
        echo(person, memory, challenge_id)


def test_spec_5_a_challenge_is_answered_once() -> None:
    person, memory = with_allergy()
    challenge_id = challenge(person, memory)
    echo(person, memory, challenge_id)
    with pytest.raises(NotFound):
        echo(person, memory, challenge_id, gives="second")


def test_spec_5_a_challenge_belongs_to_its_memory() -> None:
    person, memory = with_allergy()
    challenge_id = challenge(person, memory)
    for wrong in (memory.with_(id="other"), memory):
        with pytest.raises(NotFound):
            echo(person, wrong, challenge_id if wrong.id == "other" else "chl_none")


def test_spec_5_what_has_run_out_is_forgotten_at_the_next_challenge() -> None:
    person, memory = with_allergy()
    first = challenge(person, memory)
    person.pass_time(minutes=11)
    second = challenge(person, memory)
    assert set(person.state.settings.challenges) == {second} != {first}


def test_spec_5_a_challenge_needs_a_frozen_memory_and_a_session_of_the_user() -> None:
    person, memory = at_home()
    with pytest.raises(Illegal):
        person.act(RequestUnfreeze(memory_id=memory.id, reason="x", source_session_id="s1"), "c")
    person, memory = with_allergy()
    with pytest.raises(InvalidInput):
        person.act(RequestUnfreeze(memory_id=memory.id, reason="x", source_session_id="other"), "c")


# confirm and freeze by hand


def test_spec_5_the_panels_confirm_counts_once_per_memory_and_session() -> None:
    person, memory = at_home()
    confirm = ConfirmMemory(memory_id=memory.id, session_id="s2")
    assert person.act(confirm)["confidence"] == 0.85
    assert person.act(confirm)["confidence"] == 0.85
    assert person.last is None
    assert person.act(replace(confirm, session_id="s3"))["lock"] == "frozen"
    assert person.memory(memory.id).freeze_reason == "core_attribute"


@pytest.mark.parametrize("status", [Status.SUPERSEDED, Status.ARCHIVED])
@pytest.mark.parametrize("command", [ConfirmMemory, FreezeMemory])
def test_spec_5_what_no_longer_holds_is_neither_confirmed_nor_frozen(status: Status, command: type) -> None:
    person = Person()
    old = person.remember(home(scope=Scope.SESSION) if status is Status.ARCHIVED else home())
    if status is Status.ARCHIVED:
        person.act(EndSession(session_id="s1"))
    else:
        person.tell(home("杭州", at=NOW + DAY))
    assert person.memory(old.id).status is status
    more = {"session_id": "s2"} if command is ConfirmMemory else {"reason": "x"}
    with pytest.raises(Illegal):
        person.act(command(memory_id=old.id, **more))


def test_spec_4_2_a_panels_confirm_keeps_longterm_under_its_cap() -> None:
    person = Person(policy(rules(capacity={"longterm": 1})))
    cat, dog = (
        person.remember(say(f"我养{n}", dimension="pet", object=n, importance=i))
        for n, i in (("猫", 0.6), ("狗", 0.9))
    )
    person.act(ConfirmMemory(memory_id=cat.id, session_id="s2"))
    person.act(ConfirmMemory(memory_id=dog.id, session_id="s2"))
    assert [m.id for m in person.state.live.values() if m.tier is Tier.LONGTERM] == [dog.id]
    assert person.memory(cat.id).status is Status.ARCHIVED


@pytest.mark.parametrize("lock", [Lock.PENDING, Lock.CONFIRMED])
def test_spec_5_the_user_may_freeze_by_hand_with_a_reason(lock: Lock) -> None:
    person, memory = at_home()
    if lock is Lock.CONFIRMED:
        person.act(ConfirmMemory(memory_id=memory.id, session_id="s2"))
    assert person.memory(memory.id).lock is lock
    record = person.act(FreezeMemory(memory_id=memory.id, reason="my home"))
    assert (record["lock"], record["tier"], record["freeze_reason"]) == ("frozen", "core", "my home")
    with pytest.raises(Illegal):
        person.act(FreezeMemory(memory_id=memory.id, reason="again"))


def test_spec_4_2_a_freeze_by_hand_waits_when_core_is_full_and_an_alert_is_raised() -> None:
    person = Person(policy(rules(capacity={"core": 1})))
    person.remember(peanuts())
    memory = person.remember(home())
    with pytest.raises(CoreFull):
        person.act(FreezeMemory(memory_id=memory.id, reason="my home"))
    assert person.memory(memory.id) == memory
    assert (person.ledger.audit[-1].op, person.ledger.audit[-1].reason) == ("conflict", "core_full")


def test_spec_2_freezing_what_is_in_review_ends_the_review() -> None:
    person = Person()
    memory = person.remember(say("我喜欢咖啡", dimension="drink", object="咖啡"))
    board = Board(person.state.memories, NOW)
    board.put(memory.with_(status=Status.REVIEW))
    person.ledger.memories[memory.id] = board[memory.id]
    person.restart()
    person.act(FreezeMemory(memory_id=memory.id, reason="x"))
    assert (person.memory(memory.id).status, person.memory(memory.id).lock) == (Status.ACTIVE, Lock.FROZEN)
    person.tell(say("我喜欢咖啡", dimension="drink", object="咖啡", session="s2", at=NOW + DAY))
    assert len(person.memory(memory.id).evidence) == 2


@pytest.mark.parametrize(
    "command",
    [
        ConfirmMemory(memory_id="x", session_id="s"), FreezeMemory(memory_id="x", reason="r"), Delete(memory_id="x"),
        RequestUnfreeze(memory_id="x", reason="r", source_session_id="s1"),
    ],
)  # fmt: skip
def test_nothing_known_is_not_found(command: Any) -> None:
    with pytest.raises(NotFound):
        Person().act(command, "code")


# delete (SPEC §11)


def test_spec_11_a_deleted_memory_leaves_nothing_behind() -> None:
    person = Person()
    memory = person.remember(peanuts())
    person.pass_time(days=1)
    person.tell(peanuts(session="s2", at=person.now, polarity=MINUS, message="m2"))
    waiting = say("记得我对花生过敏吗", session="s3", at=person.now)
    person.ingest(waiting)
    assert person.state.settings.confirmations
    challenge(person, memory)
    receipt = person.act(Delete(memory_id=memory.id))
    assert receipt["erased"]["memories"] == receipt["erased"]["vectors"] == 1
    assert receipt["erased"]["turns"] == 3  # the two it was said in, and the one that waits
    assert receipt["remaining"] == 0
    assert memory.id not in person.state.memories
    assert memory.id not in person.ledger.vectors
    assert memory.id not in person.state.always
    assert (person.state.settings.confirmations, person.state.settings.challenges) == ({}, {})
    assert all("花生" not in turn.content for turn in person.ledger.turns.values())
    assert person.state.turns["s3", 0].content == "记得[erased]吗"
    assert person.state.turns["s3", 0].pending


def test_spec_11_other_words_of_a_turn_stay() -> None:
    person = Person()
    person.remember(peanuts())
    person.remember(say("我养猫", dimension="pet", object="猫", at=NOW + HOUR))
    (doomed,) = [m for m in person.state.memories.values() if m.object == "花生"]
    person.act(Delete(memory_id=doomed.id))
    assert [turn.content for turn in person.ledger.turns.values()] == ["[erased]", "我养猫"]


def test_spec_5_erasure_never_revives_a_predecessor_and_frees_a_rival() -> None:
    person = Person()
    first = person.remember(home())
    second = person.remember(home("杭州", at=NOW + DAY))
    person.act(Delete(memory_id=second.id))
    assert person.memory(first.id).status is Status.SUPERSEDED
    old = person.remember(say("我喜欢靠窗", dimension="seat", object="靠窗"))
    rival = person.remember(say("我喜欢过道", dimension="seat", object="过道", at=NOW + HOUR))
    assert rival.rival_of == old.id
    person.act(Delete(memory_id=old.id))
    assert person.memory(rival.id).rival_of is None


def test_spec_5_erasure_passes_the_frozen_gate_with_its_own_grant() -> None:
    person, memory = with_allergy()
    person.act(Delete(memory_id=memory.id))
    assert person.last is not None
    assert person.last.grants == {memory.id: GrantKind.ERASE}
    assert [(e.op, e.reason, e.memory_id) for e in person.ledger.audit[-1:]] == [
        ("erased", "erased", memory.id)
    ]


@pytest.mark.parametrize(("kind", "left"), [("identity", {"花生", "旅行"}), ("restriction", {"苏州", "旅行"}), ("event", {"苏州", "花生"}), ("style", {"苏州", "花生", "旅行"})])  # fmt: skip
def test_spec_11_one_kind_can_be_cleared(kind: str, left: set[str]) -> None:
    person = Person()
    person.tell(home(), peanuts(), say("我去旅行了", dimension="event", object="旅行"))
    receipt = person.act(EraseKind(kind=kind))
    assert {m.object for m in person.state.memories.values()} == left
    assert receipt["erased"]["memories"] == 3 - len(left)
    assert (person.last is None) == (len(left) == 3)


def test_spec_11_clearing_events_takes_no_memory_of_another_kind() -> None:
    person = Person()
    person.tell(home(), say("我去旅行了", dimension="event", object="旅行"))
    person.act(EraseKind(kind="event"))
    (kept,) = person.state.memories.values()
    assert (kept.category, kept.layer) == (Category.FACT, Layer.IDENTITY)


def test_spec_11_deleting_one_memory_reaches_the_raw_turns_outside_the_window() -> None:
    person = Person()
    memory = person.remember(peanuts())
    for number in range(12):
        person.tell(say(f"第{number}句", importance=0.1, at=NOW + number * HOUR))
    person.act(Delete(memory_id=memory.id), list(person.ledger.turns.values()))
    assert all("花生" not in turn.content for turn in person.ledger.turns.values())
