"""Which index a configuration names, and that the ledger writes an outbox only where somebody reads it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hermes_memory.adapters.weaviate_index import WeaviateIndex
from hermes_memory.config import Settings, load_settings
from hermes_memory.errors import InvalidConfig
from hermes_memory.ports.ledger import Ledger, OutboxEntry
from hermes_memory.runtime.filled_index import FilledIndex
from hermes_memory.testing.builders import KEY, a_commit
from hermes_memory.wiring import build_index, build_ledger, build_long_term, embedder_info, feed_rules


def settings(**index: object) -> Settings:
    return load_settings(None, {"index": index})


@pytest.mark.parametrize(("kind", "waits"), [("none", 0), ("exact", 1), ("weaviate", 1)])
def test_an_outbox_is_written_where_somebody_reads_it(tmp_path: Path, kind: str, waits: int) -> None:
    chosen = settings(kind=kind)
    assert asyncio.run(_waiting(build_ledger(chosen, tmp_path), chosen)) == waits


async def _waiting(ledger: Ledger, chosen: Settings) -> int:
    await ledger.open(embedder_info(chosen))
    await ledger.commit(a_commit(outbox=(OutboxEntry(op="put", memory_id="a"),)))
    found = len(await ledger.read_outbox(KEY, 9))
    await ledger.close()
    return found


def test_each_kind_has_its_index(tmp_path: Path) -> None:
    ledger = build_ledger(settings(), tmp_path)
    assert build_index(settings(), ledger) is None
    assert build_long_term(settings(), ledger) is None
    assert isinstance(build_index(settings(kind="exact"), ledger), FilledIndex)
    assert isinstance(build_index(settings(kind="weaviate"), ledger), WeaviateIndex)
    with pytest.raises(InvalidConfig, match="none, exact, weaviate"):
        build_index(settings(kind="faiss"), ledger)


def test_a_named_key_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = settings(kind="weaviate", key_env="INDEX_KEY")
    monkeypatch.delenv("INDEX_KEY", raising=False)
    with pytest.raises(InvalidConfig, match="INDEX_KEY"):
        build_index(chosen, build_ledger(chosen, tmp_path))
    monkeypatch.setenv("INDEX_KEY", "secret")
    assert build_index(chosen, build_ledger(chosen, tmp_path)) is not None


def test_how_it_is_asked_and_fed_is_configured(tmp_path: Path) -> None:
    chosen = settings(
        kind="exact", always=True, nominations=7, recall_timeout_s=0.5, avoid_s=9, batch=3, pause_s=8
    )
    long_term = build_long_term(chosen, build_ledger(chosen, tmp_path))
    assert long_term is not None
    rules = long_term.rules
    assert (rules.always, rules.nominations, rules.timeout_s, rules.pause_s) == (True, 7, 0.5, 9.0)
    fed = feed_rules(chosen)
    assert (fed.batch, fed.pause_s, fed.together) == (3, 8.0, 4)
