"""The arithmetic and the readers of the benchmark that counts a model's calls and tokens, on made-up talk."""

from __future__ import annotations

import json
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import pytest

from bench.extraction_calls import LIMITS, report
from bench.extraction_calls.answers import OurAnswers, PeerAnswers
from bench.extraction_calls.figures import ALL, Tokens, of_calls, summed, tokens
from bench.extraction_calls.recorder import DIMENSION, recording
from bench.extraction_calls.replay import Pace, Played, ours, posts
from bench.extraction_calls.talks import PAUSE_S, DataSet, Message, Talk, exchanges, pauses, persona
from bench.peers.tokens import BLOCK, Count, PrefixCache, counted, rendered
from bench.peers.venv import Call, environment
from bench.persona_chats import said_turn
from hermes_memory.adapters.dimension_file import load_dimensions
from hermes_memory.adapters.model_extractor.contract import FORM, OPINION_FORM, parse, parse_verdicts
from hermes_memory.adapters.rule_extractor import load_rule_extractor
from hermes_memory.core.candidate import ExtractionRequest, Usage
from hermes_memory.core.model import Role

DIMENSIONS = load_dimensions(files("configs") / "dimensions.toml")
RULES = load_rule_extractor(DIMENSIONS)
USER, ASSISTANT = Message("user", "hi"), Message("assistant", "hello")


def test_an_exchange_ends_with_the_assistants_last_word() -> None:
    session = (ASSISTANT, USER, USER, ASSISTANT, ASSISTANT, USER)
    assert list(exchanges(session)) == [(ASSISTANT,), (USER, USER, ASSISTANT, ASSISTANT), (USER,)]


def test_posts_name_their_session_and_say_which_is_its_last() -> None:
    talk = Talk("a", ((USER, ASSISTANT, USER), (USER,)))
    assert [(number, len(post), last) for number, post, last in posts(talk, Pace.EXCHANGES)] == [
        (0, 2, False), (0, 1, True), (1, 1, True),
    ]  # fmt: skip
    assert [(number, len(post), last) for number, post, last in posts(talk, Pace.SESSIONS)] == [
        (0, 3, True), (1, 1, True),
    ]  # fmt: skip


def test_pauses_are_natural_and_the_same_in_every_run() -> None:
    drawn = list(islice(pauses(), 50))
    assert drawn == list(islice(pauses(), 50))
    assert all(PAUSE_S[0] <= pause <= PAUSE_S[1] for pause in drawn)
    assert len(set(drawn)) > 40


def test_in_persona_chats_who_speaks_first_is_the_user(tmp_path: Path) -> None:
    rows = [{"id": "b", "text": "I ski."}, {"id": "a", "text": "  "}, {"id": "a", "text": "Nice."}]
    path = tmp_path / "chats.jsonl"
    path.write_text((json.dumps({"dialog": rows}) + "\n") * 3, encoding="utf-8")
    found = list(persona(path, 2))
    assert [talk.user for talk in found] == ["persona-0", "persona-1"]
    assert found[0].sessions == ((Message("user", "I ski."), Message("assistant", "Nice.")),)


def test_a_data_set_counts_turns_of_either_side() -> None:
    data = DataSet("x", (Talk("a", ((USER, ASSISTANT, USER),)), Talk("b", ((USER,),))))
    assert (data.turns, data.user_turns) == (4, 3)


# tokens


def test_a_chat_is_rendered_up_to_where_the_answer_begins() -> None:
    said = rendered([{"role": "system", "content": "S"}, {"role": "user", "content": "U"}])
    assert said == "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\n"


def test_the_prefix_cache_knows_whole_blocks_and_only_from_the_start() -> None:
    cache, first = PrefixCache(), list(range(BLOCK * 3))
    assert cache.read(first) == 0
    assert cache.read(first) == BLOCK * 2  # the last token is always computed
    assert (
        cache.read([*first[: BLOCK * 2 - 1], -1, *first[BLOCK * 2 :]]) == BLOCK
    )  # broken in the second block
    assert cache.read([-5, *first]) == 0  # the same, one further on
    assert cache.read([]) == 0


def test_a_block_is_known_only_with_all_that_stands_before_it() -> None:
    cache, one, other = PrefixCache(), [1] * BLOCK, [2] * BLOCK
    cache.read([*one, *other])
    assert cache.read([*other, *other, 3]) == 0


