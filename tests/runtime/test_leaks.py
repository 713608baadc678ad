"""No secret reaches the store, the log, the metrics or an error (SPEC §4.1.3), whatever field it comes in by."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import pytest_asyncio

from hermes_memory.config import load_settings
from tests.runtime.conftest import Api, Someone, check_problem, message, serving
from tests.unit.secret_samples import Sample, bare, samples

pytestmark = pytest.mark.asyncio(loop_scope="module")

ALL = samples(22)
ONE_OF_EACH = list(
    {(sample.name, sample.language): sample for sample in ALL if len(sample.text) <= 256}.values()
)
AT_ONCE = 50
SHORT = 5  # four digits in a row are anything
OF_THE_CLIENT = ("httpx", "httpcore")
LONG = 11  # so many letters and digits in a row mean the secret, wherever they stand


@dataclass
class Seen:
    """Everything that came out."""

    texts: dict[str, list[str]] = field(default_factory=dict)

    def note(self, where: str, text: str) -> None:
        self.texts.setdefault(where, []).append(text)


class Gathered(logging.Handler):
    """Every log record, as it would be written, with its arguments and its traceback."""

    def __init__(self, seen: Seen) -> None:
        super().__init__(logging.DEBUG)
        self._seen = seen
        self.setFormatter(logging.Formatter("%(name)s %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith(OF_THE_CLIENT):
            return  # a caller's own log of the addresses it asks
        self._seen.note("log", f"{self.format(record)} {record.args!r}")


def held(secrets: Iterable[Sample], text: str) -> list[str]:
    """The sentences whose secret ``text`` holds."""
    squeezed = bare(text)
    return [f"{sample.name}: {sample.text}" for sample in secrets if _holds(sample, text, squeezed)]


def _holds(sample: Sample, text: str, squeezed: str) -> bool:
    """Long ones however they are written, short ones as a word, the shortest as a value or behind their own words."""
    secret, wanted = sample.secret, bare(sample.secret)
    if len(wanted) >= LONG:
        return wanted in squeezed
    if secret not in text:
        return False
    if len(secret) > SHORT:
        return re.search(rf"(?<![0-9A-Za-z.]){re.escape(secret)}(?![0-9A-Za-z])", text) is not None
    before = sample.text.partition(secret)[0][-SHORT:]
    return f'"{secret}"' in text or f"'{secret}'" in text or (bool(before) and before + secret in text)


def files(data: Path) -> Iterator[tuple[str, str]]:
    for file in sorted(data.rglob("*")):
        if file.is_file():
            yield file.name, file.read_bytes().decode("utf-8", errors="replace")


@pytest.fixture(scope="module")
def seen() -> Iterator[Seen]:
    """What is logged from now on, at DEBUG, by anybody; and what the tests note."""
    ZoneInfo(load_settings().api.default_timezone)  # the first look reads a file, which a loop must not
    made = Seen()
    handler, root = Gathered(made), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield made
    root.removeHandler(handler)
    root.setLevel(level)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def leaky(tmp_path_factory: pytest.TempPathFactory, seen: Seen) -> AsyncIterator[Api]:
    del seen  # the log is listened to before the app starts
    batch = {"delay_s": 0.01, "backoff_s": 0.01, "turns": AT_ONCE, "chars": 20_000}
    async with serving(tmp_path_factory.mktemp("leaks"), {"batch": batch}) as client:
        yield client


async def nothing_is_held(user: Someone, seen: Seen, secrets: list[Sample]) -> None:
    """Look everywhere: the files as they lie there, every answer about the user, the metrics, the log."""
    for path in ("/export", "/memories", "/summary", "/profile", "/audit", "/confirmations"):
        seen.note(path, (await user.api.get(user.path + path)).text)
    seen.note("/metrics", (await user.api.get("/metrics")).text)
    for name, text in files(user.api.data):
        assert not held(secrets, text), name
    for where, texts in seen.texts.items():
        assert not held(secrets, "\n".join(texts)), where
    seen.texts.clear()


@pytest.mark.parametrize("role", ["user", "assistant", "system", "tool"])
async def test_spec_4_1_3_no_turn_leaves_its_secret_anywhere(leaky: Api, seen: Seen, role: str) -> None:
    user = Someone(leaky, f"turns-{role}")
    some = ALL if role == "user" else ONE_OF_EACH
    for start in range(0, len(some), AT_ONCE):
        messages = [
            message(sample.text, f"m-{role}-{start + at}", role)
            for at, sample in enumerate(some[start : start + AT_ONCE])
        ]
        sent = {"session_id": f"s-{role}-{start}", "messages": messages}
        seen.note(
            "answers",
            str(await user.call("POST", "/messages", json=sent, params={"wait": "true", "timeout_s": 30})),
        )
    exported = await user.get("/export")
    assert len(exported["turns"]) == len(some)
    assert sum("[" in turn["content"] for turn in exported["turns"]) == len(some)
    await nothing_is_held(user, seen, some)


async def test_spec_4_1_3_no_edit_and_no_reason_leaves_its_secret_anywhere(leaky: Api, seen: Seen) -> None:
    user = Someone(leaky, "hands")
    record = await user.remember("I live in Oslo.")
    for sample in ONE_OF_EACH:
        answer = await user.api.patch(
            f"{user.path}/memories/{record['id']}",
            json={"content": sample.text},
            headers={"If-Match": str(record["version"])},
        )
        assert answer.status_code == 200, answer.text
        seen.note("answers", answer.text)
        record = answer.json()
    for number, sample in enumerate(ONE_OF_EACH[:40]):
        cat = await user.remember(f"I have a cat called Tom{number}x.")
        path = f"/memories/{cat['id']}"
        seen.note("answers", str(await user.call("POST", f"{path}/freeze", json={"reason": sample.text})))
        asked = {"reason": sample.text, "source_session_id": user.session}
        challenge = await user.call("POST", f"{path}/unfreeze", ok=202, json=asked)
        token = await user.call(
            "POST", f"{path}/unfreeze/{challenge['challenge_id']}", json={"answer": challenge["code"]}
        )
        headers = {"If-Match": str((await user.get(path))["version"]), "Hermes-Unfreeze": token["token"]}
        seen.note(
            "answers",
            str(
                await user.call(
                    "PATCH", path, json={"content": f"I have a cat called Tim{number}x."}, headers=headers
                )
            ),
        )
    await nothing_is_held(user, seen, ONE_OF_EACH)


async def test_spec_4_1_3_no_query_scene_or_statement_leaves_its_secret_anywhere(
    leaky: Api, seen: Seen
) -> None:
    user = Someone(leaky, "asks")
    fit = [sample for sample in ONE_OF_EACH if len(sample.text) <= 64 and "\n" not in sample.text]
    assert len(fit) > 30
    for sample in ONE_OF_EACH:
        seen.note("answers", str(await user.call("POST", "/recall", json={"query": sample.text})))
        await user.api.post(f"{user.path}/memories", json={"content": sample.text})
    for number, sample in enumerate(fit):
        sent = {
            "session_id": f"scene-{number}",
            "scene": sample.text,
            "messages": [message(f"This trip I'd rather sleep in tent {number}.")],
        }
        await user.call("POST", "/messages", json=sent, params={"wait": "true"})
        await user.call("POST", "/recall", json={"query": "tent", "scene": sample.text})
    await nothing_is_held(user, seen, ONE_OF_EACH)


async def test_spec_4_1_3_no_error_echoes_a_secret(leaky: Api, seen: Seen) -> None:
    user = Someone(leaky, "wrong")
    record = await user.remember("I live in Oslo.")
    for sample in ONE_OF_EACH:
        secret = sample.secret
        wrong: list[tuple[str, str, dict[str, Any]]] = [
            ("POST", "/messages", {"session_id": "s", "messages": [{"role": secret, "content": secret}]}),
            ("POST", "/messages", {"session_id": "s", "messages": [message("x", created_at=secret)]}),
            (
                "POST",
                "/messages",
                {"session_id": "s", "messages": [message("x")], secret: 1, "timezone": secret},
            ),
            ("POST", "/recall", {"query": sample.text, "top_k": secret}),
            ("POST", "/recall", {"query": sample.text, "include": [secret]}),
            ("PATCH", f"/memories/{record['id']}", {"content": secret, "scope": secret}),
            ("POST", f"/memories/{record['id']}/unfreeze", {"reason": secret, "source_session_id": "nobody"}),
        ]
        for method, path, body in wrong:
            answer = await user.api.request(method, user.path + path, json=body)
            check_problem(answer)
            seen.note("problems", answer.text)
        for path in ("/memories/{}", "/confirmations/{}", "/memories?{}=1"):
            answer = await user.api.get(
                (user.path + path).replace("{}", re.sub(r"[/?#\s%]", "", secret)[:100])
            )
            check_problem(answer)
            seen.note("problems", answer.text)
    await nothing_is_held(user, seen, ONE_OF_EACH)


async def test_spec_4_1_3_the_rest_of_a_message_goes_on(leaky: Api) -> None:
    """“My card is …, and I live in Oslo”: Oslo is remembered."""
    for number, sample in enumerate(ONE_OF_EACH):
        if sample.name.startswith(("address", "private key", "jwt")):
            continue
        user = Someone(leaky, f"rest-{number}")
        rest, city = ("我住在苏州。", "苏州") if sample.language == "zh" else ("I live in Oslo.", "Oslo")
        await user.say(f"{sample.text}{'。' if sample.language == 'zh' else '. '}{rest}")
        kept = [record for record in (await user.get("/memories"))["memories"] if record["object"] == city]
        assert kept, sample.text


async def test_spec_4_1_3_an_address_keeps_city_and_district_as_the_place_to_live(leaky: Api) -> None:
    user = Someone(leaky, "address")
    await user.say("I live at 221B Baker Street, London NW1 6XE.")
    assert not held([Sample("address", "en", "", "221B Baker Street")], str(await user.get("/export")))
    other = Someone(leaky, "address-zh")
    await other.say("我住在北京市海淀区中关村大街27号1101室")
    (turn,) = (await other.get("/export"))["turns"]
    assert turn["content"] == "我住在北京市海淀区[address]"
