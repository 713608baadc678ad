"""Working memory over the real ledger and the real extractor: it survives a stop, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hermes_memory import Memory
from hermes_memory.app.commands import Export
from tests.runtime.conftest import QUICK

TALK = ("下周三要和王芳去苏州，帮我订票", "预算不超过3000元", *["嗯嗯"] * 14)
LEAD = "本次对话此前："


def opened(data: Path, **more: Any) -> Memory:
    return Memory.open(data, **QUICK, **more)


def stored(data: Path) -> bytes:
    return b"".join(path.read_bytes() for path in data.glob("hermes.db*"))


def test_spec_3_4_a_summary_survives_a_stop_and_ends_with_its_conversation(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        for text in TALK:
            memory.remember("ana", text, session="s1")
    with opened(tmp_path) as memory:
        context = memory.recall("ana", "高铁", session="s1", budget_chars=2000)["context"]
        assert LEAD in context
        assert "预算不超过3000元" in context
        assert LEAD not in memory.recall("ana", "高铁", budget_chars=2000)["context"]
        assert memory.ask("ana", Export())["sessions"][0]["summary"]["upto"] == 6
        memory.end_session("ana", "s1")
        assert LEAD not in memory.recall("ana", "高铁", session="s1", budget_chars=2000)["context"]
        assert memory.ask("ana", Export())["sessions"][0]["summary"]["pieces"] == []


def test_spec_11_an_erased_user_leaves_no_summary(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        for text in TALK:
            memory.remember("ana", text, session="s1")
        assert "王芳".encode() in stored(tmp_path)
        assert memory.forget("ana")["remaining"] == 0
        assert "王芳".encode() not in stored(tmp_path)


def test_spec_7_6_all_turns_answers_when_something_was_said(tmp_path: Path) -> None:
    said = (
        "你好",
        "苏州远吗？",
        "樱花今年开得特别早，公园里都是人。",
        "我对花生过敏，能吃这个吗？",
        "帮我写个周报",
    )
    with opened(tmp_path, entry={"episodic": "all_turns"}) as memory:
        for text in said:
            memory.remember("ana", text, session="s1")
        episodes = {r["content"] for r in memory.memories("ana") if r["dimension"] == "said"}
        assert episodes == {said[2], said[3]}
        assert len(memory.memories("ana")) == 3  # the allergy beside
        answer = memory.recall("ana", "樱花开得特别早", session="s2")
        assert answer["memories"][0]["evidence"][0]["quote"] == said[2]
        job = memory.remember("ana", said[2], session="s2")
        ops = {change["op"] for change in job["changes"]}
        assert ("reinforced" in ops, "added" in ops) == (True, False)
