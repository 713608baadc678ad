"""What is embedded anew, in which order, and what is left when it fails (ARCHITECTURE §3)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hermes_memory.adapters.hash_embedder import HashEmbedder
from hermes_memory.adapters.sqlite_ledger import SqliteLedger
from hermes_memory.app import reembedding
from hermes_memory.app.reembedding import reembed
from hermes_memory.core.ids import UserKey
from hermes_memory.core.merging import middle, texts_of
from hermes_memory.core.model import Granularity, Memory, Status
from hermes_memory.errors import EmbedderMismatch, InvalidInput
from hermes_memory.ports.embedder import Vectors
from hermes_memory.ports.ledger import Reembedding
from hermes_memory.testing.builders import NOW, a_commit, a_memory, a_pack, a_stored_pack, an_entry

OLD, NEW = HashEmbedder(16), HashEmbedder(24)
USERS = [UserKey("app", f"user{number}") for number in range(5)]
PARTS = [{"id": "m0", "content": "likes tea", "object": "tea"}, {"id": "m1", "content": "likes rice", "object": "rice"}]  # fmt: skip
MERGED = a_memory(
    id="merged", content="likes tea; likes rice", granularity=Granularity.SPAN, attributes={"parts": PARTS}
)

Make = Callable[[], SqliteLedger]


class Watched:
    """An embedder that writes down what it is given, and fails as it is told."""

    def __init__(self, embedder: HashEmbedder = NEW, fails_after: int = 99) -> None:
        self.inner, self.fails_after = embedder, fails_after
        self.info = embedder.info
        self.batches: list[list[str]] = []

    async def queries(self, texts: Sequence[str]) -> Vectors:
        raise AssertionError(texts)

    async def passages(self, texts: Sequence[str]) -> Vectors:
        self.batches.append(list(texts))
        found = self.inner.embed(texts)
        return found if len(self.batches) <= self.fails_after else np.full_like(found, np.nan)


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reembedding, "PAGE", 2)
    monkeypatch.setattr(reembedding, "BATCH", 4)


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    """Makes handles on a store of five users with three memories each and one merged record."""
    made: list[SqliteLedger] = []

    def handle() -> SqliteLedger:
        made.append(SqliteLedger(tmp_path / "ledger.db", synchronous="NORMAL"))
        return made[-1]

    ledger = handle()
    await ledger.open(OLD.info)
    for key in USERS:
        memories = [
            a_memory(id=f"m{n}", user_id=key.user_id, content=f"{key.user_id} says {n}") for n in range(3)
        ]
        memories += [MERGED.with_(user_id=key.user_id)] if key == USERS[3] else []
        await ledger.commit(a_commit(key=key, memories=tuple(memories), vectors=embedded(OLD, memories)))
    await ledger.close()
    yield handle
    for ledger in made:
        await ledger.close()


def embedded(embedder: HashEmbedder, memories: Sequence[Memory]) -> dict[str, Vectors]:
    return {memory.id: middle(list(embedder.embed(texts_of(memory)))) for memory in memories}


async def held(ledger: SqliteLedger, embedder: HashEmbedder) -> int:
    """How many vectors there are; fails unless each is what ``embedder`` makes of its memory."""
    count = 0
    for key in USERS:
        seen = await ledger.activate(key, 1)
        wanted = embedded(embedder, seen.memories)
        assert set(wanted) == set(seen.vectors)
        for memory_id, vector in seen.vectors.items():
            assert vector == pytest.approx(wanted[memory_id], abs=2e-3)
        count += len(wanted)
    return count


def test_a_merged_record_stands_for_its_parts() -> None:
    assert texts_of(MERGED) == ("likes tea", "likes rice")
    assert texts_of(a_memory(content="x")) == ("x",)
    assert texts_of(a_memory(content="x", granularity=Granularity.SPAN)) == ("x",)
    assert texts_of(a_memory(content="x", attributes={"parts": [{"id": "m0"}]})) == ("x",)
    vectors = OLD.embed(texts_of(MERGED))
    between = middle(list(vectors))
    assert np.linalg.norm(between) == pytest.approx(1, abs=1e-6)
    assert between @ vectors[0] == pytest.approx(float(between @ vectors[1]), abs=1e-5)


async def test_everything_is_embedded_once_in_batches(make: Make) -> None:
    ledger, embedder, told = make(), Watched(), list[Reembedding]()
    state = await reembed(ledger, embedder, told.append)
    assert state == Reembedding(NEW.info, NEW.info, 16, 16)
    assert [step.done for step in told] == [0, 4, 8, 12, 16]
    assert {step.total for step in told} == {16}
    texts = [text for batch in embedder.batches for text in batch]
    assert sorted(texts) == sorted([f"{key.user_id} says {n}" for key in USERS for n in range(3)] + ["likes tea", "likes rice"])  # fmt: skip
    assert await held(ledger, NEW) == 16


async def test_a_second_run_does_nothing(make: Make) -> None:
    await reembed(first := make(), Watched(), lambda _: None)
    await first.close()
    again, told = Watched(), list[Reembedding]()
    assert (await reembed(make(), again, told.append)).finished
    assert again.batches == []
    assert [step.finished for step in told] == [True]


async def test_there_and_back_again(make: Make) -> None:
    for embedder in (NEW, OLD):
        ledger = make()
        assert (await reembed(ledger, Watched(embedder), lambda _: None)).finished
        assert await held(ledger, embedder) == 16
        await ledger.close()


async def test_what_was_kept_before_a_failure_is_not_embedded_again(make: Make) -> None:
    first = make()
    with pytest.raises(InvalidInput, match="not finite"):
        await reembed(first, broken := Watched(fails_after=2), lambda _: None)
    await first.close()
    assert len(broken.batches) == 3
    old = make()
    await old.open(OLD.info)  # as if nothing had happened
    assert await held(old, OLD) == 16
    await old.close()
    with pytest.raises(EmbedderMismatch) as caught:
        await make().open(NEW.info)
    assert caught.value.unfinished
    embedder, told, ledger = Watched(), list[Reembedding](), make()
    assert (await reembed(ledger, embedder, told.append)).finished
    assert [step.done for step in told] == [8, 12, 16]
    assert not set(embedder.batches[0]) & {text for batch in broken.batches[:2] for text in batch}
    assert await held(ledger, NEW) == 16


async def test_what_somebody_adds_meanwhile_is_told_and_done_by_the_next_run(make: Make) -> None:
    """The data lock forbids it; should it happen all the same, nothing is handed over without its vector."""
    other, ledger = make(), make()
    await other.open(OLD.info)
    late = a_memory(
        id="a0", user_id=USERS[0].user_id, content="late", status=Status.ARCHIVED, archived_at=NOW
    )

    class Interrupted(Watched):
        async def passages(self, texts: Sequence[str]) -> Vectors:
            if not self.batches:
                version = (await other.activate(USERS[0], 1)).version
                commit = a_commit(version, key=USERS[0], memories=(late,), vectors=embedded(OLD, [late]))
                await other.commit(commit)
            return await super().passages(texts)

    state = await reembed(ledger, Interrupted(), lambda _: None)
    assert state == Reembedding(OLD.info, NEW.info, 16, 17)
    assert (await reembed(make(), Watched(), lambda _: None)).finished


# knowledge packs

PACK = a_pack(entries=tuple(an_entry(id=f"e{n}", content={"en": f"fact {n}"}) for n in range(10)))


async def shelve(ledger: SqliteLedger, version: str = "1") -> None:
    pack = replace(PACK, version=version)
    await ledger.put_pack(a_stored_pack(pack=pack, vectors=OLD.embed(pack.passages)))


@pytest.fixture
async def shelved(make: Make) -> Make:
    """As ``make``, with a pack of ten passages."""
    ledger = make()
    await ledger.open(OLD.info)
    await shelve(ledger)
    return make


async def test_packs_are_embedded_after_the_memories(shelved: Make) -> None:
    ledger, embedder, told = shelved(), Watched(), list[Reembedding]()
    assert await reembed(ledger, embedder, told.append) == Reembedding(NEW.info, NEW.info, 26, 26)
    assert [step.done for step in told] == [0, 4, 8, 12, 16, 20, 24, 26]
    assert [text for batch in embedder.batches[-3:] for text in batch] == PACK.passages
    (stored,) = await ledger.packs(None)
    assert stored.vectors == pytest.approx(NEW.embed(PACK.passages), abs=2e-3)
    assert await held(ledger, NEW) == 16


async def test_a_pack_goes_on_where_it_stopped(shelved: Make) -> None:
    with pytest.raises(InvalidInput, match="not finite"):
        await reembed(shelved(), Watched(fails_after=5), lambda _: None)
    old = shelved()
    await old.open(OLD.info)
    assert (await old.packs(None))[0].vectors == pytest.approx(OLD.embed(PACK.passages), abs=2e-3)
    embedder, ledger = Watched(), shelved()
    assert (await reembed(ledger, embedder, lambda _: None)).finished
    assert [text for batch in embedder.batches for text in batch] == PACK.passages[4:]
    assert (await ledger.packs(None))[0].vectors == pytest.approx(NEW.embed(PACK.passages), abs=2e-3)


async def test_a_pack_that_is_replaced_under_way_is_begun_anew(shelved: Make) -> None:
    """``hermes knowledge load`` takes no lock on the data."""
    other, ledger, told = shelved(), shelved(), list[Reembedding]()
    await other.open(OLD.info)

    class Interrupted(Watched):
        async def passages(self, texts: Sequence[str]) -> Vectors:
            if texts == PACK.passages[4:8] and len(self.batches) == 5:
                await shelve(other, version="2")
            return await super().passages(texts)

    embedder = Interrupted()
    assert (await reembed(ledger, embedder, told.append)).finished
    assert [text for batch in embedder.batches[4:] for text in batch] == PACK.passages[:8] + PACK.passages
    (stored,) = await ledger.packs(None)
    assert stored.pack.version == "2"
    assert stored.vectors == pytest.approx(NEW.embed(PACK.passages), abs=2e-3)
