"""The OpenAI-compatible embedder against a server on a real port: what is sent, and every way it can go wrong."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import numpy as np
import pytest

from hermes_memory.adapters.embedders.openai_compatible import OpenAIEmbedder
from hermes_memory.adapters.openai_endpoint import Endpoint
from hermes_memory.errors import HermesError, InvalidConfig, ModelFailed
from hermes_memory.ports.embedder import EmbedderInfo
from tests.openai_server import DIMENSION, Fault, OpenAIServer, serving

INFO = EmbedderInfo("test-model", DIMENSION)
SECRET = "我的秘密是海獭 my secret otter"
BUSY, BROKEN = Fault(status=429), Fault(status=500, body=f"cannot embed {SECRET}".encode())


@pytest.fixture
async def server() -> AsyncIterator[OpenAIServer]:
    async with serving() as made:
        yield made


@pytest.fixture
async def made() -> AsyncIterator[list[OpenAIEmbedder]]:
    """The embedders of a test, closed at its end."""
    embedders: list[OpenAIEmbedder] = []
    yield embedders
    for embedder in embedders:
        await embedder.aclose()


Make = Callable[..., OpenAIEmbedder]


@pytest.fixture
def make(server: OpenAIServer, made: list[OpenAIEmbedder]) -> Make:
    def build(
        info: EmbedderInfo = INFO, *, options: dict[str, Any] | None = None, **patience: Any
    ) -> OpenAIEmbedder:
        made.append(OpenAIEmbedder(server.endpoint(**patience), info, **(options or {})))
        return made[-1]

    return build


async def test_what_is_sent(server: OpenAIServer, make: Make) -> None:
    embedder = make(options={"query_prefix": "query: ", "passage_prefix": "passage: "}, key="sk-1")
    await embedder.queries(["晚饭 \n 吃什么"])
    await embedder.passages(["我不吃香菜", ""])
    assert server.paths == {"/v1/embeddings": 2}
    assert server.asked == [
        {"model": "test-model", "input": ["query: 晚饭 吃什么"]},
        {"model": "test-model", "input": ["passage: 我不吃香菜", "passage: "]},
    ]
    assert {headers["authorization"] for headers in server.headers} == {"Bearer sk-1"}


async def test_without_a_key_none_is_sent_and_a_blank_text_is_a_space(
    server: OpenAIServer, make: Make
) -> None:
    await make(options={"send_dimension": True}).passages([""])
    assert server.asked == [{"model": "test-model", "dimensions": DIMENSION, "input": [" "]}]
    assert "authorization" not in server.headers[0]


async def test_batches_keep_the_order_and_queries_are_remembered(server: OpenAIServer, make: Make) -> None:
    embedder = make(options={"batch": 4})
    texts = [f"text {number}" for number in range(10)]
    passages = await embedder.passages(texts)
    assert [len(body["input"]) for body in server.asked] == [4, 4, 2]
    queries = await embedder.queries([*texts, *texts])
    assert [len(body["input"]) for body in server.asked[3:]] == [4, 4, 2]
    assert np.allclose(queries[:10], passages, atol=1e-6)
    await embedder.queries(texts[::-1])
    assert len(server.asked) == 6


async def test_an_answer_in_another_order_is_put_in_order(server: OpenAIServer, make: Make) -> None:
    embedder = make()
    expected = await embedder.passages(["a tea", "a dog", "a house"])
    server.faults = [Fault(change=lambda answer: {"data": answer["data"][::-1]})]
    assert np.allclose(await embedder.passages(["a tea", "a dog", "a house"]), expected)
    unnumbered = [
        Fault(change=lambda answer: {"data": [{"embedding": one["embedding"]} for one in answer["data"]]})
    ]
    server.faults = unnumbered
    assert np.allclose(await embedder.passages(["a tea", "a dog", "a house"]), expected)


# what passes


@pytest.mark.parametrize(
    "faults", [[BUSY], [BROKEN, Fault(status=503)], [Fault(drop=True)], [Fault(status=408)]]
)
async def test_what_passes_is_tried_again(faults: list[Fault], server: OpenAIServer, make: Make) -> None:
    server.faults = list(faults)
    assert (await make(attempts=3).passages(["a"])).shape == (1, DIMENSION)
    assert len(server.asked) == len(faults) + 1


@pytest.mark.parametrize(("fault", "says"), [(BUSY, "status 429"), (BROKEN, "status 500")])
async def test_tries_are_bounded(fault: Fault, says: str, server: OpenAIServer, make: Make) -> None:
    server.faults = [fault] * 9
    with pytest.raises(ModelFailed, match=f"the model gave no usable answer: {says}") as caught:
        await make(attempts=3).passages(["a"])
    assert (len(server.asked), caught.value.retryable) == (3, True)


async def test_pauses_double_and_heed_what_the_endpoint_asks_for(server: OpenAIServer, make: Make) -> None:
    pauses: list[float] = []

    async def noted(seconds: float) -> None:
        pauses.append(seconds)

    long = ((b"retry-after", b"3"),)
    server.faults = [BUSY, BUSY, Fault(status=429, headers=long)]
    await make(attempts=5, backoff_s=0.25, sleep=noted).passages(["a"])
    assert 0.125 <= pauses[0] <= 0.25
    assert 0.25 <= pauses[1] <= 0.5
    assert pauses[2:] == [3.0]


async def test_an_endpoint_that_never_answers_is_given_up(server: OpenAIServer, make: Make) -> None:
    server.faults = [Fault(hang=True)] * 2
    started = time.monotonic()
    with pytest.raises(ModelFailed, match=r"nothing within 1 s"):
        await make(attempts=2, timeout_s=1).passages(["a"])
    assert 2 <= time.monotonic() - started < 20
    assert sorted([await server.hanging.get() for _ in range(4)]) == [
        "asked",
        "asked",
        "given up",
        "given up",
    ]


async def test_an_endpoint_that_is_not_there(make: Make) -> None:
    nowhere = OpenAIEmbedder(
        Endpoint("http://127.0.0.1:9/v1", key=None, what="the embedder", section="embedder", timeout_s=2.0),
        INFO,
    )
    with pytest.raises(ModelFailed, match="ConnectError"):
        await nowhere.passages(["a"])
    await nowhere.aclose()
    await nowhere.aclose()


async def test_a_cancelled_call_lets_go_and_the_next_is_answered(server: OpenAIServer, make: Make) -> None:
    embedder = make(attempts=3, timeout_s=30.0)
    server.faults = [Fault(hang=True)]
    call = asyncio.create_task(embedder.queries(["a"]))
    assert await server.hanging.get() == "asked"
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await server.hanging.get() == "given up"
    assert (await embedder.queries(["a"])).shape == (1, DIMENSION)
    assert len(server.asked) == 2


# what does not


def spoiled(change: Callable[[list[Any]], Any]) -> Fault:
    """An answer whose vectors are changed."""

    def spoil(answer: dict[str, Any]) -> Any:
        rows = [item["embedding"] for item in answer["data"]]
        changed = change(rows)
        return {"data": [{"index": place, "embedding": row} for place, row in enumerate(changed)]}

    return Fault(change=spoil)


BAD_ANSWERS: list[tuple[Fault, type[HermesError], str]] = [
    (
        spoiled(lambda rows: [row[:5] for row in rows]),
        InvalidConfig,
        "embedder.dimension: is 64, and test-model gives",
    ),
    (spoiled(lambda rows: [[float("nan")] * DIMENSION, rows[1]]), ModelFailed, "not a number"),
    (spoiled(lambda rows: [[None] * DIMENSION, rows[1]]), ModelFailed, "not a number"),
    (spoiled(lambda rows: [[0.0] * DIMENSION, rows[1]]), ModelFailed, "zero"),
    (spoiled(lambda rows: rows[:1]), ModelFailed, "not one vector for each of 2 texts"),
    (spoiled(lambda rows: [*rows, rows[0]]), ModelFailed, "not one vector for each of 2 texts"),
    (spoiled(lambda rows: [rows[0], rows[1][:7]]), ModelFailed, "holds no vectors"),
    (spoiled(lambda rows: ["words", "words"]), ModelFailed, "holds no vectors"),
    (spoiled(lambda rows: [[[1.0]], [[1.0]]]), ModelFailed, "not one vector for each"),
    (Fault(change=lambda answer: {"data": [answer["data"][0]] * 2}), ModelFailed, "not one vector for each"),
    (Fault(change=lambda _: {"data": 7}), ModelFailed, "holds no vectors"),
    (Fault(change=lambda _: {"data": ["x", "y"]}), ModelFailed, "holds no vectors"),
    (Fault(change=lambda _: []), ModelFailed, "holds no vectors"),
    (Fault(change=lambda _: {"error": SECRET}), ModelFailed, "holds no vectors"),
    (Fault(body=b"<html>"), ModelFailed, "is not JSON"),
    (Fault(body=b"\xff\xfe\x00"), ModelFailed, "is not JSON"),
    (Fault(status=401), InvalidConfig, r"embedder.key_env: the endpoint refuses the key \(status 401\)"),
    (Fault(status=403), InvalidConfig, r"refuses the key \(status 403\)"),
    (Fault(status=404), InvalidConfig, "no such path or model"),
    (Fault(status=400, body=SECRET.encode()), InvalidConfig, r"refuses the request \(status 400\)"),
    (Fault(status=307, headers=((b"location", b"http://127.0.0.1:9/"),)), InvalidConfig, r"\(status 307\)"),
]


@pytest.mark.parametrize(("fault", "error", "says"), BAD_ANSWERS, ids=[says for _, _, says in BAD_ANSWERS])
async def test_a_bad_answer_is_told_and_not_tried_again(
    fault: Fault, error: type[HermesError], says: str, server: OpenAIServer, make: Make
) -> None:
    server.faults = [fault]
    with pytest.raises(error, match=says) as caught:
        await make(attempts=3).passages(["a tea", "a dog"])
    assert type(caught.value) is error
    assert len(server.asked) == 1


async def test_no_text_and_no_key_in_logs_and_errors(
    server: OpenAIServer, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    embedder = make(attempts=2, key="sk-very-secret", timeout_s=0.2)
    faults = [BROKEN, BROKEN, *(fault for fault, _, _ in BAD_ANSWERS), Fault(hang=True), Fault(hang=True)]
    said: list[str] = []
    while faults:
        count = 2 if faults[0] in {BROKEN, Fault(hang=True)} else 1
        server.faults, faults = faults[:count], faults[count:]
        with pytest.raises(HermesError) as caught:
            await embedder.passages([SECRET, SECRET])
        said += [
            str(caught.value),
            caught.value.detail,
            repr(caught.value.args),
            repr(caught.value.__cause__),
        ]
    assert len(said) == 4 * (len(BAD_ANSWERS) + 2)
    ours = [record for record in caplog.records if not record.name.startswith(("asyncio", "uvicorn"))]
    said += [f"{record.getMessage()} {record.exc_text}" for record in ours]
    for secret in ("otter", "海獭", "very-secret", json.dumps("海獭")[1:-1]):
        assert not [text for text in said if secret in text]


# the endpoint's own settings


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("", "must start with http"), ("api.example.com/v1", "must start with http"), ("ftp://x/v1", "must start"),
        ("http://", "name a host"), ("http://a\x00b/", "is not a URL"), ("https://me:pw@host/v1", "without user"),
        ("https://host/v1?key=1", "without user, query"), ("https://host/v1#x", "without user, query"),
    ],
)  # fmt: skip
def test_a_bad_url_is_refused(url: str, says: str) -> None:
    with pytest.raises(InvalidConfig, match=says) as caught:
        Endpoint(url, key=None, what="x", section="embedder", timeout_s=1.0)
    assert (caught.value.field, "pw" in str(caught.value)) == ("embedder.base_url", False)


@pytest.mark.parametrize("key", ["", "a b", "a\nb", "钥匙"])
def test_a_key_that_no_header_can_carry_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(InvalidConfig, match="holds no usable key") as caught:
        Endpoint("https://host/v1", key=key, what="x", section="embedder", timeout_s=1.0)
    assert not key or key not in str(caught.value)


def test_one_embedder_serves_one_event_loop_after_the_other() -> None:
    async def once(embedder: OpenAIEmbedder, server_url: list[str]) -> int:
        async with serving() as server:
            embedder._endpoint._base = server.endpoint()._base
            server_url.append(server.url)
            vectors = await embedder.passages(["a"])
            await embedder.aclose()
            return len(vectors)

    urls: list[str] = []
    endpoint = Endpoint("http://127.0.0.1:9/v1", key=None, what="x", section="embedder", timeout_s=5.0)
    embedder = OpenAIEmbedder(endpoint, INFO)
    assert [asyncio.run(once(embedder, urls)) for _ in range(3)] == [1, 1, 1]
    assert len(endpoint._pools) == 0
