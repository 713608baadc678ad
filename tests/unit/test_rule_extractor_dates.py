"""SPEC §4.1.2: relative dates become absolute in the user's time zone; the words stay as evidence."""

from datetime import datetime

import pytest

from tests.unit.rule_turns import candidates, one, turn

MONDAY = "2026-03-02T10:00:00+00:00"

DATES = [
    ("我明天要去体检", "plan", "2026-03-03"),
    ("后天下午两点我要开家长会", "plan", "2026-03-04 14:00"),
    ("我下周三要去北京出差", "plan", "2026-03-11"),
    ("这周六我要参加婚礼", "plan", "2026-03-07"),
    ("我三天后要做手术", "plan", "2026-03-05"),
    ("我5月20日要考试", "plan", "2026-05-20"),
    ("明晚八点半我约了朋友吃饭", "plan", "2026-03-03 20:30"),
    ("我昨天去了动物园", "event", "2026-03-01"),
    ("上周五我参加了面试", "event", "2026-02-27"),
    ("下个月3号我要搬家", "plan", "2026-04-03"),
    ("I have an interview tomorrow at 9:30 am", "plan", "2026-03-03 09:30"),
    ("I'm flying to Oslo next Tuesday.", "plan", "2026-03-10"),
    ("My wedding is this Saturday.", "plan", "2026-03-07"),
    ("My surgery is on 14 April.", "plan", "2026-04-14"),
    ("I have to see the dentist in two days", "plan", "2026-03-04"),
    ("My exam is the day after tomorrow.", "plan", "2026-03-04"),
    ("I went to the zoo yesterday.", "event", "2026-03-01"),
    ("I met my cousin last Friday", "event", "2026-02-27"),
    ("I went hiking on Saturday", "event", "2026-02-28"),
    ("I broke my phone three days ago.", "event", "2026-02-27"),
    ("My flight is on 2026-07-01", "plan", "2026-07-01"),
]


@pytest.mark.parametrize(("content", "dimension", "label"), DATES)
def test_a_date_is_resolved_and_shown(content: str, dimension: str, label: str) -> None:
    found = one(content, dimension, at=MONDAY)
    assert label in found.content
    assert label in found.entities
    assert found.valid_from is not None
    assert found.valid_from.strftime("%Y-%m-%d") == label[:10]
    assert found.category == "EVENT"
    said = turn(content).content[found.span.start : found.span.end]
    assert found.content.startswith(said.rstrip("。. "))


@pytest.mark.parametrize(
    ("at", "timezone", "day"),
    [
        ("2026-03-02T23:30:00+00:00", "Asia/Shanghai", "2026-03-04"),
        ("2026-03-02T23:30:00+00:00", "UTC", "2026-03-03"),
        ("2026-03-02T02:00:00+00:00", "America/New_York", "2026-03-02"),
        ("2026-12-31T12:00:00+00:00", "Europe/London", "2027-01-01"),
        ("2026-03-02T23:30:00+00:00", "No/Such_Zone", "2026-03-03"),
    ],
)
def test_the_time_zone_of_the_turn_decides_the_day(at: str, timezone: str, day: str) -> None:
    for content in ("我明天要去看牙医", "I have an appointment tomorrow"):
        found = one(content, "plan", at=at, timezone=timezone)
        assert found.valid_from is not None
        assert found.valid_from.strftime("%Y-%m-%d") == day
        assert found.valid_from.tzinfo is not None


def test_a_clock_time_is_in_the_user_s_zone() -> None:
    found = one("我明天下午三点要去看牙医", "plan", at="2026-03-02T01:00:00+00:00", timezone="Asia/Shanghai")
    assert found.valid_from == datetime.fromisoformat("2026-03-03T15:00:00+08:00")


@pytest.mark.parametrize(
    "content",
    ["我每周六都去爬山", "我每天早上七点跑步", "I play tennis every Sunday", "On Sundays I bake bread"],
)
def test_a_habit_has_no_date(content: str) -> None:
    for found in candidates(content):
        assert found.valid_from is None
        assert "2026" not in found.content


def test_a_date_in_a_clause_of_its_own_belongs_to_the_next() -> None:
    found = one("明天下午三点，我要去看医生", "plan")
    assert (found.span.start, found.content) == (0, "明天下午三点，我要去看医生（2026-03-03 15:00）")


def test_an_impossible_date_is_left_alone() -> None:
    assert all(item.valid_from is None for item in candidates("我2月30日要去开会"))


def test_a_small_quantity_is_no_clock_time() -> None:
    found = one("周末想去人少一点的地方", "plan")
    assert found.content.endswith("（2026-03-07）")
