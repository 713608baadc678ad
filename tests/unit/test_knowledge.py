"""General knowledge that a namespace shares: what is found, when, and what it yields to (SPEC §7.1.4, S1 §5.3)."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from hermes_memory.core.daytime import Moment
from hermes_memory.core.knowledge import Entry, KnowledgeShelf, Known, Pack, beside
from hermes_memory.core.ranking import Query
from hermes_memory.errors import InvalidInput
from hermes_memory.testing.builders import EMBEDDER, NOW, a_pack, an_entry
from tests.small_world import CALIBRATION, default_rules, rules, vector, vectors, words
from tests.unit.test_daytime import DAYTIMES

NIGHT = datetime(2026, 1, 15, 22, tzinfo=ZoneInfo("Europe/Oslo"))
ANY_TIME = Moment({})


def entry(id_: str, text: str = "", **over: Any) -> Entry:
    values: dict[str, Any] = {"id": id_, "content": {"en": text or f"about {id_}"}, "cues": {}, "topics": ()}
    return an_entry(**(values | over))


def shelf(*entries: Entry) -> KnowledgeShelf:
    pack = a_pack(entries=entries)
    return KnowledgeShelf([(pack, vectors(pack.passages))], words, EMBEDDER.dimension)


def query(text: str, like: str = "") -> Query:
    """``like`` is a text whose meaning the query has."""
    return Query(
        text=text, vector=vector(like or text), words=words(text), session_id=None, scene=None, as_of=NOW, top_k=6
    )  # fmt: skip


def found(
    on: KnowledgeShelf,
    asked: Query,
    moment: Moment = ANY_TIME,
    called: set[str] | None = None,
    **knowledge: Any,
) -> list[Known]:
    return on.find(asked, moment, called or set(), CALIBRATION, rules(knowledge=knowledge))


def ids(known: list[Known]) -> list[str]:
    return [one.entry.id for one in known]


def test_spec_7_1_4_what_means_the_same_is_found_and_nothing_else() -> None:
    both = shelf(entry("one", "tea holds caffeine"), entry("two", "dogs like walks"))
    (known,) = found(both, query("?", like="tea holds caffeine"))
    assert (known.entry.id, round(known.relevance, 3)) == ("one", 1.0)
    assert known.score == known.relevance
    assert len(both) == 2


def test_each_language_is_found_by_itself_and_shown_in_any() -> None:
    tea = entry("tea", content={"zh": "茶含咖啡因", "en": "tea holds caffeine"})
    for like in ("茶含咖啡因", "tea holds caffeine"):
        (known,) = found(shelf(entry("other"), tea), query("?", like=like))
        assert known.entry.id == "tea"
    assert (tea.text("zh"), tea.text("en")) == ("茶含咖啡因", "tea holds caffeine")
    assert entry("x", "only this").text("zh") == "only this"


@pytest.mark.parametrize(("text", "language"), [("喝什么", "zh"), ("a drink", "en")])
def test_it_notes_the_language_of_the_query(text: str, language: str) -> None:
    (known,) = found(shelf(entry("tea", "tea holds caffeine")), query(text, like="tea holds caffeine"))
    assert known.language == language


@pytest.mark.parametrize("text", ["Is SATAY sauce hot?", "I love satays", "沙嗲好吃吗", "来份沙嗲"])
def test_a_cue_calls_for_its_entry(text: str) -> None:
    (known,) = found(shelf(an_entry(), entry("other")), query(text))
    assert known.entry.id == "satay"
    assert known.relevance >= default_rules().knowledge.cue_relevance


def test_a_cue_of_several_words_must_stand_there_whole() -> None:
    power = shelf(entry("bank", cues={"en": ("power bank", "..."), "zh": ()}))
    assert ids(found(power, query("where is my power bank"))) == ["bank"]
    assert found(power, query("the power of a bank")) == []
    assert found(power, query("...")) == []


def test_words_and_dimension_lift_what_is_near() -> None:
    near = shelf(entry("pets", "cats sleep long", dimensions=("pet",), topics=("animals",)))
    asked = query("cats animals", like="cats sleep long")
    wide: dict[str, Any] = {"threshold": 0.0, "lexical_weight": 0.4, "dimension_weight": 0.3}
    halved = query("cats animals")
    object.__setattr__(halved, "vector", (asked.vector * np.float32(0.5)).astype(np.float32))
    (plain,) = found(near, halved, **(wide | {"lexical_weight": 0.0}))
    (worded,) = found(near, halved, **wide)
    (called,) = found(near, halved, called={"pet", "city"}, **wide)
    assert plain.relevance == pytest.approx(0.5, abs=1e-3)
    assert plain.relevance < worded.relevance < called.relevance


def test_words_alone_do_not_carry_what_is_far() -> None:
    opposed = query("cats sleep long")
    object.__setattr__(opposed, "vector", -vector("cats sleep long"))
    assert found(shelf(entry("pets", "cats sleep long")), opposed) == []
    weighty: dict[str, Any] = {
        "lexical_weight": 1.0,
        "dimension_weight": 0.0,
    }  # the operator wants words to carry alone
    assert ids(found(shelf(entry("pets", "cats sleep long")), opposed, **weighty)) == ["pets"]


def test_spec_7_1_4_a_limited_entry_is_shown_when_its_limits_are_known_to_hold() -> None:
    milk = entry(
        "milk",
        "warm milk",
        limits={"daytime": frozenset({"evening", "night"}), "season": frozenset({"winter"})},
    )
    on, asked = shelf(milk, entry("soup", "hot soup")), query("?", like="warm milk")
    (known,) = found(on, asked, DAYTIMES.moment(NIGHT))
    assert known.score == pytest.approx(known.relevance * default_rules().recall.fit_holds)
    assert found(on, asked, DAYTIMES.moment(NIGHT.replace(hour=9))) == []
    assert found(on, asked, DAYTIMES.moment(NIGHT.replace(month=7))) == []
    assert found(on, asked, ANY_TIME) == []


def test_spec_7_1_4_so_is_one_of_a_scene() -> None:
    seat = entry("seat", "window seats", scenes=frozenset({"dining", "travel"}))
    on, asked = shelf(seat), query("?", like="window seats")
    assert ids(found(on, asked, Moment({}, "dining"))) == ["seat"]
    assert found(on, asked, Moment({}, "work")) == found(on, asked) == []


def test_the_best_comes_first_and_equals_by_pack_and_id() -> None:
    packs = [
        a_pack(name="b", entries=(entry("y"), entry("x", "the same"))),
        a_pack(name="a", entries=(entry("z", "the same"),)),
    ]
    both = KnowledgeShelf([(pack, vectors(pack.passages)) for pack in packs], words, EMBEDDER.dimension)
    known = found(both, query("?", like="the same"), threshold=0.9)
    assert [(one.pack.name, one.entry.id) for one in known] == [("a", "z"), ("b", "x")]


def test_spec_7_1_4_each_memory_that_answers_takes_the_place_of_an_entry() -> None:
    pack = a_pack()
    known = [Known(entry(str(number)), pack, 0.9, 0.9, "en") for number in range(5)]
    for memories, shown in ((0, 3), (1, 2), (3, 0), (9, 0)):
        assert beside(known, memories, default_rules()) == known[:shown]


def test_the_passages_of_a_pack_are_those_of_its_vectors() -> None:
    pack = a_pack(entries=(an_entry(), entry("x", "more")))
    assert pack.passages == ["沙嗲酱里通常有花生", "Satay sauce usually contains peanuts", "more"]
    assert Pack(name="x", version="1", languages=("en",), licence="CC0-1.0").passages == []


def test_vectors_that_are_not_the_packs_are_refused() -> None:
    pack = a_pack()
    with pytest.raises(InvalidInput):
        KnowledgeShelf([(pack, vectors(["one only"]))], words, EMBEDDER.dimension)
    with pytest.raises(InvalidInput):
        KnowledgeShelf([(pack, vectors(pack.passages))], words, EMBEDDER.dimension + 1)
