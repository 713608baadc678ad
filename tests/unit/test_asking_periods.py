"""Which times a query names (SPEC §7.1, §7.6): both languages, resolved as of the query in the user's zone."""

from datetime import UTC, datetime

import pytest

from tests.unit.asking_reader import NOW, read, spans


@pytest.mark.parametrize(
    ("english", "chinese", "expected"),
    [
        ("yesterday", "昨天", "2023-08-15 to 2023-08-16"),
        ("the day before yesterday", "前天", "2023-08-14 to 2023-08-15"),
        ("today", "今天", "2023-08-16 to 2023-08-17"),
        ("tomorrow", "明天", "2023-08-17 to 2023-08-18"),
        ("the day after tomorrow", "后天", "2023-08-18 to 2023-08-19"),
        ("What did I do last week?", "上周我做了什么", "2023-08-07 to 2023-08-14"),
        ("this week", "这周", "2023-08-14 to 2023-08-21"),
        ("next week", "下周", "2023-08-21 to 2023-08-28"),
        ("the week before last", "上上周", "2023-07-31 to 2023-08-07"),
        ("last weekend", "上周末", "2023-08-12 to 2023-08-14"),
        ("last month", "上个月", "2023-07-01 to 2023-08-01"),
        ("this month", "这个月", "2023-08-01 to 2023-09-01"),
        ("last year", "去年", "2022-01-01 to 2023-01-01"),
        ("What happened in May 2023?", "2023年5月发生了什么", "2023-05-01 to 2023-06-01"),
        ("May 7, 2023", "2023年5月7日", "2023-05-07 to 2023-05-08"),
        ("What did I eat on 7 May?", "5月7号我吃了什么", "2023-05-07 to 2023-05-08"),
        ("the 7th of May 2021", "二〇二一年五月七号", "2021-05-07 to 2021-05-08"),
        ("December 31 of last year", "去年12月31号", "2022-12-31 to 2023-01-01"),
        ("Where did I go last summer?", "2022年夏天我去了哪里", "2022-06-01 to 2022-09-01"),
        ("summer of last year", "去年夏天", "2022-06-01 to 2022-09-01"),
        ("winter 2021", "2021年冬天", "2021-12-01 to 2022-03-01"),
        ("two months ago", "两个月前", "2023-05-31 to 2023-07-03"),
        ("three days ago", "三天前", "2023-08-13 to 2023-08-14"),
        ("a year ago", "一年前", "2022-02-14 to 2023-02-16"),
        ("half a year ago", "半年前", "2022-11-17 to 2023-05-19"),
        ("a few months ago", "几个月前", "2023-01-31 to 2023-07-03"),
        ("the past three months", "过去三个月", "2023-05-16 to 2023-08-17"),
        ("the second week of November 2022", "2022年11月第二周", "2022-11-08 to 2022-11-15"),
        ("the last week of May 2023", "2023年5月最后一周", "2023-05-25 to 2023-06-01"),
        ("Where did I go in the summer?", "夏天我去了哪里", "2023-06-01 to 2023-09-01"),
        ("in 2019", "2019年", "2019-01-01 to 2020-01-01"),
        ("in the 1990s", "90年代", "1990-01-01 to 2000-01-01"),
        ("Q1 2023", "2023年第一季度", "2023-01-01 to 2023-04-01"),
        ("the first half of 2022", "2022年上半年", "2022-01-01 to 2022-07-02"),
        ("late March 2021", "2021年3月底", "2021-03-21 to 2021-04-01"),
        ("early 2021", "2021年初", "2021-01-01 to 2021-05-05"),
        ("before 2020 where did I live", "2020年以前我住哪", "1900-01-01 to 2020-01-01"),
        ("after May 2023", "2023年5月之后", "2023-06-01 to 2200-01-01"),
        ("since March", "3月以来", "2023-03-01 to 2023-08-17"),
        ("between 2019 and 2021", "2019年到2021年", "2019-01-01 to 2022-01-01"),
        ("from May to July 2021", "2021年5月到2021年7月", "2021-05-01 to 2021-08-01"),
        ("this time last year", "去年这个时候", "2022-08-01 to 2022-09-01"),
        ("last Christmas", "去年圣诞节", "2022-12-24 to 2022-12-27"),
        ("Chinese New Year 2023", "2023年春节", "2023-01-21 to 2023-01-29"),
        ("Friday of last week", "上周五", "2023-08-11 to 2023-08-12"),
        ("Friday next week", "下周五", "2023-08-25 to 2023-08-26"),
        ("in two weeks", "两周后", "2023-08-26 to 2023-09-04"),
        ("last night", "昨晚", "2023-08-15 17:00 to 2023-08-16 04:00"),
        ("yesterday afternoon", "昨天下午", "2023-08-15 12:00 to 2023-08-15 18:00"),
        ("two hours ago", "两小时前", "2023-08-16 16:00 to 2023-08-16 17:00"),
        ("2023-05-07", "2023/5/7", "2023-05-07 to 2023-05-08"),
    ],
)  # fmt: skip
def test_spec_7_6_the_same_period_in_both_languages(english: str, chinese: str, expected: str) -> None:
    assert spans(english) == [expected]
    assert spans(chinese) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What did I do on Monday?", ["2023-08-14 to 2023-08-15"]),
        ("What is on Monday?", ["2023-08-21 to 2023-08-22"]),
        ("周五有什么安排", ["2023-08-18 to 2023-08-19"]),
        ("周五我见了谁", ["2023-08-11 to 2023-08-12"]),
        ("What did I do on Wednesday?", ["2023-08-09 to 2023-08-10"]),
        ("last Friday night", ["2023-08-11 17:00 to 2023-08-12 04:00"]),
        ("next Friday", ["2023-08-25 to 2023-08-26"]),
        ("this coming Friday", ["2023-08-18 to 2023-08-19"]),
        ("周末我干了什么", ["2023-08-12 to 2023-08-14"]),
        ("what shall we do at the weekend", ["2023-08-19 to 2023-08-21"]),
        ("What did Anna say on the 5th?", ["2023-08-05 to 2023-08-06"]),
        ("我15号去了哪", ["2023-08-15 to 2023-08-16"]),
        ("上个月15号我买了什么", ["2023-07-15 to 2023-07-16"]),
        ("What did I do in November?", ["2022-11-01 to 2022-12-01"]),
        ("What will I do in November?", ["2023-11-01 to 2023-12-01"]),
        ("What is planned for July?", ["2023-07-01 to 2023-08-01"]),
        ("What did I get on Christmas?", ["2022-12-24 to 2022-12-27"]),
        ("gift ideas for Christmas", ["2023-12-24 to 2023-12-27"]),
        ("国庆节我去哪了", ["2022-10-01 to 2022-10-08"]),
        ("What did I do from Friday to Sunday?", ["2023-08-11 to 2023-08-14"]),
        ("从周一到周三", ["2023-08-21 to 2023-08-24"]),
        ("from 2021 to 2019", ["2021-01-01 to 2022-01-01", "2019-01-01 to 2020-01-01"]),
        ("in May and June", ["2023-05-01 to 2023-06-01", "2023-06-01 to 2023-07-01"]),
        ("周五之前要交什么", ["1900-01-01 to 2023-08-18"]),
        ("前几天我提到的书", ["2023-08-06 to 2023-08-17"]),
        ("去年11月到今年2月", ["2022-11-01 to 2023-03-01"]),
        ("the next two weeks", ["2023-08-16 to 2023-08-31"]),
        ("the year after next", ["2025-01-01 to 2026-01-01"]),
        ("last May", ["2023-05-01 to 2023-06-01"]),
        ("next May", ["2024-05-01 to 2024-06-01"]),
        ("the last two hours", ["2023-08-16 16:30 to 2023-08-16 18:30"]),
        ("上半年我读了几本书", ["2023-01-01 to 2023-07-02"]),
        ("去年的今天", ["2022-08-16 to 2022-08-17"]),
        ("What did I read in Q4?", ["2022-10-01 to 2023-01-01"]),
        ("in an hour", ["2023-08-16 19:00 to 2023-08-16 20:00"]),
        ("next 3 hours", ["2023-08-16 18:30 to 2023-08-16 21:30"]),
        ("early this morning", ["2023-08-16 04:00 to 2023-08-16 07:00"]),
        ("this summer", ["2023-06-01 to 2023-09-01"]),
        ("next winter", ["2023-12-01 to 2024-03-01"]),
        ("February 29", ["2024-02-29 to 2024-03-01"]),
    ],
)  # fmt: skip
def test_a_question_about_the_past_looks_back(text: str, expected: list[str]) -> None:
    assert spans(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "May I ask you something?", "He will march on", "What do I usually do on Mondays?", "我每周三都做什么", "15号线怎么走", "以前年轻的时候",
        "31 June", "2月30号", "300年前的事", "500 years ago", "What did I do in three weeks?", "国庆去哪玩好", "夏天穿什么好", "三个月", "April's birthday", "", "?", "周末一般干什么",
        "the past 300 years", "What is the 21st floor like?", "1月饼", "q9 2022", "on the 45th",
    ],
)  # fmt: skip
def test_what_names_no_time(text: str) -> None:
    assert read(text).periods == ()