def test_a_call_is_counted_in_what_it_reads_and_writes() -> None:
    messages = [{"role": "system", "content": "x" * 40}, {"role": "user", "content": "y" * 5}]
    cache = PrefixCache()
    first = counted(messages, "four", _letters, cache)
    again = counted([messages[0], {"role": "user", "content": "z" * 5}], "four", _letters, cache)
    assert first == Count(
        read=len(rendered(messages)), cached=0, static=len(rendered(messages[:1], answered=False)), written=4
    )
    assert again.cached >= again.static_blocks > 0
    assert again.static_blocks % BLOCK == 0


def test_without_a_system_message_nothing_is_static() -> None:
    assert counted([{"role": "user", "content": "y"}], "", _letters, PrefixCache()).static == 0


def test_the_first_call_of_each_form_is_not_held_against_the_cache() -> None:
    played = a_replay(calls=[_call(FORM), _call(FORM), _call(OPINION_FORM), _call(OPINION_FORM)])
    cold, warm = Count(100, 0, 40, 5), Count(100, 32, 40, 5)
    spoilt = Count(100, 16, 40, 5)
    used = tokens(played, [cold, warm, cold, spoilt])
    assert used == Tokens(read=400, cached=48, written=20, later_read=200, later_static=64, static_missed=1)
    assert used.fresh == 352
    assert used.static_share == pytest.approx(0.32)
    assert Tokens().static_share == 0.0


def test_rows_are_summed_by_system_and_pace() -> None:
    rows = [
        of_calls(a_replay(calls=[_call(FORM)] * 3, turns=6), Tokens(read=10)),
        of_calls(a_replay(calls=[_call(FORM), _call(OPINION_FORM)], turns=4, data="b"), Tokens(read=5)),
        of_calls(a_replay(calls=[_call("json_object")], turns=4, system="mem0"), None),
    ]
    total = {(row.system, row.data): row for row in summed(rows)}
    mine = total["hermes", ALL]
    assert (mine.calls, mine.opinions, mine.turns, mine.tokens) == (5, 1, 10, Tokens(read=15))
    assert mine.calls_per_turn == 0.5
    assert mine.calls_per_user_turn == 1.0
    assert total["mem0", ALL].tokens is None


def test_without_the_peer_its_figures_are_left_out_and_the_others_held() -> None:
    played = [a_replay(calls=[_call(FORM)] * 4), a_replay(calls=[_call(FORM)], pace=Pace.SESSIONS)]
    made = report(played, None)
    assert made.figures["calls_per_turn"] == 0.4
    assert {"tokens_beside_peer", "static_not_cached"} <= made.left_out.keys()
    assert made.missed(LIMITS) == []


def test_beside_the_peer_tokens_are_compared_and_a_miss_is_one() -> None:
    played = [
        a_replay(calls=[_call(FORM)] * 6), a_replay(calls=[_call(FORM)], pace=Pace.SESSIONS),
        a_replay(calls=[_call("json_object")] * 5, system="mem0"),
    ]  # fmt: skip
    made = report(played, [Tokens(read=20, cached=10), Tokens(read=1), Tokens(read=40, cached=35)])
    assert made.figures["tokens_beside_peer"] == 0.5
    assert made.figures["fresh_beside_peer"] == 2.0
    assert {limit.figure for limit in made.missed(LIMITS)} == {"calls_per_turn", "fresh_beside_peer"}


def test_answers_that_were_no_use_are_told() -> None:
    played = [a_replay(usage=Usage(invalid=2), fell_back=1), a_replay(pace=Pace.SESSIONS)]
    assert report(played, None).figures["unusable"] == 3.0


# the endpoint's answers


def test_our_answer_keeps_to_the_contract_and_quotes_the_user() -> None:
    text = "I'm allergic to peanuts."
    answers = OurAnswers(RULES, DIMENSIONS)
    turns = (said_turn("s", 0, "Anything?", Role.ASSISTANT), said_turn("s", 1, text))
    answers.request = ExtractionRequest(turns=turns)
    answer = parse(answers(_asked(FORM)))
    assert [(said.turn, said.quote in text, said.safety) for said in answer.statements] == [
        ("T2", True, True)
    ]


def test_our_answer_is_as_short_as_the_contract_wants_it_however_long_the_user_talks() -> None:
    answers = OurAnswers(RULES, DIMENSIONS)
    text = "I was at the market " + "where I met my neighbour and her dog " * 20 + "yesterday."
    answers.request = ExtractionRequest(turns=(said_turn("s", 0, text),))
    said = parse(answers(_asked(FORM))).statements
    assert said
    assert all(one.object in text and one.quote in text for one in said)


