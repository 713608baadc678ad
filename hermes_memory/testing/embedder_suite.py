"""What every ``Embedder`` must do; an adapter's tests inherit it and give the embedder (STYLE, Tests).

class TestHash(EmbedderSuite):
    @pytest.fixture
    async def embedder(self):
        yield HashEmbedder()
"""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from hermes_memory.ports.embedder import Embedder, Vectors

TEXTS = (
    "我对花生过敏。",
    "I'm allergic to peanuts.",
    "晚饭吃什么？",
    "Meine Katze heißt Möhre 🥕",
    "ทะเล",
    "x",
    "a line\nand\tanother   one",
)
SENTENCES = TEXTS[:4]
ODD = ("", "   ", "\0", "\ud800 half a pair", "🥕" * 50, "长" * 5000)
LIKE = 0.999  # the cosine of two vectors that are the same, batched or alone


def cosines(one: Vectors, two: Vectors) -> Vectors:
    """Row by row."""
    return np.asarray(np.sum(one * two, axis=1), np.float32)


def check(vectors: Vectors, count: int, embedder: Embedder) -> None:
    """Shape, type and length are as the port says."""
    assert vectors.shape == (count, embedder.info.dimension)
    assert vectors.dtype == np.float32
    assert np.isfinite(vectors).all()
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(count), abs=1e-3)


class EmbedderSuite:
    """Inherit it with a fixture ``embedder``."""

    async def test_it_says_what_it_is(self, embedder: Embedder) -> None:
        """Name and dimension are known without asking the model."""
        assert embedder.info.name
        assert embedder.info.dimension > 0

    async def test_vectors_are_unit_float32_rows(self, embedder: Embedder) -> None:
        """Of queries and of passages, in any language."""
        check(await embedder.queries(TEXTS), len(TEXTS), embedder)
        check(await embedder.passages(TEXTS), len(TEXTS), embedder)

    async def test_odd_texts_get_vectors_too(self, embedder: Embedder) -> None:
        """Blank, NUL, a lone surrogate, far too long: nothing breaks a batch."""
        check(await embedder.queries(ODD), len(ODD), embedder)
        check(await embedder.passages(ODD[:4]), 4, embedder)

    async def test_nothing_gives_no_rows(self, embedder: Embedder) -> None:
        """No texts, no rows, the dimension still."""
        check(await embedder.queries([]), 0, embedder)
        check(await embedder.passages([]), 0, embedder)

    async def test_rows_are_in_the_order_of_the_texts(self, embedder: Embedder) -> None:
        """Whatever the batches: a text's vector does not depend on its neighbours."""
        many = [f"{text} {number}" for number in range(10) for text in TEXTS]
        together = await embedder.passages(many)
        check(together, len(many), embedder)
        for number in range(0, len(many), 23):
            alone = await embedder.passages([many[number]])
            assert cosines(together[number : number + 1], alone)[0] > LIKE

    async def test_the_same_text_gets_the_same_vector(self, embedder: Embedder) -> None:
        """Twice in one call, and called again."""
        first = await embedder.queries([TEXTS[0], TEXTS[1], TEXTS[0]])
        again = await embedder.queries([TEXTS[1]])
        assert cosines(first[:1], first[2:])[0] > LIKE
        assert cosines(first[1:2], again)[0] > LIKE
        assert cosines(first[:1], first[1:2])[0] < LIKE

    async def test_a_text_is_nearest_to_itself(self, embedder: Embedder) -> None:
        """A query finds the passage of the same words among others."""
        queries, passages = await embedder.queries(SENTENCES), await embedder.passages(SENTENCES)
        assert (queries @ passages.T).argmax(axis=1).tolist() == list(range(len(SENTENCES)))

    async def test_callers_at_once_get_their_own(self, embedder: Embedder) -> None:
        """Answers are not mixed up."""
        expected = await embedder.queries(TEXTS)
        answers = await asyncio.gather(*(embedder.queries([text]) for text in TEXTS * 3))
        for number, answer in enumerate(answers):
            assert cosines(answer, expected[number % len(TEXTS) :][:1])[0] > LIKE

    async def test_a_caller_who_gives_up_harms_nobody(self, embedder: Embedder) -> None:
        """Cancelled in the middle, the next one is answered."""
        waiting = asyncio.create_task(embedder.passages([f"given up {number}" for number in range(40)]))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        check(await embedder.passages(TEXTS), len(TEXTS), embedder)
