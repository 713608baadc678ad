"""What a model may answer, and what its schema asks of guided decoding."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from hermes_memory.adapters.model_extractor.contract import (
    MAX_ANSWER_CHARS,
    MAX_STATEMENTS,
    Unusable,
    opinion_schema,
    parse,
    parse_verdicts,
    schema,
)
from hermes_memory.core.model import Category, Polarity

STATEMENT = {"quote": "我住在苏州", "turn": "T1", "object": "苏州", "dimension": "city"}


def answer(**changes: Any) -> str:
    return json.dumps({"statements": [{**STATEMENT, **changes}]}, ensure_ascii=False)


def nodes(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from nodes(child)


def test_what_is_left_out_has_its_default() -> None:
    statement = parse(answer()).statements[0]
    assert (statement.subject, statement.polarity, statement.content) == ("user", Polarity.POSITIVE, "")
    assert statement.category is None and statement.importance is None


def test_every_field_can_be_given() -> None:
    given = {
        "content": "我住在苏州", "subject": "user", "predicate": "住在", "polarity": "-", "negative": True,
        "category": "FACT", "layer": "identity", "granularity": "SPAN", "scope": "scene", "act": "directive",
        "source": "inferred", "intent": "CORRECTION", "emotional": True, "importance": 1, "stability": 0.5,
        "safety": True, "when": "去年", "topic": "home", "entities": ["苏州"],
    }  # fmt: skip
    statement = parse(answer(**given)).statements[0]
    assert (statement.category, statement.polarity, statement.importance) == (
        Category.FACT,
        Polarity.NEGATIVE,
        1.0,
    )
    assert statement.entities == ("苏州",)


def test_an_empty_object_and_nothing_are_answers() -> None:
    assert not parse("{}").statements
    assert parse('{"nothing": true}').nothing


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "not_json"),
        ("Sure! Here it is:", "not_json"),
        ('```json\n{"nothing": true}\n```', "not_json"),
        ('{"nothing": true} and that is all', "not_json"),
        ('{"statements": [{"quote": "我住', "not_json"),
        ('{"nothing": "\\ud800"}', "not_json"),
        ("\ud800", "not_json"),
        ("[" * 50_000, "not_json"),
        ("[]", "schema"),
        ('{"nothing": 1}', "schema"),
        ('{"nothing": true, "statements": [' + json.dumps(STATEMENT) + "]}", "schema"),
        ('{"more": 1}', "schema"),
        (answer(more="x"), "schema"),
        (answer(quote=1), "schema"),
        (answer(quote=""), "schema"),
        (answer(quote="x" * 401), "schema"),
        (answer(content="x" * 257), "schema"),
        (answer(object="a\nb"), "schema"),
        (answer(content="a\u0000b"), "schema"),
        (answer(importance="1"), "schema"),
        (answer(importance=1.5), "schema"),
        (answer(polarity="positive"), "schema"),
        (answer(negative="false"), "schema"),
        (answer(source="operator"), "schema"),
        (answer(entities=["x"] * 9), "schema"),
        ('{"confirmations": [{"memory": "01890a5d-ac96-774b-bcce-b302099a8057", "turn": "T1", "quote": "x"}]}', "schema"),
        ('{"corrections": [{"memory": "M1", "statement": 0}]}', "schema"),
        (json.dumps({"statements": [STATEMENT] * (MAX_STATEMENTS + 1)}), "schema"),
        (answer(quote="x" * MAX_ANSWER_CHARS), "too_large"),
    ],
)  # fmt: skip
def test_what_breaks_the_contract_is_no_answer(text: str, code: str) -> None:
    with pytest.raises(Unusable) as caught:
        parse(text)
    assert caught.value.code == code


def test_the_error_says_where_and_never_what() -> None:
    with pytest.raises(Unusable) as caught:
        parse(json.dumps({"statements": [{**STATEMENT, "object": 5, "秘密": "hunter2"}]}))
    assert "statements.0.object" in str(caught.value)
    assert "秘密" not in str(caught.value) and "hunter2" not in str(caught.value)


def test_the_schema_keeps_to_what_guided_decoding_takes() -> None:
    refused = {"uniqueItems", "multipleOf", "format", "allOf", "pattern", "title", "description", "default"}
    for document in (schema(["city", "name"]), opinion_schema()):
        seen = [node for node in nodes(document) if "type" in node or "enum" in node]
        assert seen
        for node in seen:
            assert not refused & node.keys(), node
        objects = [node for node in seen if node.get("type") == "object"]
        assert all(node["additionalProperties"] is False for node in objects)


def test_the_quote_comes_first_and_the_dimensions_are_named() -> None:
    properties = schema(["city", "name"])["$defs"]["Statement"]["properties"]
    assert next(iter(properties)) == "quote"
    assert properties["dimension"]["enum"] == ["city", "name"]
    assert "enum" not in schema()["$defs"]["Statement"]["properties"]["dimension"]


def test_verdicts_are_one_word_each() -> None:
    assert parse_verdicts('{"verdicts": ["yes", "no"]}', 2) == (True, False)
    for text in (
        '{"verdicts": ["yes"]}',
        '{"verdicts": ["yes", "maybe"]}',
        "{}",
        "yes, no",
        '{"verdicts": [true, false]}',
    ):
        with pytest.raises(Unusable):
            parse_verdicts(text, 2)
