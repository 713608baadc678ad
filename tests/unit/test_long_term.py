"""A user whose archive is searched by an index lives and recalls like one who holds it all (ARCHITECTURE §3)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, cast

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from hermes_memory.adapters.exact_index import ExactIndex
from hermes_memory.app.commands import (
    BringBack,
    Command,
    Delete,
    EndSession,
    EraseKind,
    FreezeMemory,
    Maintain,
    Recall,
)
from hermes_memory.app.editing import Reading
from hermes_memory.app.handlers import decide
from hermes_memory.app.recall import Found, Nominated, Recalled, assemble, find, looked_further, probe
from hermes_memory.app.state import UserState, own_words
from hermes_memory.core.asking import Asked, Period
from hermes_memory.core.candidate import SAID
from hermes_memory.core.model import LIVE, Category, Granularity, Memory, Polarity, Status
from hermes_memory.core.nominations import narrowed
from hermes_memory.ports.embedder import Vector
from hermes_memory.ports.index import Document, Hit, VectorIndex
from hermes_memory.runtime.long_term import LongTerm, SearchRules
from hermes_memory.testing.builders import EMBEDDER, KEY
from tests.small_world import HOUR, NOW, policy, rules, say, vector, words
from tests.tiny_ledger import Person

DRINKS = ("红茶", "绿茶", "咖啡", "豆浆", "果汁", "奶昔", "可乐")
PETS = ("猫", "狗", "兔", "鱼", "龟", "鸟")
ENOUGH = SearchRules(nominations=1000, timeout_s=5.0, failures=3, pause_s=5.0)
ALWAYS = replace(ENOUGH, always=True)
HIDDEN = policy(rules(capacity={"working": 2, "merge_above": 50}, fusion={"words": 0.0}))
SMALL = policy(
    rules(capacity={"working": 4, "longterm": 4, "core": 2, "merge_above": 2}, recall={"threshold": 0.3})
)


def documents(person: Person) -> Iterable[Document]:
    """What an index is told of: all that lives or rests."""
    for memory in person.ledger.memories.values():
        stored = person.ledger.vectors.get(memory.id)
        if stored is not None and (memory.status in LIVE or memory.status is Status.ARCHIVED):
            told = (*words(memory.content), *own_words(memory, words))
            yield Document(memory.id, told, stored, archived=memory.status is Status.ARCHIVED)


@dataclass
class Around:
    """As much of a host's surroundings as a search needs."""

    person: Person
    counted: list[str] = field(default_factory=list)

    @property
    def ledger(self) -> Around:
        return self

    @property
    def clock(self) -> Around:
        return self

    @property
    def metrics(self) -> Around:
        return self

    def now(self) -> datetime:
        return self.person.now

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        self.counted.append(":".join([name, *labels.values()]))

    async def documents(self, key: Any, memory_ids: Sequence[str]) -> list[tuple[Memory, Vector]]:
        assert key == KEY
        return self.person.ledger.documents(memory_ids)


def exact(person: Person) -> VectorIndex:
    """An index that is up to date."""
    index = ExactIndex()
    asyncio.run(index.put(KEY, list(documents(person))))
    return cast("VectorIndex", index)


def searched(
    person: Person, wanted: Recall, index: VectorIndex | None = None, with_rules: SearchRules = ENOUGH
) -> Recalled:
    """A recall as an awake user makes it."""
    state, around = person.state, Around(person)
    found = find(state, wanted, person.policy, person.now)
    if found.lacking or with_rules.always:
        nominated = nominate(person, found, index or exact(person), with_rules, around)
        found = looked_further(
            find(state, wanted, person.policy, person.now, nominated=nominated), 0.0, found
        )
    return assemble(state, wanted, found, person.policy, person.now)


def nominate(
    person: Person, found: Found, index: VectorIndex, with_rules: SearchRules, around: Around
) -> Nominated:
    asked, rests = probe(person.state, found.query, person.policy), person.state.elsewhere
    nominated = asyncio.run(LongTerm(index, with_rules).nominate(KEY, asked, rests, cast("Any", around)))
    assert nominated is not None, around.counted
    return nominated


def asking(text: str, **over: Any) -> Recall:
    return Recall(query=text, vector=vector(text), words=words(text), **over)


