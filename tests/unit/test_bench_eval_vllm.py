"""The checks and counts of ``make eval-vllm``, which must see what is wrong: made-up exports and answers."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bench.eval_vllm.checking import Verdict, checked, ungrounded, words
from bench.eval_vllm.tables import Outcome, report
from bench.eval_vllm.watching import Seen, WatchedDistiller, WatchedModel
from bench.persona_chats import said_turn
from hermes_memory.adapters.model_extractor.contract import FORM, OPINION_FORM
from hermes_memory.core.candidate import Extraction, ExtractionRequest, Refusal, Usage
from hermes_memory.core.model import Role
from hermes_memory.errors import ExtractionFailed, ModelFailed
from hermes_memory.ports.distiller import Distilled
from hermes_memory.ports.language_model import Completion, Finish, Question
from tests.small_world import vectors

TEXT = "I live in Lisbon, and I keep bees."
SPOKEN = {
    ("s", "m0"): ("user", TEXT),
    ("s", "m1"): ("assistant", "Lisbon is lovely."),
    ("s", "m2"): ("user", "我住在里斯本。"),
}
READ = Counter({("s", "m0"): 1, ("s", "m2"): 1})
QUESTION = Question(system="S", user="{}", form=FORM, schema={}, max_tokens=9)


def a_memory(**changes: Any) -> dict[str, Any]:
    quote = changes.pop("quote", "I keep bees")
    start = TEXT.find(quote)
    piece = {"session_id": "s", "message_id": "m0", "quote": quote, "start": start, "end": start + len(quote)}
    made = {
        "id": "a", "user_id": "u", "subject": "user", "dimension": "pet", "polarity": "+", "content": "I keep bees",
        "object": "bees", "evidence": [{**piece, **changes.pop("piece", {})}],
    }  # fmt: skip
    return {**made, **changes}


def a_turn(message_id: str, **changes: Any) -> dict[str, Any]:
    role, text = SPOKEN["s", message_id]
    made = {"session_id": "s", "message_id": message_id, "role": role, "content": text, "pending": False}
    return {**made, **changes}


def an_export(*memories: dict[str, Any], turns: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {
        "memories": list(memories),
        "turns": turns if turns is not None else [a_turn(m) for m in ("m0", "m1", "m2")],
    }


def test_a_memory_of_the_users_words_is_grounded() -> None:
    assert not ungrounded(a_memory(), SPOKEN)
    assert not ungrounded(a_memory(content="I keep bees (2026-03-02)"), SPOKEN)


@pytest.mark.parametrize(
    "changes",
    [
        {"content": "I keep wasps"},
        {"object": "honey"},
        {"evidence": []},
        {"quote": "I keep wasps"},
        {"piece": {"quote": " "}},
        {"piece": {"start": 0}},
        {"piece": {"message_id": "m1"}},
        {"piece": {"message_id": "m7"}},
        {"piece": {"session_id": "another's"}},
        {"content": "I keep bees (and 7 hens)"},
    ],
    ids=str,
)
def test_whatever_the_turn_does_not_say_is_seen(changes: dict[str, Any]) -> None:
    assert ungrounded(a_memory(**changes), SPOKEN)


def test_the_assistants_words_ground_nothing() -> None:
    piece = {"message_id": "m1", "quote": "Lisbon is lovely", "start": 0, "end": 16}
    assert ungrounded(a_memory(content="Lisbon is lovely", object="Lisbon", piece=piece), SPOKEN)


def test_chinese_is_compared_by_its_characters() -> None:
    piece = {"message_id": "m2", "quote": "我住在里斯本", "start": 0, "end": 6}
    assert not ungrounded(a_memory(content="我住在里斯本", object="里斯本", piece=piece), SPOKEN)
    assert ungrounded(a_memory(content="我住在里约", object="里约", piece=piece), SPOKEN)
    assert words("里斯本 Bees_2") == {"里", "斯", "本", "bees", "2"}


def test_a_clean_store_is_clean() -> None:
    verdict = checked([an_export(a_memory())], SPOKEN, READ)
    assert verdict == Verdict(memories=1)
    assert verdict.clean


@pytest.mark.parametrize(
    "turns",
    [
        [a_turn("m0"), a_turn("m1")],
        [a_turn("m0"), a_turn("m1"), a_turn("m2", pending=True)],
        [a_turn("m0"), a_turn("m1"), a_turn("m2", content="我")],
        [a_turn("m0"), a_turn("m1"), a_turn("m2", role="assistant")],
    ],
)
def test_a_turn_that_is_not_there_as_it_was_said_is_lost(turns: list[dict[str, Any]]) -> None:
    assert checked([an_export(turns=turns)], SPOKEN, READ).lost == ("s/m2",)


def test_a_user_turn_that_was_never_read_is_lost_and_one_read_twice_doubled() -> None:
    verdict = checked([an_export()], SPOKEN, Counter({("s", "m0"): 2}))
    assert (verdict.lost, verdict.doubled) == (("s/m2",), ("s/m0",))


def test_a_memory_or_turn_that_comes_twice_is_doubled() -> None:
    twice = checked([an_export(a_memory(), a_memory(id="b"))], SPOKEN, READ)
    assert twice.doubled == ("b",)
    assert checked([an_export(a_memory(), a_memory(object="keep"))], SPOKEN, READ).doubled == ("a",)
    turns = [a_turn(m) for m in ("m0", "m1", "m2", "m2")]
    assert not checked([an_export(turns=turns)], SPOKEN, READ).clean


class Answers:
    """A language model that answers as it is told."""

    name = "told"

    def __init__(self, text: str = "", finish: Finish = Finish.STOP) -> None:
        self.completion = Completion(text=text, finish=finish, usage=Usage(calls=1))

    async def answer(self, question: Question) -> Completion:
        if self.completion.text == "away":
            raise ModelFailed("the model", "away")
        return self.completion


@pytest.mark.parametrize(
    ("form", "text", "finish", "kind"),
    [
        (FORM, '{"nothing":true}', Finish.STOP, "valid"),
        (FORM, '{"nothing":true}', Finish.LENGTH, "cut"),
        (FORM, '{"nothing":true}', Finish.OTHER, "other"),
        (FORM, '{"noth', Finish.STOP, "not_json"),
        (FORM, '{"nothing":3}', Finish.STOP, "schema"),
        (OPINION_FORM, '{"verdicts":["yes","no"]}', Finish.STOP, "valid"),
        (OPINION_FORM, '{"verdicts":["yes"]}', Finish.STOP, "schema"),
    ],
)
async def test_each_answer_is_counted_by_what_it_is(form: str, text: str, finish: Finish, kind: str) -> None:
    seen, question = Seen(), replace(QUESTION, form=form, user=json.dumps({"statements": [{}, {}]}))
    model = WatchedModel(Answers(text, finish), seen)
    assert (await model.answer(question)).text == text
    assert seen.outputs == {(form, kind): 1}
    assert model.name == "told"


async def test_an_answer_that_does_not_come_is_counted_and_still_fails() -> None:
    seen = Seen()
    with pytest.raises(ModelFailed):
        await WatchedModel(Answers("away"), seen).answer(QUESTION)
    assert seen.failures == {"away": 1}


class Distils:
    """A distiller that gives one extraction, or fails."""

    def __init__(self, extraction: Extraction | None) -> None:
        self._extraction = extraction

    async def distil(self, request: ExtractionRequest) -> Distilled:
        if self._extraction is None:
            raise ExtractionFailed("nobody is there")
        return Distilled(self._extraction, vectors([]))

    async def embed(self, texts: Any) -> Any:
        return vectors(texts)


async def test_a_batch_is_counted_with_the_user_turns_it_read() -> None:
    seen, read = Seen(), Extraction(
        extractor="rules", refusals=(Refusal("m0", "question"),), usage=Usage(calls=2), fell_back="schema"
    )  # fmt: skip
    turns = (said_turn("s", 0, TEXT), said_turn("s", 1, "Nice.", Role.ASSISTANT))
    distiller = WatchedDistiller(Distils(read), seen)
    await distiller.distil(ExtractionRequest(turns=turns))
    assert (seen.batches, seen.fell_back, seen.usage.calls, seen.refused) == (1, 1, 2, {"question": 1})
    assert seen.read == {("s", "m0"): 1}
    assert isinstance(await distiller.embed(["a"]), np.ndarray)


async def test_a_failed_try_reads_nothing() -> None:
    seen = Seen()
    with pytest.raises(ExtractionFailed):
        await WatchedDistiller(Distils(None), seen).distil(
            ExtractionRequest(turns=(said_turn("s", 0, TEXT),))
        )
    assert (seen.tries_failed, seen.batches, seen.read) == (1, 0, {})


def test_the_report_sums_what_must_be_nothing_and_keeps_each_prompt_apart() -> None:
    jobs = [{"changes": [{"op": "added", "reason": "new"}, {"op": "added", "reason": "new"}]}]
    wrong = Verdict(memories=2, ungrounded=("a",), doubled=("b", "c"))
    run = Outcome("shipped", Seen(usage=Usage(calls=4, tokens_out=60)), jobs, wrong, turns=8, seconds=30.0)
    made = report(
        [run, replace(run, prompt="other", verdict=Verdict(memories=0, lost=("s/m0",)))], ready_s=5.0
    )
    assert (made.figures["ungrounded"], made.figures["lost"], made.figures["doubled"]) == (1.0, 1.0, 2.0)
    assert made.data["shipped"]["calls_per_turn"] == 0.5
    assert made.data["shipped"]["tokens_out_per_s"] == 2.0
    assert made.data["other"]["changes"] == [["added", "new", 2]]
    assert len(made.tables) == 6
