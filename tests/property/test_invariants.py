"""Random lives of one user against the invariants of the specification.

The loop is the real one (decide, commit, apply) over a ledger in a dictionary that enforces versions, operation ids
and frozen rows. What an extractor could propose is generated; the world is small so that things meet.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from hermes_memory.app.commands import (
    AnswerChallenge,
    AnswerConfirmation,
    BringBack,
    Command,
    ConfirmMemory,
    Delete,
    Edit,
    EndIdleSessions,
    EndSession,
    FreezeMemory,
    Maintain,
    MarkAsked,
    RequestUnfreeze,
    Settle,
)
from hermes_memory.app.editing import Reading
from hermes_memory.core.briefing import protects
from hermes_memory.core.candidate import Marker, SpeechAct
from hermes_memory.core.confirmation import Choice
from hermes_memory.core.model import (
    MEANING_FIELDS,
    USER,
    Category,
    EvidenceKind,
    Granularity,
    Lock,
    Memory,
    Polarity,
    Role,
    Scope,
    Source,
    Status,
    Tier,
)
from hermes_memory.core.ranking import Query, in_reach
from hermes_memory.core.rules import Rules
from hermes_memory.core.scope import passing
from hermes_memory.errors import HermesError, MemoryFrozen, NotFound, VersionConflict
from hermes_memory.ports.ledger import Commit, GrantKind
from tests.small_world import DIMENSIONS, Said, affirm, policy, rules, say, vector, words
from tests.tiny_ledger import Person

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]  # ten thousand lives at night

SESSIONS = ("s1", "s2", "s3", "s4")
OBJECTS = {
    "city": ("苏州", "杭州"), "pet": ("猫", "狗"), "allergy": ("花生", "虾"), "seat": ("靠窗", "过道", "前排"),
    "form_of_address": ("老王", "小王"), "need": ("租房", "买房"), "food_taboo": ("香菜", "芹菜"),
    "event": ("旅行",),
}  # fmt: skip
SHORT = 90  # characters of the block: little room beside its head
SMALL: Rules = rules(
    capacity={"working": 5, "longterm": 4, "core": 3, "merge_above": 2}, briefing={"min_budget_chars": SHORT}
)
LIVE = {Status.ACTIVE, Status.REVIEW}
ANSWERS = {"第一个": Choice.OLD, "第二个": Choice.NEW, "都不对": Choice.NEITHER}
HEIGHTS = (Lock.PENDING, Lock.CONFIRMED, Lock.FROZEN)
UNDECIDED = {"capacity", "session_ended", "stale"}  # why a matter of safety may leave without an answer
NEVER_REFUSED = (Settle, EndSession, EndIdleSessions, Maintain, AnswerConfirmation, Delete)


PLAIN: dict[str, Any] = {
    "subject": USER, "polarity": Polarity.POSITIVE, "markers": frozenset(), "source": Source.EXPLICIT,
    "scope": Scope.USER, "speech_act": SpeechAct.STATEMENT, "emotional": False, "importance": 0.7, "role": Role.USER,
}  # fmt: skip
SESSION = st.sampled_from(SESSIONS)
NUMBER = st.integers(0, 30)
MARKERS = st.sampled_from(
    [frozenset(), frozenset({Marker.CORRECTION}), frozenset({Marker.HEDGED}), frozenset({Marker.TEMPORARY})]
)


def has_memories(life: Life) -> bool:
    return bool(life.person.state.memories)


@st.composite
def plain_statements(draw: st.DrawFn) -> dict[str, Any]:
    """A fact told plainly: what most turns that are kept hold."""
    dimension = draw(st.sampled_from(sorted(OBJECTS)))
    return PLAIN | {"dimension": dimension, "object": draw(st.sampled_from(OBJECTS[dimension]))}


@st.composite
def statements(draw: st.DrawFn) -> dict[str, Any]:
    """What the extractor makes of one utterance."""
    dimension = draw(st.sampled_from(sorted(OBJECTS)))
    return {
        "dimension": dimension,
        "object": draw(st.sampled_from(OBJECTS[dimension])),
        "subject": draw(st.sampled_from((USER, USER, USER, "妈妈"))),
        "polarity": draw(st.sampled_from((Polarity.POSITIVE, Polarity.POSITIVE, Polarity.NEGATIVE))),
        "markers": frozenset(draw(st.sets(st.sampled_from(Marker), max_size=2))),
        "source": draw(st.sampled_from((Source.EXPLICIT, Source.EXPLICIT, Source.INFERRED))),
        "scope": draw(st.sampled_from((Scope.USER, Scope.USER, Scope.SCENE, Scope.SESSION))),
        "speech_act": draw(st.sampled_from((*[SpeechAct.STATEMENT] * 4, SpeechAct.OPINION, SpeechAct.JOKE))),
        "emotional": draw(st.sampled_from((False, False, False, True))),
        "importance": draw(st.sampled_from((0.4, 0.6, 0.9))),
        "role": draw(st.sampled_from((*[Role.USER] * 7, Role.ASSISTANT))),
    }


class Life(RuleBasedStateMachine):
    """One user over months: everything they, the clock and an operator can do."""

    archive_vectors = True

    @initialize()
    def wake(self) -> None:
        self.person = Person(replace(policy(SMALL), answers=ANSWERS), archive_vectors=self.archive_vectors)
        self.tokens: list[tuple[str, str]] = []  # of which memory, all that were ever given
        self.said: dict[tuple[str, str], str] = {}
        self.versions: dict[str, int] = {}
        self.number = 0
        self.by_hand = False

    # what is done

    def act(self, command: Command, prepared: Any = None) -> Any:
        """Carry a command out and hold what must hold of every single change."""
        before = dict(self.person.state.memories)
        version = self.person.state.version
        self.open_before = {i: r["status"] for i, r in self.person.state.settings.confirmations.items()}
        self.person.begin()
        result = None
        try:
            result = self.person.act(command, prepared)
        except (
            HermesError
        ) as refused:  # a user's own hand may be refused: by the decision, never by the store
            missing = isinstance(refused, NotFound)
            assert missing or not isinstance(command, NEVER_REFUSED), f"{type(command).__name__}: {refused}"
            assert not isinstance(refused, MemoryFrozen) or self.person.last is None
        commit = self.person.last
        assert self.person.state.version == version + (commit is not None)
        if commit is not None:
            self.check_frozen(before, commit, command)
            self.check_named(before, commit)
            self.check_steps(before, commit)
            self.check_safety(before, commit, command)
            self.check_versions(before, commit)
        return result

    def check_frozen(self, before: dict[str, Memory], commit: Commit, command: Command) -> None:
        """A frozen memory's meaning never changes without a token or an explicit answer."""
        for memory in commit.memories:
            old = before.get(memory.id)
            if old is None or old.lock is not Lock.FROZEN:
                continue
            changed = [name for name in MEANING_FIELDS if getattr(old, name) != getattr(memory, name)]
            if changed:
                assert commit.grants[memory.id] is GrantKind.UNFREEZE
                answered = isinstance(command, AnswerConfirmation) or self.answered(commit)
                assert answered or getattr(command, "unfreeze_token", None)
                assert memory.lock is Lock.FROZEN
                assert memory.unfreeze_reason

    def check_steps(self, before: dict[str, Memory], commit: Commit) -> None:
        """SPEC §5: at most a step of confidence in a turn, never above the cap, and no lock falls."""
        locks = SMALL.locks
        turns = max(1, len(commit.extracted))
        for memory in commit.memories:
            old = before.get(memory.id)
            if old is None or memory.granularity is Granularity.SPAN:
                assert memory.confidence <= locks.cap
                continue
            assert HEIGHTS.index(memory.lock) >= HEIGHTS.index(old.lock)
            assert (
                memory.confidence
                <= max(old.confidence, min(locks.cap, old.confidence + locks.step * turns)) + 1e-9
            )
            places = [(one.session_id, one.message_id) for one in memory.confirmations]
            assert len(places) == len(set(places))
            assert len(memory.confirmations) <= len(old.confirmations) + turns

    def check_safety(self, before: dict[str, Memory], commit: Commit, command: Command) -> None:
        """SPEC §6: what is about safety is never decided automatically."""
        answered = isinstance(command, AnswerConfirmation) or self.answered(commit)
        reasons = {e.memory_id: e.reason for e in commit.audit if e.after in {"superseded", "archived"}}
        for memory in commit.memories:
            old = before.get(memory.id)
            if old is None or not old.safety or old.status not in LIVE or memory.status in LIVE:
                continue
            assert answered or reasons[memory.id] in UNDECIDED, reasons[memory.id]

    def answered(self, commit: Commit) -> bool:
        """Whether an open question found its answer in this commit."""
        known = commit.settings.confirmations if commit.settings else {}
        return any(
            record["status"] == "answered" and self.open_before.get(request_id) == "open"
            for request_id, record in known.items()
        )

    def check_named(self, before: dict[str, Memory], commit: Commit) -> None:
        """What a commit changes the audit names; nothing else is touched."""
        named = {entry.memory_id for entry in commit.audit}
        for memory in commit.memories:
            old = before.get(memory.id)
            statement = old is None or any(
                getattr(old, name) != getattr(memory, name) for name in (*MEANING_FIELDS, "confidence")
            )
            assert not statement or memory.id in named, f"{memory.content} changed silently"
        for memory_id in commit.deleted:
            assert memory_id in named
        untouched = set(before) - {memory.id for memory in commit.memories} - set(commit.deleted)
        assert all(self.person.memory(memory_id) is before[memory_id] for memory_id in untouched)

    def check_versions(self, before: dict[str, Memory], commit: Commit) -> None:
        for memory in commit.memories:
            old = before.get(memory.id)
            floor = self.versions.get(memory.id, 1)
            assert memory.version >= floor
            if old is not None and any(getattr(old, n) != getattr(memory, n) for n in MEANING_FIELDS):
                assert memory.version > old.version
            self.versions[memory.id] = memory.version

    def utter(self, draft: dict[str, Any], session: str, days_ago: float, scene: str | None) -> Said:
        fields = dict(draft)
        negative = fields["polarity"] is Polarity.NEGATIVE
        who = "我" if fields["subject"] == USER else fields["subject"]
        text = (
            f"{who}{'不' if negative else ''}{DIMENSIONS.label(fields['dimension'], 'zh')}{fields['object']}"
        )
        self.number += 1
        said = say(
            text, session=session, at=self.person.now - timedelta(days=days_ago), scene=scene,
            message=f"m{self.number}", turn={"role": fields.pop("role")}, **fields,
        )  # fmt: skip
        self.said[session, said.turn.message_id] = said.turn.content
        return said

    def pick(self, number: int, *locks: Lock) -> Memory | None:
        held = [m for m in self.person.state.memories.values() if not locks or m.lock in locks]
        return held[number % len(held)] if held else None

    @rule(
        drafts=st.lists(statements(), min_size=1, max_size=3),
        session=SESSION,
        days_ago=st.sampled_from((0, 0, 0, 0.001, 3, 100)),
        scene=st.sampled_from((None, None, "dining")),
    )
    def speak(self, drafts: list[dict[str, Any]], session: str, days_ago: float, scene: str | None) -> None:
        said = [self.utter(draft, session, days_ago, scene) for draft in drafts]
        self.person.ingest(*said)
        before = dict(self.person.state.memories)
        self.act(self.person.settle_command(*said))
        self.check_related(before, said)
        self.check_ended(before, said)

    @rule(drafts=st.lists(plain_statements(), min_size=1, max_size=3), session=SESSION)
    def speak_plainly(self, drafts: list[dict[str, Any]], session: str) -> None:
        self.speak_of(drafts, session)

    @precondition(has_memories)
    @rule(number=NUMBER, session=SESSION, markers=MARKERS, inferred=st.booleans())
    def repeat(self, number: int, session: str, markers: frozenset[Marker], inferred: bool) -> None:
        """Say what is remembered once more."""
        if draft := self.draft_of(number):
            draft |= {"markers": markers, "source": Source.INFERRED if inferred else Source.EXPLICIT}
            self.speak_of([draft], session)

    @precondition(has_memories)
    @rule(number=NUMBER, session=SESSION, markers=MARKERS, days_ago=st.sampled_from((0, 0, 0, 50)))
    def contradict(self, number: int, session: str, markers: frozenset[Marker], days_ago: float) -> None:
        """Say another value of a single-valued dimension, or the opposite."""
        if draft := self.draft_of(number):
            others = [value for value in OBJECTS[draft["dimension"]] if value != draft["object"]]
            if DIMENSIONS.single(draft["dimension"]):
                draft["object"] = others[number % len(others)]
            else:
                draft["polarity"] = draft["polarity"].opposite
            self.speak_of([draft | {"markers": markers}], session, days_ago)

    def draft_of(self, number: int) -> dict[str, Any] | None:
        """A plain statement of a memory that lives, as far as the small world knows its object."""
        held = [
            m for m in self.person.state.memories.values()
            if m.status in LIVE and m.object in OBJECTS.get(m.dimension, ())
        ]  # fmt: skip
        if not held:
            return None
        memory = held[number % len(held)]
        return PLAIN | {
            "subject": memory.subject, "dimension": memory.dimension, "object": memory.object,
            "polarity": memory.polarity,
        }  # fmt: skip

    def speak_of(self, drafts: list[dict[str, Any]], session: str, days_ago: float = 0) -> None:
        said = [self.utter(draft, session, days_ago, None) for draft in drafts]
        self.person.ingest(*said)
        before = dict(self.person.state.memories)
        self.act(self.person.settle_command(*said))
        self.check_related(before, said)
        self.check_ended(before, said)

    def check_ended(self, before: dict[str, Memory], said: list[Said]) -> None:
        """What is said of the moment, guessed, or older than what is known ends nothing that lasts (SPEC §2, §4.1.7)."""
        commit = self.person.last
        if commit is None or self.answered(commit):
            return
        newest = max(one.turn.created_at for one in said)
        spoken = [candidate for one in said for candidate in one.candidates]
        for memory in commit.memories:
            old = before.get(memory.id)
            if old is None or memory.status is not Status.SUPERSEDED or old.status is Status.SUPERSEDED:
                continue
            assert newest >= old.stated_at
            assert old.scope is not Scope.USER or not all(passing(one) for one in spoken)
            if old.category is not Category.STATE and old.source is Source.EXPLICIT:
                assert any(one.source is Source.EXPLICIT for one in spoken)

    def check_related(self, before: dict[str, Memory], said: list[Said]) -> None:
        """A settlement changes the sense only of what speaks of the same; the clock and the caps say so."""
        assert self.person.last is not None
        housekeeping = {"capacity", "session_ended", "core_full", "merged", "unmerged"}
        kept = {e.memory_id for e in self.person.last.audit if e.reason in housekeeping}
        topics = {(candidate.subject, candidate.dimension) for one in said for candidate in one.candidates}
        texts = {candidate.content for one in said for candidate in one.candidates}
        objects = {(candidate.subject, candidate.object) for one in said for candidate in one.candidates}
        spoken_of = {
            m.id
            for m in before.values()
            if (m.subject, m.dimension) in topics
            or m.content in texts
            or any(m.subject == who and what in m.object for who, what in objects)
        }
        spoken_of |= {
            before[i].rival_of or i for i in spoken_of
        }  # and what it opposes with a rival said again
        for memory in self.person.last.memories:
            if memory.id in before and memory.id not in kept:  # a rival goes with what it opposes
                assert memory.id in spoken_of or before[memory.id].rival_of in spoken_of

    @precondition(has_memories)
    @rule(number=NUMBER, session=SESSION)
    def affirm_by_words(self, number: int, session: str) -> None:
        if memory := self.pick(number):
            self.number += 1
            said = affirm(memory, session=session, at=self.person.now, message=f"m{self.number}")
            self.said[session, said.turn.message_id] = said.turn.content
            self.person.ingest(said)
            self.act(self.person.settle_command(said))

    @precondition(has_memories)
    @rule(number=NUMBER, session=SESSION)
    def confirm_in_the_panel(self, number: int, session: str) -> None:
        if memory := self.pick(number):
            self.act(ConfirmMemory(memory_id=memory.id, session_id=session))

    @precondition(has_memories)
    @rule(number=NUMBER)
    def freeze(self, number: int) -> None:
        if memory := self.pick(number, Lock.PENDING, Lock.CONFIRMED):
            self.act(FreezeMemory(memory_id=memory.id, reason="by hand"))

    @precondition(has_memories)
    @rule(number=NUMBER, draft=statements(), verified=st.booleans(), scope=st.sampled_from((None, *Scope)))
    def edit(self, number: int, draft: dict[str, Any], verified: bool, scope: Scope | None) -> None:
        memory = self.pick(number)
        if memory is None:
            return
        token = self.unfreeze(memory) if verified and memory.lock is Lock.FROZEN else None
        said = self.utter(draft | {"role": Role.USER}, "panel", 0, None)
        read = Reading(vector(said.turn.content), said.candidates[0])
        self.by_hand = True
        before = self.person.memory(memory.id)
        command = self.person_edit(before, said.turn.content, token, scope)
        self.act(command, read)
        if token is not None:
            self.tokens.append((memory.id, token))
            again = self.person.memory(memory.id)
            self.act(self.person_edit(again, said.turn.content, token, None), read)
            assert self.person.memory(memory.id) == again  # a token allows one change
        if memory.lock is Lock.FROZEN and token is None:
            assert self.person.memory(memory.id) == before

    def person_edit(self, memory: Memory, content: str, token: str | None, scope: Scope | None) -> Command:
        return Edit(
            memory_id=memory.id, expected_version=memory.version, content=content, unfreeze_token=token,
            scope=scope.value if scope else None,
        )  # fmt: skip

    def unfreeze(self, memory: Memory) -> str | None:
        sessions = list(self.person.state.sessions)
        request = RequestUnfreeze(memory_id=memory.id, reason="mine", source_session_id=sessions[0])
        challenge = self.act(request, "code")
        answer = AnswerChallenge(memory_id=memory.id, challenge_id=challenge["challenge_id"], answer="code")
        return str(self.act(answer, "token")["token"])

    @precondition(lambda self: bool(self.person.state.settings.confirmations))
    @rule(number=NUMBER, choice=st.sampled_from(Choice))
    def answer(self, number: int, choice: Choice) -> None:
        requests = list(self.person.state.settings.confirmations.values())
        request = requests[number % len(requests)]
        self.by_hand |= choice is Choice.BOTH
        self.act(AnswerConfirmation(request_id=request["id"], choice=choice))
        if self.person.last is not None:
            evicted = {e.memory_id for e in self.person.last.audit if e.reason == "capacity"}
            assert {m.id for m in self.person.last.memories} <= set(request["memory_ids"]) | evicted

    @precondition(lambda self: bool(self.person.state.settings.confirmations))
    @rule(
        number=NUMBER, session=SESSION, side=st.sampled_from((0, 1)), waits=st.sampled_from((0, 0.001, 1)),
        markers=MARKERS, emotional=st.booleans(), words_=st.sampled_from((None, None, *ANSWERS, "嗯嗯")),
    )  # fmt: skip
    def answer_in_words(
        self, number: int, session: str, side: int, waits: float, markers: frozenset[Marker], emotional: bool, words_: str | None,
    ) -> None:  # fmt: skip
        """A question is put, and then something is said: only plain words, said there and later, answer it."""
        person = self.person
        requests = [r for r in person.state.settings.confirmations.values() if r["status"] == "open"]
        if not requests:
            return
        request = requests[number % len(requests)]
        asked_in = SESSIONS[number % 4]
        self.act(MarkAsked(session_id=asked_in, request_id=request["id"]))
        person.pass_time(days=waits)
        self.number += 1
        memory = person.memory(request["memory_ids"][side])
        if words_ is not None:
            said = say(words_, session=session, at=person.now, message=f"m{self.number}")
            said = Said(said.turn)
            self.said[session, said.turn.message_id] = words_
        else:
            draft = PLAIN | {
                "subject": memory.subject, "dimension": memory.dimension, "object": memory.object,
                "polarity": memory.polarity, "markers": markers, "emotional": emotional,
            }  # fmt: skip
            said = self.utter(draft, session, 0, None)
        person.ingest(said)
        self.act(person.settle_command(said))
        after = person.state.settings.confirmations[request["id"]]
        if after["answer"] is None:
            return
        assert (session, waits > 0) == (asked_in, True)
        if words_ is not None:
            assert ANSWERS[words_] == after["answer"]
        else:
            assert not emotional and not markers & {Marker.TEMPORARY, Marker.HEDGED}

    @precondition(has_memories)
    @rule(number=NUMBER, other=NUMBER, late=st.booleans())
    def misuse_a_token(self, number: int, other: int, late: bool) -> None:
        """A token that was spent, is another memory's, or is too old opens nothing."""
        memory = self.pick(number, Lock.FROZEN)
        if memory is None:
            return
        given = [(owner, token) for owner, token in self.tokens if owner != memory.id]
        if late:
            self.tokens.append((memory.id, token := str(self.unfreeze(memory))))
            self.person.pass_time(minutes=6)
            given = [(memory.id, token)]
        if not given:
            return
        token = given[other % len(given)][1]
        read = Reading(vector("别的"), None)
        before = self.person.memory(memory.id)
        self.act(self.person_edit(before, "别的", token, None), read)
        assert self.person.memory(memory.id) == before

    @precondition(has_memories)
    @rule()
    def bring_back_everything(self) -> None:
        """A caller that asks for all of the archive gets nothing that was put aside or is contradicted."""
        state = self.person.state
        archived = [m for m in state.memories.values() if m.status is Status.ARCHIVED]
        self.act(BringBack(memory_ids=tuple(m.id for m in archived)))
        for old in archived:
            memory = self.person.memory(old.id)
            if memory.status in LIVE:
                assert not old.merged_into and not old.rival_of
                assert old.history[-1].reason in {"capacity", "stale", "stale_pending"}

    @precondition(has_memories)
    @rule(number=NUMBER)
    def recall_from_the_archive(self, number: int) -> None:
        if memory := self.pick(number):
            found = self.person.recalled(memory.content)
            self.act(BringBack(memory_ids=found.returned))

    @rule(session=SESSION)
    def end_session(self, session: str) -> None:
        self.act(EndSession(session_id=session))

    @rule(days=st.sampled_from((0.001, 0.1, 8, 40, 200)))
    def wait(self, days: float) -> None:
        self.person.pass_time(days=days)
        self.act(EndIdleSessions())

    @rule()
    def night(self) -> None:
        self.act(Maintain(now=self.person.now))
        self.act(Maintain(now=self.person.now))
        assert self.person.last is None  # a second night changes nothing

    @precondition(has_memories)
    @rule(number=NUMBER)
    def erase(self, number: int) -> None:
        memory = self.pick(number)
        if memory is None:
            return
        self.by_hand = True
        self.act(Delete(memory_id=memory.id))
        stored = self.person.ledger
        assert memory.id not in repr((list(stored.memories.values()), stored.settings))
        quotes = {piece.quote for piece in memory.evidence}
        assert not any(quote in turn.content for turn in self.person.state.turns.values() for quote in quotes)
        held = stored.memories.values()
        others = [m.content for m in held if m.granularity is Granularity.ATOMIC]
        if not any(memory.content in content for content in others):
            records = [m for m in held if m.granularity is Granularity.SPAN]
            assert memory.content not in repr(records)
        told = [p.text for s in self.person.state.sessions.values() for p in s.summary.pieces]
        assert not any(word in text for text in told for word in (memory.object, *quotes))

    @rule()
    def restart(self) -> None:
        before = self.person.state
        self.person.restart()
        after = self.person.state
        for name in ("version", "memories", "live", "always", "rivals", "settings", "sessions", "pending"):
            assert getattr(after, name) == getattr(before, name), name
        assert set(after.shelf.vectors.ids) == set(before.shelf.vectors.ids)

    @precondition(lambda self: self.person.last is not None)
    @rule()
    def replay(self) -> None:
        """The same operation again changes nothing and answers the same; another on the old version is refused."""
        commit, ledger = self.person.last, self.person.ledger
        assert commit is not None
        before = (ledger.version, dict(ledger.memories), ledger.settings, len(ledger.audit))
        receipt = ledger.commit(commit)
        assert (receipt.replayed, receipt.result) == (True, commit.result)
        try:
            ledger.commit(replace(commit, operation_id="another"))
        except VersionConflict as conflict:
            assert conflict.actual > conflict.expected
        else:
            raise AssertionError("two commits on one version")
        assert before == (ledger.version, dict(ledger.memories), ledger.settings, len(ledger.audit))

    # what holds at all times

    @invariant()
    def every_memory_has_the_users_own_words(self) -> None:
        for memory in self.person.state.memories.values():
            assert memory.evidence
            for piece in memory.evidence:
                assert piece.role == "user"
                assert piece.quote.strip()
                if piece.kind is EvidenceKind.SAID:
                    turn = self.said[piece.session_id, piece.message_id]
                    assert turn[piece.start : piece.end] == piece.quote

    @invariant()
    def no_tier_exceeds_its_cap(self) -> None:
        live = [m for m in self.person.state.memories.values() if m.status in LIVE]
        for tier in Tier:
            assert sum(memory.tier is tier for memory in live) <= SMALL.capacity.of(tier)

    @invariant()
    def locks_tiers_and_links_fit_together(self) -> None:
        memories = self.person.state.memories
        for memory in memories.values():
            assert memory.lock is not Lock.UNFROZEN  # what is opened is closed in the same commit
            assert (memory.tier is Tier.CORE) == (memory.lock is Lock.FROZEN)
            assert (memory.lock, memory.status) != (Lock.FROZEN, Status.ARCHIVED)  # it could never come back
            assert memory.rival_of != memory.id
            assert memory.rival_of is None or memory.rival_of in memories
            assert (memory.archived_at is not None) == (memory.status is Status.ARCHIVED)
            assert 0 <= memory.confidence <= 1

    @invariant()
    def merged_records_hold_their_parts_and_nothing_else(self) -> None:
        """SPEC §3.2: a merged record keeps its parts addressable and is no more than they are."""
        memories = self.person.state.memories
        parts: dict[str, set[str]] = {}
        for memory in memories.values():
            if memory.merged_into:
                assert memory.status is Status.ARCHIVED
                assert memories[memory.merged_into].granularity is Granularity.SPAN
                parts.setdefault(memory.merged_into, set()).add(memory.id)
        for span in (m for m in memories.values() if m.granularity is Granularity.SPAN):
            listed = span.attributes["parts"]
            assert {part["id"] for part in listed} == parts[span.id]
            assert len(listed) > 1
            assert all(memories[part["id"]].content == part["content"] for part in listed)
            for part in (memories[part["id"]] for part in listed):
                for name in ("subject", "dimension", "polarity", "scope", "scene", "category", "layer"):
                    assert getattr(part, name) == getattr(span, name)
                assert not part.safety
                assert part.valid_to is None
            assert span.lock is not Lock.FROZEN

    @invariant()
    def one_value_stands_unless_the_user_said_both(self) -> None:
        """SPEC §6: a single-valued dimension has one current side; an edit, an erasure or "both" may allow two."""
        if self.by_hand:
            return
        standing: dict[tuple[str, str], str] = {}
        for memory in self.person.state.memories.values():
            current = (
                memory.status in LIVE and memory.rival_of is None and memory.polarity is Polarity.POSITIVE
            )
            lasting = memory.scope is Scope.USER and memory.layer is not None
            if current and lasting and DIMENSIONS.single(memory.dimension):
                other = standing.setdefault((memory.subject, memory.dimension), memory.object)
                assert other == memory.object

    @invariant()
    def the_mirror_is_the_ledger(self) -> None:
        state, ledger = self.person.state, self.person.ledger
        assert state.version == ledger.version
        assert state.memories == ledger.memories
        assert (
            set(state.live)
            == set(state.shelf.vectors.ids)
            == {m.id for m in state.memories.values() if m.status in LIVE}
        )

    @invariant()
    def the_block_drops_no_restriction_and_exceeds_its_budget_for_nothing_else(self) -> None:
        person = self.person
        session, scene = SESSIONS[self.number % 4], (None, "dining")[self.number % 2]
        answer = person.recall("我住哪", session_id=session, scene=scene, budget_chars=SHORT)
        query = Query(
            text="",
            vector=vector(""),
            words=words(""),
            session_id=session,
            scene=scene,
            as_of=person.now,
            top_k=1,
        )
        for memory in person.state.memories.values():
            required = protects(memory) and (memory.subject == USER or memory.safety)
            standing = memory.status is Status.ACTIVE and (memory.rival_of is None or memory.safety)
            if required and standing and in_reach(memory, query):
                assert memory.object in answer["context"]
                assert any(record["id"] == memory.id for record in answer["memories"])
        assert answer["over_budget"] == (len(answer["context"]) > SHORT)

    @invariant()
    def a_summary_says_what_its_conversation_said_and_ends_with_it(self) -> None:
        for session in self.person.state.sessions.values():
            assert not (session.ended and session.summary.pieces)
            for piece in session.summary.pieces:
                turn = self.person.ledger.turns[session.id, piece.turn]
                assert piece.text in self.said[session.id, turn.message_id]

    @invariant()
    def what_is_asked_is_open(self) -> None:
        memories = self.person.state.memories
        for record in self.person.state.settings.confirmations.values():
            assert set(record["memory_ids"]) <= set(memories)


Life.TestCase.settings = settings(stateful_step_count=35)
TestLife = Life.TestCase
