"""Rule recall by time of day and scene (SPEC §7.1, S1 §3.3): what is meant for now comes up, the rest steps back."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from hermes_memory.adapters.daytime_file import load_daytimes
from hermes_memory.core.daytime import Daytimes, Moment, Verdict, fit, judge, verdict
from hermes_memory.core.model import Category, Layer, Memory, Scope
from hermes_memory.errors import InvalidConfig
from tests.small_world import a_memory, default_rules

DAYTIMES = load_daytimes(files("configs").joinpath("words", "daytime.toml"))
RECALL = default_rules().recall
SHANGHAI, NEW_YORK, SYDNEY = (
    ZoneInfo("Asia/Shanghai"),
    ZoneInfo("America/New_York"),
    ZoneInfo("Australia/Sydney"),
)

MORNING = datetime(2026, 3, 4, 8, tzinfo=SHANGHAI)  # a Wednesday
EVENING = datetime(2026, 3, 4, 20, tzinfo=SHANGHAI)


def liking(content: str, **over: Any) -> Memory:
    values: dict[str, Any] = {
        "category": Category.PREFERENCE,
        "layer": Layer.PREFERENCE,
        "dimension": "drink",
    }
    return a_memory(content=content, **(values | over))


def fits(memory: Memory, local: datetime | None, query: str = "", scene: str | None = None) -> float:
    return fit(memory, DAYTIMES.moment(local, scene=scene, query=query), DAYTIMES, RECALL)


def clock(text: str, zone: ZoneInfo = SHANGHAI) -> datetime:
    return datetime.fromisoformat(f"2026-03-04T{text}").replace(tzinfo=zone)


@pytest.mark.parametrize(
    ("content", "holds", "fails"),
    [
        ("我早上喜欢喝黑咖啡", "08:00", "20:00"),
        ("I like black coffee in the morning", "08:00", "20:00"),
        ("早餐我喜欢吃燕麦", "07:30", "19:00"),
        ("午饭我一般吃沙拉", "12:15", "18:45"),
        ("I usually have a salad for lunch", "13:00", "08:00"),
        ("下午我喜欢喝红茶", "15:00", "09:00"),
        ("I like green tea in the afternoon", "15:00", "09:00"),
        ("晚上我喜欢听爵士", "20:00", "10:00"),
        ("In the evening I like jazz", "20:00", "10:00"),
        ("晚上我喜歡喝熱牛奶", "23:50", "12:00"),
        ("I drink tea before bed", "22:00", "15:00"),
        ("深夜我喜欢写代码", "01:00", "17:00"),
        ("Late at night I like to write", "04:59", "05:00"),
        ("白天我喜欢开窗", "14:00", "22:00"),
    ],
)
def test_spec_7_1_a_memory_for_a_part_of_the_day_comes_up_then_and_steps_back_at_another(
    content: str, holds: str, fails: str
) -> None:
    assert fits(liking(content), clock(holds)) == RECALL.fit_holds > 1
    assert fits(liking(content), clock(fails)) == RECALL.fit_fails < 1


@pytest.mark.parametrize(
    ("content", "holds", "fails"),
    [
        ("周末我喜欢睡懒觉", "2026-03-07T10:00", "2026-03-04T10:00"),
        ("On weekdays I like to eat early", "2026-03-04T10:00", "2026-03-08T10:00"),
        ("我夏天喜欢游泳", "2026-07-04T10:00", "2026-01-04T10:00"),
        ("I like soup in winter", "2026-12-31T23:59", "2026-06-01T00:00"),
    ],
)
def test_spec_7_1_so_does_one_for_the_weekend_or_a_season(content: str, holds: str, fails: str) -> None:
    assert fits(liking(content), datetime.fromisoformat(holds).replace(tzinfo=SHANGHAI)) == RECALL.fit_holds
    assert fits(liking(content), datetime.fromisoformat(fails).replace(tzinfo=SHANGHAI)) == RECALL.fit_fails


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("我最喜欢冬天了", "冬天"),
        ("我很讨厌夏天的傍晚", "夏天的傍晚"),
        ("I like winter in the evening", "winter"),
        ("周末我最爱", "周末"),
    ],
)
def test_a_time_that_is_itself_liked_limits_nothing(content: str, what: str) -> None:
    assert fits(liking(content, object=what), MORNING) == fits(liking(content, object=what), EVENING) == 1.0


@pytest.mark.timeout(5)
def test_a_long_object_takes_no_time() -> None:
    assert fits(liking("我喜欢喝茶", object="in the morning " * 17 + "x"), MORNING) == 1.0


def test_what_is_liked_at_a_time_is_limited_though_the_object_names_it() -> None:
    learning = liking("我习惯晚上学习", object="晚上学习")
    assert (fits(learning, EVENING), fits(learning, MORNING)) == (RECALL.fit_holds, RECALL.fit_fails)


def test_spec_7_1_the_seasons_of_the_south_are_those_of_its_zones() -> None:
    soup = liking("I like soup in winter")
    assert fits(soup, datetime(2026, 7, 1, 10, tzinfo=SYDNEY)) == RECALL.fit_holds
    assert fits(soup, datetime(2026, 1, 1, 10, tzinfo=SYDNEY)) == RECALL.fit_fails
    assert fits(soup, datetime(2026, 1, 1, 10, tzinfo=UTC)) == RECALL.fit_holds


def test_spec_7_1_it_is_the_users_day_that_counts() -> None:
    """00:30 UTC is the morning in Shanghai and the evening before in New York."""
    at = datetime(2026, 3, 4, 0, 30, tzinfo=UTC)
    coffee, jazz = liking("我早上喝黑咖啡"), liking("In the evening I like jazz")
    assert fits(coffee, at.astimezone(SHANGHAI)) == fits(jazz, at.astimezone(NEW_YORK)) == RECALL.fit_holds
    assert fits(coffee, at.astimezone(NEW_YORK)) == fits(jazz, at.astimezone(SHANGHAI)) == RECALL.fit_fails


@pytest.mark.parametrize(
    ("text", "night"),
    [("20:29", False), ("20:30", True), ("23:59", True), ("00:00", True), ("04:59", True), ("05:00", False)],
)
def test_spec_7_1_the_night_goes_over_midnight(text: str, night: bool) -> None:
    assert ("night" in DAYTIMES.at(clock(text))["daytime"]) is night


def test_spec_7_1_every_minute_of_the_day_has_a_name() -> None:
    for minute in range(24 * 60):
        assert DAYTIMES.at(clock(f"{minute // 60:02}:{minute % 60:02}"))["daytime"]


@pytest.mark.parametrize(
    "query", ["早餐喝什么", "明早喝什么", "what do I have for breakfast", "a drink for the morning"]
)
def test_spec_7_1_a_query_that_names_a_time_asks_about_that_time(query: str) -> None:
    coffee = liking("我早上喜欢喝黑咖啡")
    assert fits(coffee, EVENING, query) == RECALL.fit_holds
    assert fits(coffee, MORNING, "晚饭后喝什么") == RECALL.fit_fails
    assert fits(coffee, None, query) == RECALL.fit_holds


def test_spec_7_1_where_the_users_time_is_not_known_no_clock_is_guessed() -> None:
    assert fits(liking("我早上喜欢喝黑咖啡"), None, "喝什么") == 1.0


@pytest.mark.parametrize(
    "content",
    [
        "我喜欢喝黑咖啡", "I like jazz", "我喜欢下午茶", "I love afternoon tea", "I like night markets", "我喜欢吃春卷", "I like spring rolls",
    ],
)  # fmt: skip
def test_what_names_no_time_fits_always(content: str) -> None:
    assert fits(liking(content), MORNING) == fits(liking(content), EVENING) == 1.0


@pytest.mark.parametrize(
    ("content", "category", "layer"),
    [
        ("我早上八点上班", Category.FACT, Layer.IDENTITY),
        ("我昨天晚上去看了电影", Category.EVENT, None),
        ("I run in the morning these days", Category.STATE, Layer.CONTEXT),
    ],
)
def test_a_time_in_a_fact_or_an_event_limits_nothing(
    content: str, category: Category, layer: Layer | None
) -> None:
    memory = liking(content, category=category, layer=layer)
    assert fits(memory, MORNING) == fits(memory, EVENING) == 1.0


def test_what_protects_comes_up_but_never_steps_back() -> None:
    restriction = liking("晚上不喝咖啡", layer=Layer.RESTRICTION)
    assert fits(restriction, EVENING) == RECALL.fit_holds
    assert fits(restriction, MORNING) == 1.0
    assert fits(liking("睡前要吃药", safety=True), MORNING) == 1.0


def test_spec_7_1_a_memory_of_a_scene_comes_up_in_it() -> None:
    here = liking("我要靠窗的位子", scope=Scope.SCENE, scene="dining")
    assert fits(here, MORNING, scene="dining") == RECALL.fit_holds
    assert fits(here, MORNING, scene="travel") == RECALL.fit_fails
    assert fits(here, MORNING) == 1.0
    assert fits(liking("我喜欢喝茶"), MORNING, scene="dining") == 1.0


def test_one_limit_that_fails_fails_the_whole() -> None:
    memory = liking("周末晚上我喜欢喝啤酒", scope=Scope.SCENE, scene="dining")
    saturday = datetime(2026, 3, 7, 20, tzinfo=SHANGHAI)
    assert fits(memory, saturday, scene="dining") == RECALL.fit_holds
    assert fits(memory, saturday.replace(hour=9), scene="dining") == RECALL.fit_fails
    assert fits(memory, EVENING, scene="dining") == RECALL.fit_fails
    assert fits(memory, saturday, scene="travel") == RECALL.fit_fails


def test_a_kind_that_has_no_name_for_now_fails() -> None:
    limits = DAYTIMES.of(["morning"])
    assert judge(limits, Moment({"daytime": frozenset()})) is Verdict.FAILS
    assert judge(limits, Moment({})) is Verdict.SILENT


def test_without_names_everything_is_silent() -> None:
    none = Daytimes()
    memory = liking("我早上喜欢喝黑咖啡")
    assert verdict(memory, none.moment(MORNING, query="早餐"), none) is Verdict.SILENT
    assert none.names("daytime") == frozenset()


def test_the_names_of_a_kind() -> None:
    assert DAYTIMES.names("season") == {"spring", "summer", "autumn", "winter"}
    assert DAYTIMES.of(["winter", "morning", "unheard"]) == {
        "season": frozenset({"winter"}), "daytime": frozenset({"morning"}),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("[[time", "daytime.toml"),
        ('[[time]]\nname = "x"\nkind = "daytime"\nwords = ["x"]', "time.0"),
        ('[[time]]\nname = "x"\nkind = "daytime"\nwords = ["x"]\nhours = ["05:00", "25:00"]', "hours"),
        ('[[time]]\nname = "x"\nkind = "daytime"\nwords = []\nweekdays = [1]', "words"),
        ('[[time]]\nname = "x"\nkind = "week"\nwords = ["x"]\nweekdays = [8]', "weekdays"),
        ('[[time]]\nname = "x"\nkind = "season"\nwords = ["x"]\nmonths = [1]\nmoon = "full"', "moon"),
        ('[[time]]\nname = "x"\nkind = "season"\nwords = ["x"]\nmonths = [1]\n' * 2, "twice"),
    ],
)
def test_a_file_that_does_not_hold_together_is_refused(tmp_path: Path, text: str, where: str) -> None:
    path = tmp_path / "daytime.toml"
    path.write_text(text)
    with pytest.raises(InvalidConfig, match=where):
        load_daytimes(path)