def told(person: Person, dimension: str, objects: Sequence[str], before: str = "我爱喝") -> None:
    for name in objects:
        text = f"{before}{name}"
        person.tell(say(text, dimension=dimension, object=name, at=person.now, message=f"{dimension}-{name}"))
        person.pass_time(minutes=1)


def named(person: Person, name: str) -> Memory:
    (found,) = [
        m for m in person.state.memories.values() if m.object == name and m.granularity is Granularity.ATOMIC
    ]
    return found


def span_in(person: Person) -> Memory:
    (span,) = [m for m in person.state.memories.values() if m.granularity is Granularity.SPAN]
    return span


def with_an_archive(**over: Any) -> tuple[Person, Memory]:
    """A person whose first drink was evicted; its vector is elsewhere."""
    person = Person(HIDDEN, archive_vectors=False, **over)
    told(person, "drink", DRINKS[:3])
    return person, named(person, "红茶")


def merged(archive_vectors: bool = False) -> Person:
    """A person whose drinks are one record."""
    person = Person(
        policy(rules(capacity={"working": 5, "longterm": 50, "core": 3})), archive_vectors=archive_vectors
    )
    told(person, "drink", DRINKS)
    return person


def all_that_lives_has_its_vector(state: UserState) -> bool:
    return set(state.live) == set(state.shelf.vectors.ids)


# the state


def test_what_is_archived_leaves_its_vector_to_the_ledger_and_the_index() -> None:
    person, evicted = with_an_archive()
    for state in (person.state, restarted(person)):
        assert (state.elsewhere(evicted.id), state.vector(evicted.id)) == (True, None)
        assert len(state.archive.vectors) == 0
        assert evicted.id in state.archive.words
        assert not state.elsewhere(named(person, "咖啡").id)
        assert all_that_lives_has_its_vector(state)


def restarted(person: Person) -> UserState:
    person.restart()
    return person.state


def test_a_state_without_them_costs_so_much_less() -> None:
    costs = []
    for kept in (True, False):
        person = Person(HIDDEN, archive_vectors=kept)
        told(person, "drink", DRINKS)
        assert len(person.state.resting) == 5
        costs.append(person.state.cost_bytes())
    assert costs[0] - costs[1] == 5 * EMBEDDER.dimension * 4


def test_a_memory_that_never_had_a_vector_is_not_elsewhere() -> None:
    person, evicted = with_an_archive()
    del person.ledger.vectors[evicted.id]
    assert not restarted(person).elsewhere(evicted.id)
    person.act(BringBack(memory_ids=(evicted.id,)))
    assert person.memory(evicted.id).status is Status.ACTIVE
    assert person.state.vector(evicted.id) is None


def test_a_vector_that_the_ledger_lost_is_done_without() -> None:
    person, evicted = with_an_archive()
    del person.ledger.vectors[evicted.id]
    person.act(BringBack(memory_ids=(evicted.id,)))
    assert person.fetched == {evicted.id: None}
    assert person.memory(evicted.id).status is Status.ACTIVE
    assert person.state.vector(evicted.id) is None
    held = [memory.id for memory in person.state.live.values() if memory.id != evicted.id]
    assert [record["id"] for record in person.recall("我爱喝红茶")["memories"]] == []
    assert [record["id"] for record in person.recall("我爱喝咖啡")["memories"]] == held


def test_the_receipt_of_an_erasure_counts_the_vectors_that_are_elsewhere() -> None:
    person, evicted = with_an_archive()
    receipt = person.act(Delete(memory_id=evicted.id))
    assert (receipt["erased"]["memories"], receipt["erased"]["vectors"]) == (1, 1)
    assert not person.state.elsewhere(evicted.id)
    receipt = person.act(EraseKind(kind="preference"))
    assert receipt["erased"]["vectors"] == receipt["erased"]["memories"] == 2


# decisions say what they lack


def test_a_decision_that_lacks_a_vector_says_so_and_changes_nothing() -> None:
    person, evicted = with_an_archive()
    desk = person.desk("back")
    first = decide(person.state, BringBack(memory_ids=(evicted.id,)), desk)
    assert first.lacking == {evicted.id}
    fetched = {evicted.id: person.ledger.vectors[evicted.id]}
    second = decide(person.state, BringBack(memory_ids=(evicted.id,)), replace(desk, fetched=fetched))
    assert (second.lacking, second.commit) == (frozenset(), first.commit)


