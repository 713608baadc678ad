"""The relatedness benchmark: how a case is read and what counts as right; no model is loaded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.relatedness import LIMITS, Asked, Outcome, Persona, clean, holds, personas, report

ROW: dict[str, Any] = {
    "id": "p-1", "lang": "en",
    "turns": [{"id": "t1", "text": "I love tea."}, {"id": "t2", "text": "Be brief.", "style": True}],
    "related": [{"query": "a drink?", "turns": ["t1"]}], "unrelated": [{"query": "7 × 8?", "kind": "arithmetic"}],
}  # fmt: skip


def a_hit(content: str, message: str, *, always: bool = False) -> dict[str, Any]:
    evidence = [{"message_id": message, "quote": content + "!"}]
    return {
        "id": content,
        "content": content,
        "always": always,
        "score": 0.9,
        "evidence": evidence,
        "lock": "pending",
        "object": content.rsplit(maxsplit=1)[-1],
    }


def an_answer(context: str, *hits: dict[str, Any]) -> dict[str, Any]:
    return {"context": context, "memories": list(hits)}


def test_a_person_is_read_with_both_kinds_of_queries(tmp_path: Path) -> None:
    path = tmp_path / "personas.jsonl"
    path.write_text(json.dumps(ROW) + "\n\n", encoding="utf-8")
    (one,) = personas(path)
    assert one.turns == (("t1", "I love tea."), ("t2", "Be brief."))
    assert one.asked == (Asked("a drink?", turns=("t1",)), Asked("7 × 8?", kind="arithmetic"))
    assert one.style == {"t2"}


@pytest.mark.parametrize("turns", [["t9"], []])
def test_a_related_query_must_name_a_turn(tmp_path: Path, turns: list[str]) -> None:
    path = tmp_path / "personas.jsonl"
    path.write_text(json.dumps({**ROW, "related": [{"query": "?", "turns": turns}]}), encoding="utf-8")
    with pytest.raises(ValueError, match="p-1"):
        personas(path)


def test_unrelated_is_clean_without_ranked_hits_but_those_that_are_always_there() -> None:
    unranked = {**a_hit("likes tea", "t1"), "score": None}
    assert clean(an_answer("", a_hit("no nuts", "t3", always=True), unranked))
    assert not clean(an_answer("", a_hit("likes tea", "t1")))
    assert clean(an_answer("", a_hit("be brief", "t2")), frozenset({"t2"}))


def test_related_needs_the_words_in_the_block() -> None:
    wanted = a_hit("likes <green> tea", "t1")
    assert holds(an_answer("- “likes ‹green› tea”", wanted), [wanted])
    assert not holds(an_answer("- tea", wanted), [wanted])
    assert not holds(an_answer("- “likes coffee”", wanted), [])


def test_of_what_is_always_there_the_object_is_enough() -> None:
    wanted = a_hit("allergic to peanuts", "t1", always=True)
    assert holds(an_answer("- Allergy: peanuts", wanted), [wanted])


def test_the_report_counts_what_extraction_lost_apart() -> None:
    person = Persona("p", "en", (("t1", "I love tea."),), ())
    related, unrelated = Asked("?", turns=("t1",)), Asked("7?", kind="arithmetic")
    outcomes = [
        Outcome("p", "en", related, True, True, ()),
        Outcome("p", "en", related, False, False, ()),
        Outcome("p", "en", unrelated, False, False, (("I love tea.", 0.5, {"relevance": 0.5}),)),
    ]
    seen = Outcome("d", "zh", related, False, True, (("我爱喝茶", 0.5, {"relevance": 0.5}),))
    made = report([*outcomes, seen], [person], [Persona("d", "zh", (("t1", "我爱喝茶。"),), ())])
    assert made.figures["development_related_answered"] == 0.0
    assert made.figures["related_answered"] == made.figures["related_kept"] == 0.5
    assert (made.figures["related_answered_of_kept"], made.figures["unrelated_clean"]) == (1.0, 0.0)
    assert len(made.data["misses"]) == 3
    assert [table.row_count for table in made.tables[2:]] == [0, 1, 0]  # of the development set only
    assert len(made.missed(LIMITS)) == 2
