"""The benchmark of evidence recall reads, ranks and counts as it says (bench/recall_quality), on made-up data."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.recall_quality import LIMITS, floors, peer, tables
from bench.recall_quality.data import (
    Person,
    Question,
    Said,
    Session,
    gold_ids,
    read_locomo,
    read_memdaily,
)
from bench.recall_quality.floors import COSINE, FUSED, Bm25
from bench.recall_quality.keys import only_asked, overrides_of
from bench.recall_quality.peer import Prepared
from bench.recall_quality.product import GATED, LIFTED, Trial, merged
from bench.recall_quality.scores import Answer, Taken, score, speed, timed
from bench.recall_quality.vectors import RememberingEmbedder
from bench.report import Limit, Report
from hermes_memory.adapters.hash_embedder import HashEmbedder
from hermes_memory.config import load_settings
from hermes_memory.core.model import Category
from hermes_memory.core.rules import Curve, Episodic
from hermes_memory.ports.embedder import EmbedderInfo, Vectors

KNOWN = {"D1:1", "D1:2", "D2:1", "D8:6", "D9:17", "D11:26", "D30:5"}
AT = datetime(2024, 3, 1, 9, tzinfo=UTC)
NO_MODEL = {"embedder": {"kind": "hash", "calibration": "hash"}}


def turn(name: str, text: str, speaker: str = "Ada", minute: int = 0) -> Said:
    return Said(name, speaker, text, AT.replace(minute=minute), "1 March")


def question(*gold: str, text: str = "which boat?", kind: str = "single-hop", of: str = "ada") -> Question:
    return Question(of, text, frozenset(gold), kind)


def answer(gold: Sequence[str], *places: Sequence[str], ms: float = 1.0, **more: str) -> Answer:
    return Answer(question(*gold, **more), [frozenset(place) for place in places], Taken(ms, ms / 2))


ADA = Person(
    "ada",
    (
        Session(
            "ada-1",
            (turn("D1:1", "I bought a small red boat."), turn("D1:2", "It rained all week.", "Bob", 1)),
        ),
        Session("ada-2", (turn("D2:1", "My sister Eva teaches the violin.", minute=2),)),
    ),
    (question("D1:1", text="What did Ada buy, a boat?"), question("D2:1", text="Who teaches the violin?")),
)


# ---------------------------------------------------------------------------------------------- reading


@pytest.mark.parametrize(
    ("evidence", "gold", "repaired", "dropped"),
    [
        (["D1:1", "D1:2"], {"D1:1", "D1:2"}, 0, 0),
        (["D8:6; D9:17"], {"D8:6", "D9:17"}, 1, 0),
        (["D1:1 D2:1"], {"D1:1", "D2:1"}, 1, 0),
        (["D:11:26"], {"D11:26"}, 1, 0),
        (["D30:05"], {"D30:5"}, 1, 0),
        (["D1:1", "D"], {"D1:1"}, 0, 1),
        (["D7:7"], set(), 0, 1),
        ([], set(), 0, 0),
    ],
)
def test_malformed_evidence_is_repaired_or_dropped_and_counted(
    evidence: list[str], gold: set[str], repaired: int, dropped: int
) -> None:
    assert gold_ids(evidence, KNOWN) == (frozenset(gold), repaired, dropped)


def a_sample(name: str = "conv-1", **qa: Any) -> dict[str, Any]:
    said = [
        {"speaker": "Ada", "dia_id": "D1:1", "text": "Hi"},
        {"speaker": "Bob", "dia_id": "D1:2", "text": "Oh"},
    ]
    conversation = {
        "speaker_a": "Ada", "session_10_date_time": "12:09 am on 13 September, 2023",
        "session_10": [{"speaker": "Ada", "dia_id": "D10:1", "text": "Later"}],
        "session_2_date_time": "1:56 pm on 8 May, 2023", "session_2": said,
        "session_3_date_time": "1:56 pm on 9 May, 2023",
    }  # fmt: skip
    asked = {"question": "Who?", "category": 1, "evidence": ["D1:1"]} | qa
    return {"sample_id": name, "conversation": conversation, "qa": [asked]}


def written(path: Path, *samples: dict[str, Any]) -> Path:
    path.write_text(json.dumps(list(samples)), encoding="utf-8")
    return path


def test_locomo_is_read_in_the_order_of_its_sessions_a_second_for_each_turn(tmp_path: Path) -> None:
    corpus = read_locomo(written(tmp_path / "l.json", a_sample()))
    (person,) = corpus.people
    assert [session.id for session in person.sessions] == ["conv-1-2", "conv-1-10"]
    assert [(one.spoken, one.at.isoformat()) for one in person.turns] == [
        ("Ada: Hi", "2023-05-08T13:56:00+00:00"),
        ("Bob: Oh", "2023-05-08T13:56:01+00:00"),
        ("Ada: Later", "2023-09-13T00:09:00+00:00"),
    ]
    assert person.turns[0].dated == "[1:56 pm on 8 May, 2023] Ada: Hi"
    assert person.questions == (Question("conv-1", "Who?", frozenset({"D1:1"}), "multi-hop"),)


def test_a_question_without_evidence_is_left_out_and_counted(tmp_path: Path) -> None:
    path = written(tmp_path / "l.json", a_sample(evidence=[]), a_sample("conv-2", evidence=["D", "D1:01"]))
    corpus = read_locomo(path)
    assert [len(person.questions) for person in corpus.people] == [0, 1]
    assert (corpus.repaired, corpus.dropped, corpus.unanswerable) == (1, 1, 1)
    assert [person.name for person in read_locomo(path, {"conv-2"}).people] == ["conv-2"]


def test_memdaily_is_read_by_time_in_either_way_of_writing_it(tmp_path: Path) -> None:
    said = [
        {"id": "events:0", "time": "2024年04月02日 周二 21:47", "message": "我明天去杭州"},
        {"id": "x:1", "time": "2024-04-01T15:08:00+08:00", "message": "你好"},
    ]
    asked = {"question": "去哪里?", "target": ["events:0"], "type": "simple"}
    lines = [json.dumps({"user": name, "turns": said, "questions": [asked]}) for name in ("a", "b", "c")]
    (tmp_path / "m.jsonl").write_text("\n".join(lines), encoding="utf-8")
    people = read_memdaily(tmp_path / "m.jsonl", 2).people
    assert [person.name for person in people] == ["a", "c"]
    assert [(one.id, one.spoken, one.dated) for one in people[0].turns] == [
        ("x:1", "你好", "你好"), ("events:0", "我明天去杭州", "我明天去杭州"),
    ]  # fmt: skip
    assert people[0].turns[0].at.isoformat() == "2024-04-01T15:08:00+08:00"


# ---------------------------------------------------------------------------------------------- counting


def test_recall_is_the_share_of_gold_turns_in_the_first_places() -> None:
    one = answer(("a", "b"), "x", "a", "y", "z", "w", "b")
    assert (one.recall(1), one.recall(5), one.recall(6)) == (0, 0.5, 1)
    assert (one.hit(1), one.hit(2), one.reciprocal_rank) == (0, 1, 0.5)
    nothing = answer(("a",))
    assert (nothing.recall(10), nothing.hit(10), nothing.reciprocal_rank) == (0, 0, 0)


def test_a_place_that_rests_on_several_turns_has_found_them_all_and_says_how_many() -> None:
    many = answer(("a", "b"), ("a", "b", "c"), ("a", "d"))
    assert many.recall(1) == 1
    assert score([many]).turns_10 == 4


def test_scores_are_averages_over_questions() -> None:
    of = score([answer(("a",), "a"), answer(("a", "b"), "x", "b"), answer(("a",), "x")])
    assert (of.questions, of.r10, of.mrr) == (3, 0.5, 0.5)
    assert of.hit1 == pytest.approx(1 / 3)
    assert score([]).r10 == 0


def test_times_are_percentiles() -> None:
    answers = [answer(("a",), "a", ms=float(ms)) for ms in range(101)]
    assert (speed(answers).p50, speed(answers).p95, speed(answers).cpu_p95) == (50, 95, 47.5)
    assert speed(answers[7:8]).p95 == 7
    assert speed([]).p50 == 0
    found, taken = timed(lambda: sum(range(10_000)))
    assert found == 49_995_000
    assert taken.ms > 0 <= taken.cpu_ms


def test_adversarial_questions_stand_apart() -> None:
    found = {"x": [answer(("a",), "a"), answer(("a",), "b", kind="adversarial", of="bob")]}
    assert [one.question.kind for one in tables.answerable(found["x"])] == ["single-hop"]
    assert tables.as_data(found)["x"]["answerable"]["r10"] == 1
    assert tables.as_data(found)["x"]["kinds"]["adversarial"]["r10"] == 0
    assert [len(tables.about(found, {"bob"}, inside=inside)["x"]) for inside in (True, False)] == [1, 1]
    drawn = (
        tables.quality("all", found, adversarial=True), tables.by_kind("kinds", found), tables.hits("hits", found)
    )  # fmt: skip
    assert [len(one.rows) for one in drawn] == [1, 1, 1]
    assert [column.header for column in drawn[1].columns] == ["system", "single-hop", "adversarial"]


def test_what_was_left_out_is_not_held_against_its_limit() -> None:
    report = Report("recall-quality", figures={"test_r10": 0.2}, left_out={"zh_r10": "no data"})
    limits = [
        Limit("test_r10", at_least=0.7),
        Limit("zh_r10", at_least=0.7),
        Limit("memdaily_r10", at_least=0.8),
    ]
    assert [limit.figure for limit in report.missed(limits)] == ["test_r10", "memdaily_r10"]
    assert {limit.figure for limit in LIMITS} >= {"test_r10", "zh_r10", "memdaily_r10"}


# ---------------------------------------------------------------------------------------------- floors


def test_bm25_prefers_rare_words_and_short_texts() -> None:
    bm25 = Bm25([["boat", "red"], ["boat"], ["rain", "boat", "wet", "cold"], []])
    red, boat = bm25.scores(["red"]), bm25.scores(["boat", "boat", "nowhere"])
    assert red[0] > 0
    assert red[1:].tolist() == [0, 0, 0]
    assert boat[1] > boat[0] > boat[2] > boat[3] == 0
    assert np.array_equal(boat, bm25.scores(["boat"]))


def test_floors_find_what_shares_its_words() -> None:
    words = lambda text: text.lower().replace("?", "").replace(".", "").split()  # noqa: E731
    found = asyncio.run(floors.answers([ADA], HashEmbedder(), words))
    assert {way: [one.recall(1) for one in answers] for way, answers in found.items()} == {
        COSINE: [1, 1], floors.BM25: [1, 1], FUSED: [1, 1]
    }  # fmt: skip
    assert all(len(one.places) == 3 for answers in found.values() for one in answers)


def test_what_mem0_asks_for_is_what_was_embedded_for_it() -> None:
    prepared = Prepared({"q": [1.0]}, {"q": [2.0]})
    assert (prepared.embed("q", "search"), prepared.embed("q", "add")) == ([1.0], [2.0])
    assert peer.installed() in {True, False}


class Counting:
    """An embedder that notes what it was asked for."""

    def __init__(self) -> None:
        self.info = EmbedderInfo("counting", 2)
        self.asked: list[str] = []

    async def queries(self, texts: Sequence[str]) -> Vectors:
        return await self.passages(texts)

    async def passages(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        return np.array([[len(text), 1] for text in texts], np.float32)


def test_a_text_is_embedded_once_for_each_use_also_in_a_later_run(tmp_path: Path) -> None:
    first, later = Counting(), Counting()
    path = tmp_path / "deep" / "v.sqlite"
    embedder = RememberingEmbedder(first, path)
    both = asyncio.run(embedder.passages(["one", "four", "one"]))
    assert both.tolist() == [[3, 1], [4, 1], [3, 1]]
    asyncio.run(embedder.queries(["one"]))
    assert first.asked == ["one", "four", "one"]
    again = RememberingEmbedder(later, path)
    assert asyncio.run(again.passages(["four", "five5"])).tolist() == [[4, 1], [5, 1]]
    assert later.asked == ["five5"]
    assert asyncio.run(again.passages([])).shape == (0, 2)
    assert again.info == later.info


# ---------------------------------------------------------------------------------------------- the product


def test_configuration_keys_come_from_the_command_line() -> None:
    pairs = [
        "recall.threshold=0.5",
        "recall.top_k = 9",
        "life.curves.EVENT=none",
        'entry.episodic="all_turns"',
    ]
    assert overrides_of(pairs) == {
        "recall": {"threshold": 0.5, "top_k": 9}, "life": {"curves": {"EVENT": "none"}},
        "entry": {"episodic": "all_turns"},
    }  # fmt: skip
    assert only_asked(pairs[:2])
    assert not only_asked(pairs)
    for wrong in (["threshold=1"], ["recall.threshold"], ["recall.top_k=1", "recall.top_k=2"]):
        with pytest.raises(ValueError, match=r"section\.key=value|overwrite"):
            overrides_of(wrong)
    assert merged({"recall": {"top_k": 1}, "life": 2}, {"recall": {"threshold": 0}, "life": {}}) == {
        "recall": {"top_k": 1, "threshold": 0}, "life": {},
    }  # fmt: skip


def test_both_configurations_keep_every_turn_and_only_one_lifts_the_caps() -> None:
    lifted, gated, usual = load_settings(LIFTED), load_settings(GATED), load_settings()
    assert lifted.entry.episodic is gated.entry.episodic is Episodic.ALL_TURNS
    assert set(lifted.life.curves) == set(Category)
    assert set(lifted.life.curves.values()) == {Curve.NONE}
    assert lifted.recall.threshold == 0
    assert gated.recall == usual.recall
    assert (gated.capacity, gated.life) == (usual.capacity, usual.life)


def test_the_product_is_asked_through_its_library_and_answers_with_the_messages_it_rests_on() -> None:
    trial = Trial([ADA], LIFTED, HashEmbedder(), NO_MODEL)
    try:
        assert (trial.intake.turns, trial.intake.kept) == (3, 1)
        assert trial.intake.memories >= 3
        answers = trial.ask({"fusion": {"words": 0.9}})
    finally:
        trial.close()
    assert [one.question for one in answers] == list(ADA.questions)
    assert [one.recall(5) for one in answers] == [1, 1]
    assert all(place and place <= {"D1:1", "D1:2", "D2:1"} for one in answers for place in one.places)
