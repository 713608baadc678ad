"""Gives the data to another embedding model: every stored vector is made anew (ARCHITECTURE §3).

Those of memories and of knowledge packs, and nothing else: no memory changes, frozen or not, nor any version or history. What was made is kept as it comes, so
that a process that dies loses one batch at most; the ledger hands everything over at once, in the end.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace

import numpy as np

from hermes_memory.core.ids import UserKey
from hermes_memory.core.merging import middle, texts_of
from hermes_memory.core.model import Memory
from hermes_memory.errors import InvalidInput
from hermes_memory.ports.embedder import Embedder, Vector, Vectors
from hermes_memory.ports.ledger import Ledger, Reembedding

PAGE = 256  # users, and memories of a user, that are read at once
BATCH = 64  # memories, or passages of a knowledge pack, that are embedded, and then kept, together

Waiting = tuple[UserKey, Memory]


async def reembed(ledger: Ledger, embedder: Embedder, told: Callable[[Reembedding], None]) -> Reembedding:
    """Embed what is left, batch by batch, and hand the data over; ``told`` learns how far it is.

    ``ledger`` is not open yet; closing it is the caller's. Where nothing is to do, nothing is done.

    Raises:
        InvalidInput: the embedder gave vectors that cannot be used; what was kept before stays.
    """
    state = await ledger.begin_reembedding(embedder.info)
    told(state)
    batch: list[Waiting] = []
    async for waiting in _left(ledger, finished=state.finished):
        batch.append(waiting)
        if len(batch) == BATCH:
            state = await _keep(ledger, embedder, batch, state)
            told(state)
            batch = []
    if batch:
        state = await _keep(ledger, embedder, batch, state)
        told(state)
    async for count in _packs(ledger, embedder):
        state = replace(state, done=min(state.done + count, state.total))
        told(state)
    return await ledger.finish_reembedding()


async def _left(ledger: Ledger, *, finished: bool) -> AsyncIterator[Waiting]:
    """Every memory without a new vector, user by user, a page at a time."""
    after = ""
    while not finished and (keys := await ledger.users(None, after, PAGE)):
        for key in keys:
            last = ""
            while page := await ledger.unembedded(key, last, PAGE):
                for memory in page:
                    yield key, memory
                last = page[-1].id
        after = str(keys[-1])


async def _keep(
    ledger: Ledger, embedder: Embedder, batch: Sequence[Waiting], state: Reembedding
) -> Reembedding:
    """New vectors of a batch, kept; how far it is then."""
    texts = [texts_of(memory) for _, memory in batch]
    found = await _vectors(embedder, [text for one in texts for text in one])
    made: dict[UserKey, dict[str, Vector]] = {}
    row = 0
    for (key, memory), one in zip(batch, texts, strict=True):
        vectors = found[row : row + len(one)]
        made.setdefault(key, {})[memory.id] = vectors[0] if len(one) == 1 else middle(list(vectors))
        row += len(one)
    for key, vectors_of in made.items():
        await ledger.put_embedded(key, vectors_of)
    return replace(state, done=state.done + len(batch))


async def _packs(ledger: Ledger, embedder: Embedder) -> AsyncIterator[int]:
    """Embed and keep what waits of the knowledge packs, batch by batch; how many passages of each were kept."""
    waiting = await ledger.unembedded_pack()
    while waiting is not None:
        texts = waiting.rest[:BATCH]
        kept = await ledger.put_embedded_passages(waiting, await _vectors(embedder, texts))
        if kept:
            yield len(texts)
            waiting = replace(waiting, done=waiting.done + len(texts))
        if not kept or not waiting.rest:  # packs take no data lock: one may be another by now
            waiting = await ledger.unembedded_pack()


async def _vectors(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    found = await embedder.passages(texts)
    if not np.isfinite(found).all():
        raise InvalidInput("embedder", "gave vectors that are not finite")
    return found
