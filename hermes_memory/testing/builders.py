"""Small valid values for tests; every field can be overridden by name."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np

from hermes_memory.core.ids import UserKey, digest
from hermes_memory.core.knowledge import Entry, Pack
from hermes_memory.core.model import Category, Evidence, Layer, Memory, Role, Scope, Turn
from hermes_memory.core.window import Piece, Summary
from hermes_memory.ports.embedder import EmbedderInfo, Vector
from hermes_memory.ports.ledger import Alert, AuditEntry, Commit, Job, JobStatus, Session, StoredPack

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
KEY = UserKey("app", "ann")
EMBEDDER = EmbedderInfo("test-embedder", 8)


def a_turn(**over: Any) -> Turn:
    """A user's turn that waits for extraction."""
    index = over.get("index", 0)
    values: dict[str, Any] = {
        "session_id": "s1",
        "index": index,
        "message_id": f"m{index}",
        "role": Role.USER,
        "content": "我住在苏州",
        "created_at": NOW,
        "received_at": NOW,
        "timezone": "Asia/Shanghai",
    }
    return Turn(**(values | over))


def an_evidence(**over: Any) -> Evidence:
    """The user's own words, quoted from ``a_turn()``."""
    quote = over.get("quote", "我住在苏州")
    values: dict[str, Any] = {
        "session_id": "s1",
        "turn_index": 0,
        "message_id": "m0",
        "role": Role.USER,
        "quote": quote,
        "start": 0,
        "end": len(quote),
        "created_at": NOW,
        "extractor": "test-1",
    }
    return Evidence(**(values | over))


def a_memory(**over: Any) -> Memory:
    """A pending fact about where the user lives."""
    content = over.get("content", "用户住在苏州")
    values: dict[str, Any] = {
        "id": "mem-1",
        "namespace": KEY.namespace,
        "user_id": KEY.user_id,
        "category": Category.FACT,
        "layer": Layer.IDENTITY,
        "subject": "user",
        "predicate": "lives_in",
        "object": "苏州",
        "dimension": "residence",
        "content": content,
        "content_hash": digest(content),
        "scope": Scope.USER,
        "confidence": 0.75,
        "source_confidence": 0.95,
        "stability": 0.6,
        "importance": 0.7,
        "created_at": NOW,
        "updated_at": NOW,
        "evidence": (an_evidence(),),
    }
    return Memory(**(values | over))


def a_vector(seed: int = 0, dimension: int = EMBEDDER.dimension) -> Vector:
    """A unit vector that depends on ``seed`` only."""
    raw = np.random.default_rng(seed).standard_normal(dimension).astype(np.float32)
    return (raw / np.linalg.norm(raw)).astype(np.float32)


def a_session(**over: Any) -> Session:
    """An open session."""
    values: dict[str, Any] = {"id": "s1", "started_at": NOW, "last_at": NOW, "turns": 1}
    return Session(**(values | over))


def a_summary(**over: Any) -> Summary:
    """The summary of a conversation whose first turn was folded."""
    values: dict[str, Any] = {"turn": 0, "start": 1, "text": "住在苏州", "role": Role.USER, "at": NOW}
    return Summary(upto=1, pieces=(Piece(**(values | over)),))


def a_job(**over: Any) -> Job:
    """A job that waits."""
    values: dict[str, Any] = {
        "id": "job-1",
        "status": JobStatus.QUEUED,
        "created_at": NOW,
        "updated_at": NOW,
        "pending_turns": 1,
    }
    return Job(**(values | over))


def an_audit(**over: Any) -> AuditEntry:
    """An entry that says a memory was added."""
    values: dict[str, Any] = {
        "at": NOW,
        "op": "add",
        "reason": "stated",
        "actor": "extractor",
        "memory_id": "mem-1",
    }
    return AuditEntry(**(values | over))


def an_alert(**over: Any) -> Alert:
    """A full core tier."""
    values: dict[str, Any] = {"id": "alert-1", "kind": "core_full", "at": NOW, "memory_id": "mem-1"}
    return Alert(**(values | over))


def an_entry(**over: Any) -> Entry:
    """General knowledge in both languages, without conditions."""
    values: dict[str, Any] = {
        "id": "satay",
        "content": {"zh": "沙嗲酱里通常有花生", "en": "Satay sauce usually contains peanuts"},
        "cues": {"zh": ("沙嗲",), "en": ("satay",)},
        "topics": ("food",),
    }
    return Entry(**(values | over))


def a_pack(**over: Any) -> Pack:
    """A pack with one entry."""
    values: dict[str, Any] = {
        "name": "everyday", "version": "1", "languages": ("zh", "en"), "licence": "CC0-1.0", "entries": (an_entry(),),
    }  # fmt: skip
    return Pack(**(values | over))


def a_stored_pack(**over: Any) -> StoredPack:
    """A pack of KEY's namespace with a vector for each passage."""
    pack = over.get("pack", a_pack())
    rows = [a_vector(seed) for seed in range(len(pack.passages))]
    values: dict[str, Any] = {
        "namespace": KEY.namespace,
        "pack": pack,
        "vectors": np.stack(rows) if rows else np.zeros((0, EMBEDDER.dimension), np.float32),
        "loaded_at": NOW,
    }
    return StoredPack(**(values | over))


def a_commit(expected_version: int = 0, **over: Any) -> Commit:
    """An empty commit of KEY by epoch 1, whose operation id follows from the version it read."""
    values: dict[str, Any] = {
        "key": KEY,
        "expected_version": expected_version,
        "epoch": 1,
        "operation_id": f"op-{expected_version}",
        "at": NOW,
    }
    return Commit(**(values | over))
