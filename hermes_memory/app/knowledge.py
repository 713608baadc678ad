"""Knowledge packs in use: loading one for a namespace, and what of them a recall shows (SPEC §7.1.4)."""

from __future__ import annotations

from datetime import datetime, tzinfo
from typing import Any

from hermes_memory.app.desk import Policy
from hermes_memory.core.daytime import Moment
from hermes_memory.core.ids import check_id
from hermes_memory.core.knowledge import KnowledgeShelf, Known, Pack, beside
from hermes_memory.core.ranking import Query
from hermes_memory.ports.embedder import Embedder
from hermes_memory.ports.ledger import Ledger, StoredPack


async def load(
    ledger: Ledger, embedder: Embedder, namespace: str, pack: Pack, at: datetime
) -> StoredPack | None:
    """Embed a pack and store it in place of the one of its name; returns the one that was there before."""
    check_id(namespace, "namespace")
    vectors = await embedder.passages(pack.passages)
    before = next((one for one in await ledger.packs(namespace) if one.pack.name == pack.name), None)
    await ledger.put_pack(StoredPack(namespace=namespace, pack=pack, vectors=vectors, loaded_at=at))
    return before


def moment_of(query: Query, zone: tzinfo | None, policy: Policy) -> Moment:
    """What is so where and when the query is asked; ``zone`` is where the user is, None if nobody says."""
    local = query.as_of.astimezone(zone) if zone is not None else None
    return policy.daytimes.moment(local, scene=query.scene, query=query.text)


def beside_memories(shelf: KnowledgeShelf | None, query: Query, policy: Policy, memories: int) -> list[Known]:
    """The entries that a recall shows beside ``memories`` hits; none without packs."""
    if shelf is None or memories >= policy.rules.knowledge.most:
        return []
    found = shelf.find(query, query.moment, query.called, policy.calibration, policy.rules)
    return beside(found, memories, policy.rules)


def known_record(known: Known, language: str) -> dict[str, Any]:
    """An entry as the answer shows it: apart from the memories, and without evidence, for nobody said it."""
    return {
        "id": known.entry.id,
        "pack": known.pack.name,
        "pack_version": known.pack.version,
        "content": known.entry.text(language),
        "relevance": known.relevance,
        "score": known.score,
    }


def pack_record(stored: StoredPack) -> dict[str, Any]:
    """A pack without its entries."""
    pack = stored.pack
    return {
        "namespace": stored.namespace,
        "name": pack.name,
        "version": pack.version,
        "title": pack.title,
        "languages": list(pack.languages),
        "licence": pack.licence,
        "entries": len(pack.entries),
        "loaded_at": stored.loaded_at.isoformat(),
    }
