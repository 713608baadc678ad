"""Texts that are valid and made to be slow: they must not hold up the other users of a host."""

from __future__ import annotations

import time

import pytest

from tests.runtime.conftest import Api, Someone

pytestmark = pytest.mark.asyncio(loop_scope="module")

SLOW = {
    "spaces inside": "x" + " " * 31_998 + "y",
    "clauses": "我对花生过敏，" * 4500,
    "marks": "http://" * 4500,
    "commas": "," * 32_000,
    "quotes": '"' * 32_000,
    "digits": "1-" * 16_000,
}


@pytest.mark.parametrize("content", SLOW.values(), ids=SLOW.keys())
async def test_an_enormous_text_takes_its_length_and_not_the_square_of_it(api: Api, content: str) -> None:
    user = Someone(api, "slow")
    started_s = time.monotonic()
    said = await user.say(content)
    assert said["status"] == "done"
    assert time.monotonic() - started_s < 10  # these took up to two minutes, and a lease with them
