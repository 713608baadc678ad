"""Who is asked, how often, and what becomes of turns that a model cannot read."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from hermes_memory.adapters.model_extractor import ModelExtractor
from hermes_memory.core.candidate import OVER_BUDGET, ExtractionRequest, Usage
from hermes_memory.core.model import Role
from hermes_memory.core.reasons import Reason
from hermes_memory.errors import ExtractionFailed, InvalidConfig, ModelFailed
from hermes_memory.ports.extractor import Extractor
from hermes_memory.ports.language_model import Completion, Finish
from hermes_memory.testing.builders import a_turn
from tests.model_answers import ONE_CALL, Told, extractor, saying, statement

CITY = statement("我住在苏州", "苏州", "city")
HOBBY = statement("我喜欢烘焙", "烘焙", "hobby", content="我喜欢烘焙")
YES, NO = {"verdicts": ["yes"]}, {"verdicts": ["no"]}


def request(*texts: str, **more: Any) -> ExtractionRequest:
    turns = tuple(a_turn(index=n, message_id=f"m{n}", content=text) for n, text in enumerate(texts))
    return ExtractionRequest(turns=turns, **more)


async def test_a_right_answer_takes_one_call() -> None:
    model = Told(saying(HOBBY))
    asked: Extractor = extractor(model)
    found = await asked.extract(request("我喜欢烘焙"))
    assert (found.extractor, asked.name) == ("llm/extract-1/told-1", "llm/extract-1/told-1")
    assert [(one.object, one.content) for one in found.candidates] == [("烘焙", "我喜欢烘焙")]
    assert (found.usage, found.refusals, found.fell_back) == (ONE_CALL, (), "")
    assert (model.asked[0].form, model.asked[0].max_tokens) == ("extraction", 700)


async def test_thanks_and_greetings_are_not_asked_about() -> None:
    model = Told(saying(HOBBY))
    found = await extractor(model).extract(request("谢谢！", "ok", "  "))
    assert (model.asked, found.candidates, found.usage) == ([], (), Usage())
    assert {one.reason for one in found.refusals} == {Reason.FILLER}
    assert {one.message_id for one in found.refusals} == {"m0", "m1", "m2"}


async def test_a_batch_without_a_word_of_the_user_is_not_asked_about() -> None:
    model = Told(saying(HOBBY))
    turn = a_turn(role=Role.ASSISTANT, content="我住在苏州")
    found = await extractor(model).extract(ExtractionRequest(turns=(turn,)))
    assert (model.asked, found.candidates, found.refusals) == ([], (), ())


async def test_every_user_turn_is_accounted_for() -> None:
    found = await extractor(Told(saying(HOBBY))).extract(request("我喜欢烘焙", "谢谢", "灯在中午一直闪"))
    assert {one.message_id: one.reason for one in found.refusals} == {
        "m1": Reason.FILLER,
        "m2": Reason.LOW_VALUE,
    }


async def test_an_answer_without_form_is_asked_for_once_more_and_told_what_was_wrong() -> None:
    model = Told('{"statements": [{"secret": "swordfish"}]}', saying(HOBBY))
    found = await extractor(model).extract(request("我喜欢烘焙"))
    assert [one.object for one in found.candidates] == ["烘焙"]
    assert found.usage == replace(ONE_CALL + ONE_CALL, invalid=1, repairs=1)
    first, second = model.asked
    assert first.system == second.system
    assert second.user.startswith(first.user) and "statements.0.quote: missing" in second.user
    assert "swordfish" not in second.user


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("no JSON", "not_json"),
        ({"more": 1}, "schema"),
        ("x" * 200_000, "too_large"),
        (Completion(text='{"statements": [', finish=Finish.LENGTH, usage=ONE_CALL), "cut"),
        (Completion(text=json.dumps(saying(HOBBY)), finish=Finish.LENGTH, usage=ONE_CALL), "cut"),
    ],
)
async def test_two_answers_without_form_leave_the_turns_to_the_rules(answer: Any, code: str) -> None:
    model = Told(answer)
    found = await extractor(model).extract(request("我住在苏州"))
    assert len(model.asked) == 2
    assert (found.extractor, found.fell_back) == ("rules/1 for told-1", code)
    assert [one.object for one in found.candidates] == ["苏州"]  # the rules' own reading
    assert Reason.SCHEMA in {one.reason for one in found.refusals}
    assert found.usage == replace(ONE_CALL + ONE_CALL, invalid=2, repairs=1)


async def test_or_to_an_operator() -> None:
    with pytest.raises(ExtractionFailed) as caught:
        await extractor(Told("no JSON"), fallback="park").extract(request("我住在苏州"))
    assert (caught.value.why, caught.value.tokens) == ("no usable answer: not_json", 220)


async def test_who_has_no_tokens_left_is_read_by_the_rules() -> None:
    model = Told(saying(HOBBY))
    found = await extractor(model).extract(request("我住在苏州", tokens_left=0))
    assert (model.asked, found.extractor, found.fell_back) == ([], "rules/1 for told-1", OVER_BUDGET)
    assert Reason.SCHEMA not in {one.reason for one in found.refusals}
    with pytest.raises(ExtractionFailed) as caught:
        await extractor(model, fallback="park").extract(request("我住在苏州", tokens_left=0))
    assert caught.value.why == OVER_BUDGET
    await extractor(model).extract(request("我喜欢烘焙", tokens_left=1))
    assert len(model.asked) == 1


@pytest.mark.parametrize(
    ("failure", "after_s", "code"),
    [(ModelFailed("the model", "busy", 7.0), 7.0, "model_failed"), (InvalidConfig("extractor.model", "is unknown"), 0.0, "invalid_config")],
)  # fmt: skip
async def test_a_model_that_is_away_fails_the_try_until_it_is_the_last(
    failure: Exception, after_s: float, code: str
) -> None:
    with pytest.raises(ExtractionFailed) as caught:
        await extractor(Told(failure)).extract(request("我住在苏州"))
    assert (caught.value.after_s, caught.value.tokens) == (after_s, 0)
    with pytest.raises(ExtractionFailed):
        await extractor(Told(failure), fallback="park").extract(request("我住在苏州", last_try=True))
    found = await extractor(Told(failure)).extract(request("我住在苏州", last_try=True))
    assert (found.extractor, found.fell_back) == ("rules/1 for told-1", code)


async def test_what_a_failed_try_has_used_is_told() -> None:
    model = Told("no JSON", ModelFailed("the model", "away"))
    with pytest.raises(ExtractionFailed) as caught:
        await extractor(model).extract(request("我住在苏州"))
    assert caught.value.tokens == ONE_CALL.tokens


async def test_an_answer_that_was_refused_or_broken_off_is_a_failed_try() -> None:
    broken = Completion(text=json.dumps(saying(HOBBY)), finish=Finish.OTHER, usage=ONE_CALL)
    model = Told(broken)
    with pytest.raises(ExtractionFailed) as caught:
        await extractor(model).extract(request("我喜欢烘焙"))
    assert (len(model.asked), caught.value.tokens) == (1, ONE_CALL.tokens)


async def test_what_matters_much_is_asked_about_a_second_time() -> None:
    model = Told(saying(CITY, {**HOBBY, "turn": "T2"}), YES)
    found = await extractor(model).extract(request("我住在苏州", "我喜欢烘焙"))
    assert [one.object for one in found.candidates] == ["苏州", "烘焙"]
    assert found.usage == replace(ONE_CALL + ONE_CALL, opinions=1)
    question = model.asked[1]
    assert question.form == "opinion" and question.system != model.asked[0].system
    assert json.loads(question.user) == {
        "statements": [
            {"quote": "我住在苏州", "content": "我住在苏州", "about": "user", "dimension": "city", "object": "苏州", "denied": False}
        ]
    }  # fmt: skip


async def test_what_is_not_supported_is_refused() -> None:
    found = await extractor(Told(saying(CITY, {**HOBBY, "turn": "T2"}), NO)).extract(
        request("我住在苏州", "我喜欢烘焙")
    )
    assert [one.object for one in found.candidates] == ["烘焙"]
    assert [(one.message_id, one.reason) for one in found.refusals] == [("m0", Reason.NOT_SUPPORTED)]


@pytest.mark.parametrize("said", [{"safety": True}, {"importance": 0.95}])
async def test_what_the_model_calls_grave_is_asked_about_too(said: dict[str, Any]) -> None:
    found = await extractor(Told(saying({**HOBBY, **said}), NO)).extract(request("我喜欢烘焙"))
    assert (found.candidates, found.usage.opinions) == ((), 1)


@pytest.mark.parametrize("answer", ["yes", {"verdicts": []}, {"verdicts": ["yes", "yes"]}, {"verdicts": ["maybe"]}, ModelFailed("the model", "away", 3.0)])  # fmt: skip
async def test_an_unusable_second_opinion_is_a_failed_try_and_never_a_yes(answer: Any) -> None:
    with pytest.raises(ExtractionFailed) as caught:
        await extractor(Told(saying(CITY), answer)).extract(request("我住在苏州"))
    assert caught.value.tokens >= ONE_CALL.tokens
    found = await extractor(Told(saying(CITY), answer)).extract(request("我住在苏州", last_try=True))
    assert found.extractor == "rules/1 for told-1"


async def test_a_second_opinion_that_was_cut_is_unusable() -> None:
    cut = Completion(text='{"verdicts": ["yes"]}', finish=Finish.LENGTH, usage=ONE_CALL)
    with pytest.raises(ExtractionFailed):
        await extractor(Told(saying(CITY), cut)).extract(request("我住在苏州"))


async def test_names_are_short_and_printable() -> None:
    made = extractor(Told({"nothing": True}, name="/models/小模型\n" + "x" * 200))
    assert made.name.isprintable() and made.name.isascii() and len(made.name) <= 96
    assert made.name.startswith("llm/extract-1//models/???")


async def test_the_model_is_let_go() -> None:
    class Closing(Told):
        closed = False

        async def aclose(self) -> None:
            self.closed = True

    model = Closing({"nothing": True})
    made: ModelExtractor = extractor(model)
    await made.aclose()
    await extractor(Told({"nothing": True})).aclose()
    assert model.closed