def test_our_answer_to_small_talk_is_nothing() -> None:
    answers = OurAnswers(RULES, DIMENSIONS)
    answers.request = ExtractionRequest(turns=(said_turn("s", 0, "Thanks!"),))
    assert parse(answers(_asked(FORM))).nothing


def test_a_second_opinion_has_a_word_for_each_statement() -> None:
    asked = _asked(OPINION_FORM, json.dumps({"statements": [{}, {}, {}]}))
    assert parse_verdicts(OurAnswers(RULES, DIMENSIONS)(asked), 3) == (True, True, True)


def test_another_form_is_not_answered() -> None:
    with pytest.raises(ValueError, match="json_object"):
        OurAnswers(RULES, DIMENSIONS)({"response_format": {"type": "json_object"}, "messages": []})


def test_the_peer_is_answered_in_its_form_about_what_was_announced() -> None:
    answers = PeerAnswers(RULES)
    answers.announce(
        [{"role": "user", "content": "我对花生过敏。"}, {"role": "assistant", "content": "好的"}]
    )
    facts = json.loads(answers({}))["memory"]
    assert [(fact["id"], fact["attributed_to"]) for fact in facts] == [("0", "user")]
    assert "花生" in facts[0]["text"]
    answers.announce([{"role": "user", "content": "谢谢"}])
    assert json.loads(answers({})) == {"memory": []}


async def test_the_endpoint_writes_down_what_it_is_asked() -> None:
    told: list[Any] = []
    async with recording(lambda body: "yes") as recorder, httpx.AsyncClient(trust_env=False) as client:
        recorder.announced = told.append
        await client.post(f"{recorder.url}/announce", json=["a"])
        answered = await client.post(f"{recorder.url}/chat/completions", json=_asked(FORM))
        embedded = await client.post(f"{recorder.url}/embeddings", json={"input": ["a", "b"], "model": "m"})
    assert told == [["a"]]
    assert answered.json()["choices"][0]["message"]["content"] == "yes"
    assert recorder.calls == [Call(({"role": "user", "content": "?"},), "yes", FORM)]
    assert [len(row["embedding"]) for row in embedded.json()["data"]] == [DIMENSION, DIMENSION]
    assert recorder.embedded == 2


# a replay


def test_a_talk_in_posts_of_one_exchange_is_a_call_each_and_a_backfill_one_for_eight_turns() -> None:
    said = [Message("user", f"I have a cat called Tom{number}.") for number in range(5)]
    answered = [Message("assistant", "Nice."), *[Message("assistant", "I see.")] * 4]
    session = tuple(message for pair in zip(said, answered, strict=True) for message in pair)
    data = DataSet("made up", (Talk("someone", (session,)),))
    each = ours(data, Pace.EXCHANGES, OurAnswers(RULES, DIMENSIONS), delay_s=2.0, embedder="hash")
    burst = ours(data, Pace.SESSIONS, OurAnswers(RULES, DIMENSIONS), embedder="hash")
    patient = ours(data, Pace.EXCHANGES, OurAnswers(RULES, DIMENSIONS), delay_s=1_000.0, embedder="hash")
    assert (each.adds, len(each.calls), each.usage.invalid, each.fell_back) == (5, 5, 0, 0)
    assert (burst.adds, len(burst.calls)) == (1, 2)
    assert len(patient.calls) == 2
    assert each.stored >= 5


def test_a_peers_process_knows_nobodys_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("OPENROUTER_API_KEY", "secret")
    assert not [name for name in environment() if name.startswith(("OPENAI", "OPENROUTER"))]
    assert "127.0.0.1" in environment()["NO_PROXY"]


def a_replay(
    *, calls: list[Call] | None = None, turns: int = 10, system: str = "hermes", data: str = "a",
    pace: Pace = Pace.EXCHANGES, usage: Usage | None = None, fell_back: int = 0,
) -> Played:  # fmt: skip
    played = Played(system, data, pace, turns, turns // 2)
    played.calls, played.usage, played.fell_back = calls or [], usage or Usage(), fell_back
    return played


def _call(form: str) -> Call:
    return Call(({"role": "user", "content": "?"},), "!", form)


def _asked(form: str, content: str = "?") -> dict[str, Any]:
    form_asked = {"type": "json_schema", "json_schema": {"name": form}}
    return {"model": "m", "messages": [{"role": "user", "content": content}], "response_format": form_asked}


def _letters(text: str) -> list[int]:
    return [ord(char) for char in text]