def test_spec_4_3_what_comes_back_has_its_vector_at_once_and_after_a_crash() -> None:
    """A crash between the commit and the memory's place in the actor: the next start reads it as live."""
    person, evicted = with_an_archive()
    decision = person.decide(BringBack(memory_ids=(evicted.id,)))
    assert decision.commit is not None
    person.ledger.commit(decision.commit)  # and here the host dies
    assert all_that_lives_has_its_vector(restarted(person))
    person, evicted = with_an_archive()
    person.act(BringBack(memory_ids=(evicted.id,)))
    assert np.array_equal(cast("Vector", person.state.vector(evicted.id)), person.ledger.vectors[evicted.id])
    assert all_that_lives_has_its_vector(person.state)
    assert len(person.state.archive.vectors) == 0


def test_spec_4_1_8_what_is_said_again_brings_the_vector_of_its_new_words() -> None:
    person, evicted = with_an_archive()
    person.pass_time(days=1)
    person.tell(say("我爱喝红茶", dimension="drink", object="红茶", session="s2", at=person.now))
    assert person.memory(evicted.id).status is Status.ACTIVE
    assert person.fetched == {}
    assert all_that_lives_has_its_vector(person.state)


@pytest.mark.parametrize("how", ["deleted", "edited", "disputed", "erased"])
def test_spec_3_2_a_record_is_mended_as_if_the_parts_were_here(how: str) -> None:
    """Its vector is the middle of its parts; what leaves it stands for itself, with a vector."""
    found = []
    for kept in (True, False):
        person = merged(archive_vectors=kept)
        span, part = span_in(person), named(person, "绿茶")
        person.pass_time(days=1)
        if how == "deleted":
            person.act(Delete(memory_id=part.id))
        elif how == "edited":
            person.edit(
                part, Reading(vector("我爱喝白茶"), None), content="我爱喝白茶", scope="scene", scene="x"
            )
        elif how == "disputed":
            person.tell(
                say(
                    "我不喝绿茶了", dimension="drink", object="绿茶", polarity=Polarity.NEGATIVE,
                    session="s2", at=person.now,
                )
            )  # fmt: skip
        else:
            for drink in DRINKS[1:6]:
                person.act(Delete(memory_id=named(person, drink).id))
        assert all_that_lives_has_its_vector(person.state)
        assert all_that_lives_has_its_vector(restarted(person))
        found.append({i: person.state.vector(i) for i in sorted(person.state.live)})
        assert (span.id in person.state.live) is (how != "erased")
    assert list(found[0]) == list(found[1])
    for one, other in zip(found[0].values(), found[1].values(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_is_found_by_other_words_now_is_told_to_the_index() -> None:
    """Though neither its vector nor its status has changed."""
    person = Person()
    memory = person.remember(say("我爱喝红茶", dimension="drink", object="红茶"))
    person.pass_time(days=1)
    person.tell(say("红茶我爱喝", dimension="drink", object="红茶", session="s2", at=person.now))
    assert person.last is not None
    assert [(entry.op, entry.memory_id) for entry in person.last.outbox] == [("put", memory.id)]
    person.act(FreezeMemory(memory_id=memory.id, reason="x"))
    assert person.last.outbox == ()


# recall


def test_spec_4_3_a_hit_of_the_archive_is_found_through_the_index() -> None:
    person, evicted = with_an_archive()
    wanted = asking("我爱喝红茶")
    alone = find(person.state, wanted, person.policy, person.now)
    assert (alone.lacking, alone.archived) == (True, frozenset())
    answer = searched(person, wanted)
    assert answer.returned == (evicted.id,)
    assert [record["id"] for record in answer.answer["memories"]] == [evicted.id]
    assert list(answer.answer["timings_ms"]) == ["index", "rank", "assemble"]
    assert answer.answer["degraded"] == []


def test_spec_4_3_the_index_is_not_asked_while_active_memories_answer_or_nothing_rests() -> None:
    person, _ = with_an_archive()
    assert not find(person.state, asking("我爱喝咖啡"), person.policy, person.now).lacking
    assert not find(Person(archive_vectors=False).state, asking("茶"), person.policy, person.now).lacking


def test_what_the_index_names_counts_only_where_the_state_knows_it_at_rest() -> None:
    """A stale index: it still has what was erased, holds as archived what lives, and misses nothing that matters."""
    person, evicted = with_an_archive()
    stale = exact(person)
    ghost = Document("mem_ghost", words("我爱喝红茶"), vector("我爱喝红茶"), archived=True)
    lives = Document(named(person, "咖啡").id, words("我爱喝红茶"), vector("我爱喝红茶"), archived=True)
    asyncio.run(stale.put(KEY, [ghost, lives]))
    assert searched(person, asking("我爱喝红茶"), stale).returned == (evicted.id,)
    person.act(Delete(memory_id=evicted.id))
    assert not find(person.state, asking("我爱喝红茶"), person.policy, person.now).lacking
    told(person, "drink", ["可可"])  # so that something rests again
    answer = searched(person, asking("我爱喝红茶"), stale)
    assert answer.returned == ()
    assert "红茶" not in answer.answer["context"]


def test_what_ceased_to_rest_after_the_index_answered_is_left_out() -> None:
    person, evicted = with_an_archive()
    wanted = asking("我爱喝红茶")
    first = find(person.state, wanted, person.policy, person.now)
    nominated = nominate(person, first, exact(person), ENOUGH, Around(person))
    assert list(nominated.vectors) == [evicted.id]
    person.act(Delete(memory_id=evicted.id))
    found = find(person.state, wanted, person.policy, person.now, nominated=nominated)
    assert (found.archived, found.hits) == (frozenset(), [])


def test_spec_7_6_parts_of_later_records_are_found_through_the_index() -> None:
    answers = []
    for kept in (True, False):
        person = merged(archive_vectors=kept)
        early = NOW + timedelta(minutes=2, seconds=30)  # before all of its parts were said
        person.pass_time(days=1)
        wanted = asking("我爱喝绿茶", as_of=early)
        assert find(person.state, wanted, person.policy, person.now).lacking is not kept
        answers.append(plain(searched(person, wanted, None, ENOUGH)))
    assert answers[0]["context"]
    assert_same(answers[0], answers[1])


def plain(recalled: Recalled) -> dict[str, Any]:
    return {name: value for name, value in recalled.answer.items() if name != "timings_ms"} | {
        "shown": recalled.shown,
        "returned": recalled.returned,
    }


def assert_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    scores = [[record.pop("score") for record in answer["memories"]] for answer in (one, other)]
    parts = [[record.pop("score_parts") for record in answer["memories"]] for answer in (one, other)]
    assert one == other
    assert scores[0] == pytest.approx(scores[1], abs=1e-3)
    for ours, theirs in zip(*parts, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-3)


class Half(ExactIndex):
    """An index that answers some ways only."""

    def __init__(self, person: Person, *ways: str) -> None:
        super().__init__()
        self.ways = ways
        asyncio.run(self.put(KEY, list(documents(person))))

    async def near(self, *args: Any, **more: Any) -> list[Hit]:
        return await super().near(*args, **more) if "near" in self.ways else []

    async def match(self, *args: Any, **more: Any) -> list[Hit]:
        return await super().match(*args, **more) if "match" in self.ways else []


@pytest.mark.parametrize(
    ("ways", "asked", "found"),
    [
        (("near",), None, True),
        (("match",), None, True),
        ((), None, False),
        ((), Asked(entities=("红茶",)), True),
        ((), Asked(entities=("绿豆",)), False),
        ((), Asked(periods=(Period(NOW, NOW + timedelta(seconds=30)),), about_past=True), True),
        ((), Asked(periods=(Period(NOW, NOW + timedelta(seconds=30)),)), False),
        ((), Asked(periods=(Period(NOW + HOUR, NOW + 2 * HOUR),), about_past=True), False),
    ],
)
def test_spec_7_1_meaning_words_a_name_or_the_time_asked_for_nominate(
    ways: tuple[str, ...], asked: Asked | None, found: bool
) -> None:
    person, evicted = with_an_archive()
    index = cast("VectorIndex", Half(person, *ways))
    recalled = searched(person, asking("我爱喝红茶", asked=asked), index)
    assert recalled.returned == ((evicted.id,) if found else ())


def test_a_query_without_words_is_asked_by_meaning_only() -> None:
    person, evicted = with_an_archive()
    wanted = replace(asking("我爱喝红茶"), words=())
    assert searched(person, wanted).returned == (evicted.id,)
    assert searched(person, wanted, cast("VectorIndex", Half(person, "match"))).returned == ()


@pytest.mark.parametrize(("most", "by_name"), [(1, False), (2, True)])
def test_no_more_are_nominated_than_the_rules_say(most: int, by_name: bool) -> None:
    person = Person(HIDDEN, archive_vectors=False)
    told(person, "drink", DRINKS)
    asked = Asked(entities=("爱",)) if by_name else None  # all hold it
    found = find(person.state, asking("我爱喝红茶", asked=asked), person.policy, person.now)
    index = cast("VectorIndex", Half(person) if by_name else Half(person, "near"))
    nominated = nominate(person, found, index, replace(ENOUGH, nominations=most), Around(person))
    last_said = [named(person, "果汁").id, named(person, "豆浆").id]
    assert list(nominated.vectors) == (last_said if by_name else [named(person, "红茶").id])


# what is looked at beside the nominations (core.nominations)


def narrow(person: Person, text: str, *nominated: str) -> set[str]:
    """The objects that are ranked when these are nominated."""
    query = find(person.state, asking(text), person.policy, person.now).query
    ids = [named(person, one).id for one in nominated]
    shelf = narrowed(person.state.shelf, query, ids, person.policy.rules.fusion)
    return {person.memory(memory_id).object for memory_id in shelf.vectors.ids}


def test_a_slot_that_is_called_for_is_ranked_whatever_was_nominated() -> None:
    person = Person()
    told(person, "pet", PETS[:2], "我养")
    person.tell(say("我住在苏州", object="苏州", at=person.now))
    assert narrow(person, "天气", "猫") == {"猫"}
    assert narrow(person, "你知道我住哪吗", "猫") == {"猫", "苏州"}


def test_what_was_said_beside_a_nominated_episode_is_ranked_with_its_neighbours() -> None:
    person = Person()
    episode: dict[str, Any] = {
        "dimension": SAID,
        "predicate": SAID,
        "category": Category.EVENT,
        "layer": None,
    }
    for name in (*"abcdefgh", "x"):
        session = "s2" if name == "x" else "s1"
        said = say(
            f"我说过{name}", object=name, session=session, message=f"e-{name}", at=person.now, **episode
        )
        person.tell(said)
        person.pass_time(minutes=1)
    assert narrow(person, "天气", "d") == set("abcdefgh")
    assert narrow(person, "天气", "a") == set("abcde")  # two turns on, and two more that lend them their odds
    assert narrow(person, "天气", "x") == {"x"}


# both live the same life


@dataclass
class Twins:
    """One who holds the archive and one whose archive is in an index: whatever is done is done to both."""

    one: Person = field(default_factory=lambda: Person(SMALL))
    other: Person = field(default_factory=lambda: Person(SMALL, archive_vectors=False))

    @property
    def both(self) -> tuple[Person, Person]:
        return self.one, self.other

    def do(self, act: Callable[[Person], object]) -> None:
        for person in self.both:
            person.begin()
            act(person)
        ours, theirs = (person.last for person in self.both)
        assert (ours is None) == (theirs is None)
        if ours is not None and theirs is not None:
            assert replace(ours, vectors={}) == replace(theirs, vectors={})
            assert ours.vectors.keys() == theirs.vectors.keys()
        self.check()

    def act(self, command: Command, prepared: Any = None) -> None:
        self.do(lambda person: person.act(command, prepared))

    def check(self) -> None:
        state = self.other.state
        assert state.memories == self.one.state.memories
        assert len(state.archive.vectors) == 0
        assert set(self.one.state.shelf.vectors.ids) == set(state.shelf.vectors.ids)
        for memory_id in state.live:
            ours, theirs = self.one.state.vector(memory_id), state.vector(memory_id)
            assert ours is not None
            assert theirs is not None
            assert np.allclose(ours, theirs, atol=1e-6)
        for memory_id in (*state.resting, *state.parts):
            assert state.elsewhere(memory_id)

    def recall(self, wanted: Recall) -> None:
        index = exact(self.other)
        expected = plain(searched(self.one, wanted))
        for with_rules in (ENOUGH, ALWAYS):
            assert_same(plain_copy(expected), plain(searched(self.other, wanted, index, with_rules)))

    @property
    def ids(self) -> list[str]:
        return sorted(self.one.state.memories)


def plain_copy(answer: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "memories": [dict(record) for record in answer["memories"]]}


KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "drink": ("我爱喝", DRINKS), "pet": ("我养", PETS), "seat": ("我喜欢坐", ("靠窗", "过道")), SAID: ("我说过", PETS),
}  # fmt: skip
NUMBER = st.integers(0, 40)
SAYING = st.tuples(
    st.just("say"), st.sampled_from(sorted(KINDS)), NUMBER, st.sampled_from(("s1", "s2", "s3"))
)
DOING = st.tuples(st.sampled_from(("wait", "night", "end", "back", "delete", "edit", "restart")), NUMBER)
STEP = st.one_of(SAYING, SAYING, SAYING, DOING)
PERIOD = Period(NOW - timedelta(hours=1), NOW + timedelta(days=2))
ASKED = st.sampled_from(
    (
        None,
        Asked(personal=True),
        Asked(periods=(PERIOD,), about_past=True),
        Asked(entities=("红茶",)),
        Asked(entities=("猫", "从来没有"), personal=True),
    )
)
QUERY = st.tuples(NUMBER, ASKED, st.sampled_from((None, 1, 5)), st.sampled_from((None, 0.01, 3.0)))


def step(twins: Twins, number: int, taken: tuple[Any, ...]) -> None:
    kind, chosen = taken[0], taken[-1]
    if kind == "say":
        say_something(twins, number, *taken[1:])
    elif kind == "wait":
        for person in twins.both:
            person.pass_time(days=chosen)
    elif kind == "night":
        twins.do(lambda person: person.act(Maintain(now=person.now)))
    elif kind == "end":
        twins.act(EndSession(session_id=("s1", "s2", "s3")[chosen % 3]))
    elif kind == "restart":
        for person in twins.both:
            person.restart()
        twins.check()
    elif twins.ids:
        chosen = twins.ids[chosen % len(twins.ids)]
        if kind == "back":
            twins.act(BringBack(memory_ids=(chosen,)))
        elif kind == "delete":
            twins.act(Delete(memory_id=chosen))
        elif twins.one.memory(chosen).granularity is Granularity.ATOMIC:
            text = f"我爱喝{number}号茶"
            twins.do(
                lambda person: person.edit(person.memory(chosen), Reading(vector(text), None), content=text)
            )


def say_something(twins: Twins, number: int, dimension: str, chosen: int, session: str) -> None:
    before, objects = KINDS[dimension]
    name = objects[chosen % len(objects)]
    more: dict[str, Any] = {"category": Category.EVENT, "layer": None} if dimension == SAID else {}
    now = twins.one.now
    said = say(
        f"{before}{name}",
        dimension=dimension,
        object=name,
        session=session,
        at=now,
        message=f"m{number}",
        **more,
    )
    twins.do(lambda person: person.tell(said))
    for person in twins.both:
        person.pass_time(minutes=7)


@settings(max_examples=60, deadline=None)
@given(st.lists(STEP, min_size=8, max_size=40), st.lists(QUERY, min_size=1, max_size=4))
def test_a_life_with_an_index_is_the_same_life_and_recalls_the_same(
    steps: list[tuple[Any, ...]], queries: list[tuple[Any, ...]]
) -> None:
    twins = Twins()
    for number, taken in enumerate(steps):
        step(twins, number, taken)
    texts = sorted({memory.content for memory in twins.one.state.memories.values()}) or ["茶"]
    for number, asked, top_k, days in queries:
        as_of = None if days is None else NOW + timedelta(days=days)
        twins.recall(
            asking(texts[number % len(texts)], asked=asked, top_k=top_k, as_of=as_of, session_id="s1")
        )