def test_a_winter_that_runs_is_this_winter() -> None:
    january = datetime(2023, 1, 10, tzinfo=UTC)
    assert spans("this winter", january) == ["2022-12-01 to 2023-03-01"]
    assert spans("今年冬天", january) == ["2022-12-01 to 2023-03-01"]
    assert spans("last winter", january) == ["2021-12-01 to 2022-03-01"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("last month", "2024-02-01 to 2024-03-01"),
        ("一个月前", "2024-02-13 to 2024-03-17"),  # around the 29th of February
        ("上个月29号", "2024-02-29 to 2024-03-01"),
        ("yesterday", "2024-03-30 to 2024-03-31"),
        ("on the 30th what did I buy", "2024-03-30 to 2024-03-31"),
    ],
)
def test_on_the_last_of_march_of_a_leap_year(text: str, expected: str) -> None:
    assert spans(text, datetime(2024, 3, 31, 10, tzinfo=UTC), "UTC") == [expected]


def test_the_user_s_zone_decides_what_day_it_is() -> None:
    late = datetime(2023, 8, 16, 20, tzinfo=UTC)
    assert spans("yesterday", late, "Asia/Shanghai") == ["2023-08-16 to 2023-08-17"]
    assert spans("yesterday", late, "America/New_York") == ["2023-08-15 to 2023-08-16"]
    assert spans("yesterday", late, "Nowhere/Such") == ["2023-08-15 to 2023-08-16"]
    assert spans("yesterday", late.replace(tzinfo=None), "UTC") == ["2023-08-15 to 2023-08-16"]


def test_days_of_changing_clocks_are_23_and_25_hours_long() -> None:
    for day, hours in (
        (datetime(2024, 3, 11, 12, tzinfo=UTC), 23),
        (datetime(2024, 11, 4, 12, tzinfo=UTC), 25),
    ):
        (period,) = read("yesterday", day, "America/New_York").periods
        assert (period.end.timestamp() - period.start.timestamp()) / 3600 == hours


def test_periods_know_what_lies_in_them() -> None:
    (period,) = read("yesterday").periods
    assert datetime(2023, 8, 15, 10, tzinfo=UTC) in period
    assert NOW not in period
    assert period.end not in period


@pytest.mark.parametrize("as_of", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)])
def test_the_ends_of_the_calendar_break_nothing(as_of: datetime) -> None:
    for text in (
        "last year",
        "next century",
        "two decades ago",
        "明年",
        "in three years",
        "since Monday",
        "before 2020",
    ):
        read(text, as_of, "Asia/Shanghai")
        read(text, as_of, "America/New_York")
