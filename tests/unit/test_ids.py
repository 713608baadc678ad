"""Identities: what is accepted, and that every text form leads back to the same value."""

from __future__ import annotations

import pickle
import string
import unicodedata
from typing import Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hermes_memory.core.ids import MAX_ID_CHARS, UserKey, check_id, digest
from hermes_memory.errors import InvalidId

FORBIDDEN: tuple[Literal["Cc"], Literal["Cs"], Literal["Zl"], Literal["Zp"]] = ("Cc", "Cs", "Zl", "Zp")


def usable(value: str) -> bool:
    return value not in {".", ".."} and not value.isspace()


ids = st.text(st.characters(exclude_categories=FORBIDDEN), min_size=1, max_size=MAX_ID_CHARS).filter(usable)
keys = st.builds(UserKey, ids, ids)


@given(ids)
@example("a/b")
@example("%2F")
@example("👨‍👩‍👧")
@example("...")
def test_every_usable_text_is_an_id(value: str) -> None:
    assert check_id(value, "user") == value


@given(keys)
@example(UserKey("a/b", "c"))
@example(UserKey("a", "b/c"))
@example(UserKey("a%2Fb", "c d+e"))
@example(UserKey("应用", "用户 🌶️"))
def test_a_key_leads_back_from_its_text(key: UserKey) -> None:
    text = str(key)
    assert UserKey.parse(text) == key
    assert str(UserKey.parse(text)) == text
    assert text.count("/") == 1
    assert text.isascii()


@given(keys, keys)
def test_only_equal_keys_share_a_text_or_a_hash(one: UserKey, other: UserKey) -> None:
    assert (one == other) == (str(one) == str(other)) == (one.hashed == other.hashed)
    assert (one == other) <= (hash(one) == hash(other))


@given(keys)
def test_a_hash_is_40_lower_hex_digits_and_tells_nothing(key: UserKey) -> None:
    assert len(key.hashed) == 40
    assert set(key.hashed) <= set(string.hexdigits.lower())


@given(keys)
def test_a_key_survives_pickling(key: UserKey) -> None:
    assert pickle.loads(pickle.dumps(key)) == key  # noqa: S301 - our own bytes


@given(st.text(max_size=20), st.sampled_from(FORBIDDEN), st.text(max_size=20), st.data())
def test_control_characters_and_surrogates_are_refused(
    left: str, category: str, right: str, data: st.DataObject
) -> None:
    bad = data.draw(st.characters(categories=[category]))  # type: ignore[list-item]  # hypothesis' own Literal
    value = left + bad + right
    with pytest.raises(InvalidId) as caught:
        check_id(value, "session")
    assert caught.value.field == "session"
    assert not any(unicodedata.category(char) in FORBIDDEN for char in str(caught.value))


@pytest.mark.parametrize(
    "value", ["", ".", "..", " ", "\u3000", "x" * (MAX_ID_CHARS + 1), None, 7, b"bytes", ["x"]]
)
def test_what_is_no_id_is_refused(value: object) -> None:
    with pytest.raises(InvalidId):
        check_id(value, "user")
    with pytest.raises(InvalidId):
        UserKey("app", value)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(InvalidId):
        UserKey(value, "ann")  # type: ignore[arg-type]  # on purpose


@pytest.mark.parametrize("text", ["", "app", "app/", "/ann", "a/b/c", "app/%0A", "app/.."])
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(InvalidId):
        UserKey.parse(text)


def test_an_error_never_echoes_the_value() -> None:
    with pytest.raises(InvalidId) as caught:
        check_id("secret\n", "user")
    assert "secret" not in str(caught.value)


@given(st.lists(st.text(max_size=8), max_size=5), st.lists(st.text(max_size=8), max_size=5))
def test_no_two_lists_of_parts_share_a_digest(one: list[str], other: list[str]) -> None:
    one = [part for part in one if part.isprintable()]
    other = [part for part in other if part.isprintable()]
    assert (one == other) == (digest(*one) == digest(*other))


def test_parts_are_delimited_and_the_size_is_bytes() -> None:
    assert digest("ab", "c") != digest("a", "bc") != digest("abc")
    assert digest("", "") != digest("") != digest()
    assert len(digest("x")) == 24
    assert len(digest("x", size=20)) == 40
