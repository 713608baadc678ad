"""Whatever a language model answers: words of the user's turns, or ExtractionFailed; never another error."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from hermes_memory.adapters.model_extractor.contract import Unusable, parse, schema
from hermes_memory.core.candidate import Extraction, ExtractionRequest, Usage
from hermes_memory.core.model import Category, Role
from hermes_memory.core.reasons import Reason
from hermes_memory.errors import ExtractionFailed
from hermes_memory.ports.language_model import Completion, Finish
from hermes_memory.testing.builders import a_memory, a_turn
from tests.hostile_answers import cases
from tests.model_answers import Told, extractor
from tests.property.test_extraction import WORDS, texts

RECORDED = [*cases("right"), *cases("wrong")]
DEFINITIONS = schema()["$defs"]

pieces = st.one_of(
    st.sampled_from(WORDS), st.text(max_size=8), st.sampled_from(["T1", "T2", "T3", "M1", "M2", ""])
)
words = st.lists(pieces, max_size=6).map("".join)
usage = st.builds(Usage, calls=st.just(1), tokens_in=st.integers(0, 99), tokens_out=st.integers(0, 99))


def of_schema(node: dict[str, Any], said: str) -> st.SearchStrategy[Any]:
    """Values that a JSON schema allows; strings are mostly words of what was said."""
    if "$ref" in node:
        return of_schema(DEFINITIONS[node["$ref"].rsplit("/", 1)[1]], said)
    if "enum" in node:
        return st.sampled_from(node["enum"])
    if node["type"] == "string" and node.get("maxLength") == 4:
        return st.sampled_from(["M1", "M2", "T1", "T3", "M9"])
    if node["type"] == "string":
        cut = st.tuples(st.integers(0, len(said)), st.integers(1, 40)).map(
            lambda at: said[at[0] : at[0] + at[1]]
        )
        return st.one_of(cut, cut, words).map(lambda text: (text or "我")[: node.get("maxLength", 40)])
    if node["type"] == "array":
        return st.lists(of_schema(node["items"], said), max_size=3)
    if node["type"] == "object":
        fields = {name: of_schema(field, said) for name, field in node["properties"].items()}
        needed = {name: fields.pop(name) for name in node.get("required", [])}
        return st.fixed_dictionaries(needed, optional=fields)
    kinds = {"boolean": st.booleans(), "integer": st.integers(1, 5), "number": st.floats(0, 1)}
    return kinds[node["type"]]


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, str]:
    """A recorded text with a recorded answer, of which a stretch was changed."""
    case = draw(st.sampled_from(RECORDED))
    text = case.said[:4000]
    start = draw(st.integers(0, len(text)))
    return case.text, text[:start] + draw(words) + text[start + draw(st.integers(0, 20)) :]


@st.composite
def shaped(draw: st.DrawFn) -> tuple[str, str]:
    """A text, and an answer of the schema about it, most of whose statements quote what stands there."""
    recorded = st.sampled_from(RECORDED).map(lambda case: case.text)
    said = draw(st.one_of(texts, recorded, recorded))
    answer = {
        name: draw(of_schema(node, said))
        for name, node in schema()["properties"].items()
        if name != "nothing"
    }
    for statement in answer["statements"]:
        statement["turn"] = draw(st.sampled_from(["T1", "T1", "T2", "T3", "T9"]))
        if said.strip() and draw(st.integers(0, 3)):
            start = draw(st.one_of(st.just(0), st.integers(0, len(said) - 1)))
            quote = said[start : start + 200].strip() or said.strip()[:200]
            first = draw(st.integers(0, len(quote) - 1))
            statement |= {"quote": quote, "object": quote[first : first + draw(st.integers(1, 12))]}
            statement.pop("when", None)
            if draw(st.booleans()):
                statement.pop("content", None)
    return said, json.dumps(_tame(answer), ensure_ascii=draw(st.booleans()))


def _tame(node: Any) -> Any:
    """Without the marks that the contract refuses: those are the other tests' matter."""
    if isinstance(node, dict):
        return {key: _tame(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_tame(value) for value in node]
    if isinstance(node, str):
        return "".join(char for char in node if char.isprintable() or char in "\u3000\xa0") or "我"
    return node


def extracted(
    said: str, answer: str, finish: Finish, opinion: str, **more: Any
) -> tuple[ExtractionRequest, Extraction | None]:
    turns = (
        a_turn(content=said, scene="work"),
        a_turn(index=1, message_id="m1", role=Role.ASSISTANT, content="你住在上海吗？ Do you like tea?"),
        a_turn(index=2, message_id="m2", content="I like tea. " + said, timezone="No/Where"),
    )
    known = (a_memory(object="上海", dimension="city", content="我住在上海"), a_memory(id="m", object="tea", dimension="drink_preference", content="I like tea"))  # fmt: skip
    request = ExtractionRequest(turns=turns, known=known, **more)
    first = Completion(text=answer, finish=finish, usage=Usage(calls=1, tokens_in=5))
    model = Told(first, first, Completion(text=opinion, finish=Finish.STOP, usage=Usage(calls=1)))
    if finish is Finish.STOP and _has_form(answer):
        model = Told(first, Completion(text=opinion, finish=Finish.STOP, usage=Usage(calls=1)))
    try:
        return request, asyncio.run(extractor(model).extract(request))
    except ExtractionFailed:
        return request, None


def _has_form(answer: str) -> bool:
    try:
        parse(answer)
    except Unusable:
        return False
    return True


def check(request: ExtractionRequest, found: Extraction | None) -> None:
    if found is None:
        return
    turns = {(turn.session_id, turn.message_id): turn for turn in request.turns}
    known = {memory.id for memory in request.known}
    for span in [*(item.span for item in found.candidates), *(item.span for item in found.affirmations)]:
        turn = turns[span.session_id, span.message_id]
        assert turn.role is Role.USER
        assert 0 <= span.start < span.end <= len(turn.content)
        assert turn.content[span.start : span.end].strip()
    for one in found.candidates:
        span = one.span
        assert one.object in turns[span.session_id, span.message_id].content[span.start : span.end]
        assert (one.category is Category.EVENT) == (one.layer is None)
        assert 0 <= one.importance <= 1 and 0 <= one.stability <= 1
        assert one.valid_from is None or one.valid_to is None or one.valid_from <= one.valid_to
    assert {one.memory_id for one in found.affirmations} <= known
    assert all(Reason(one.reason) for one in found.refusals)
    assert all((one.session_id, one.message_id) in turns for one in found.refusals)


@given(
    shaped(),
    st.sampled_from(["yes", "no", "{}", '{"verdicts": ["yes"]}', '{"verdicts": ["yes", "yes", "yes"]}']),
    st.booleans(),
)
@settings(max_examples=150)
@example(
    ("我叫，", '{"statements": [{"quote": "，", "turn": "T1", "object": "，", "dimension": "name"}]}'),
    "{}",
    True,
)
def test_an_answer_of_the_schema(asked: tuple[str, str], opinion: str, last_try: bool) -> None:
    check(*extracted(asked[0], asked[1], Finish.STOP, opinion, last_try=last_try))


@given(mutated(), st.sampled_from([*Finish]))
@settings(max_examples=150)
def test_a_mutated_answer(asked: tuple[str, str], finish: Finish) -> None:
    check(*extracted(asked[0], asked[1], finish, '{"verdicts": ["yes"]}'))


@given(texts, st.one_of(st.text(), words), st.sampled_from([*Finish]))
@settings(max_examples=60)
@example("\ud800", "\ud800", Finish.STOP)
def test_garbage(said: str, answer: str, finish: Finish) -> None:
    check(*extracted(said, answer, finish, answer))
