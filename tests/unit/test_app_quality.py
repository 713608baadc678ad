"""What jobs learn of a user, and how a user's feedback is decided (SPEC §10, §12)."""

from __future__ import annotations

import json

import pytest

from hermes_memory.app.commands import Aggregate, Feedback
from hermes_memory.app.tallying import tallied
from hermes_memory.app.views import VIEWS
from hermes_memory.core.model import Signal
from hermes_memory.core.night_sums import NightSums
from hermes_memory.errors import NotFound
from tests.small_world import HOUR, NOW, say
from tests.tiny_ledger import Person

SECRET = "蓝色多瑙河"


def test_an_aggregate_holds_counts_and_no_words() -> None:
    person = Person()
    person.tell(say(f"我养了{SECRET}", dimension="pet", object=SECRET), say("我住在苏州", object="苏州"))
    person.state.count({"recalls": 2, "welcome": 0}, NOW)
    person.state.count({"recalls": 1}, NOW - 48 * HOUR)
    today = NOW.date().isoformat()
    seen = VIEWS[Aggregate](person.state, Aggregate(since=today), person.policy)
    assert seen["tally"] == {"recalls": 2}
    assert VIEWS[Aggregate](person.state, Aggregate(since="2000-01-01"), person.policy)["tally"] == {
        "recalls": 3
    }
    assert (seen["memories"], seen["by_status"], seen["by_tier"]) == (2, {"active": 2}, {"working": 2})
    assert sum(seen["slots"].values()) == 2
    assert (seen["slots_adrift"], seen["cohort"], seen["paused"]) == (0, None, False)
    text = json.dumps(seen, ensure_ascii=False)
    assert SECRET not in text
    assert "苏州" not in text
    NightSums().add("app", {"changes": []}, seen, 0.0)


def test_nothing_counted_makes_no_day() -> None:
    person = Person()
    person.state.count({"welcome": 0}, NOW)
    assert person.state.take_counted() == {}


def test_feedback_is_decided_once_for_a_conversation() -> None:
    person = Person()
    memory = person.remember(say("我住在苏州", object="苏州"))
    command = Feedback(session_id="s1", memory_ids=(memory.id, memory.id), signal=Signal.DISLIKE)
    first = person.decide(command)
    assert first.counts == {"unwelcome": 1, "signal_dislike": 1, "opposed": 1}
    assert person.act(command) == {"counted": 1, "unknown": []}
    again = person.decide(command)
    assert (again.commit, again.result, dict(again.counts)) == (None, {"counted": 0, "unknown": []}, {})
    assert person.memory(memory.id).version == memory.version
    with pytest.raises(NotFound):
        person.act(Feedback(session_id="s1", memory_ids=("mem_0",), signal=Signal.LIKE))


def test_a_commit_counts_for_what_stood_before_it() -> None:
    person = Person()
    person.remember(say("我住在苏州", object="苏州"))
    later = say("我住在杭州", object="杭州", session="s2", at=NOW + HOUR)
    person.pass_time(hours=2)
    person.ingest(later)
    decision = person.decide(person.settle_command(later))
    assert decision.commit is not None
    counts = tallied(person.state, decision.commit)
    assert counts["opposed"] == 1
    assert counts["kept"] == 1
    assert decision.counts["turns_remembered"] == 1
