"""Reading a query: never raises, names periods that begin before they end, and reads all spellings alike."""

from datetime import UTC, datetime, timedelta
from importlib.resources import files

import opencc
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_memory.adapters.query_reader import load_query_reader

READER = load_query_reader(files("configs") / "words" / "asking.toml")
TRADITIONAL = opencc.OpenCC("s2t").convert

ZONES = st.sampled_from(
    [
        "UTC",
        "Asia/Shanghai",
        "America/New_York",
        "America/Sao_Paulo",
        "Australia/Lord_Howe",
        "Africa/Casablanca",
        "Nowhere",
    ]
)
TIMES = st.datetimes(datetime(1950, 1, 1), datetime(2190, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001 - bounds
WORDS = st.sampled_from([
    "last", "this", "next", "week", "month", "year", "weekend", "friday", "on monday", "in may", "2023", "may 31", "february 29", "29 february 2023", "31", "ago", "two", "half a", "months", "decades",
    "before", "after", "since", "between", "and", "from", "to", "early", "the end of", "summer", "winter", "christmas", "yesterday", "tonight", "what did I do", "translate", "my", "function",
    "上", "下", "上上", "个", "周", "月", "年", "去年", "前年", "五月", "12月", "31号", "2月29号", "三", "半", "天前", "个月前", "年前", "之前", "之后", "以来", "从", "到", "底", "上半年", "夏天", "春节", "周末", "昨晚", "我",
    "做了什么", "翻译", "“", "”", ":", "，", "?", "1+1", "9999", "0000-00-00", "2023-02-30", "q4", "90年代",
])  # fmt: skip
PHRASES = st.lists(WORDS, max_size=8).flatmap(
    lambda words: st.sampled_from(["", " "]).map(lambda between: between.join(words))
)
HOLDS = ["最", "昨天", "上周", "去年五月", "三天前我说过什么", "翻译这句话", "推荐一家餐厅", "二战什么时候结束", "what did I eat", "my plans", "in May 2021", "sort a list in python"]  # fmt: skip


@given(st.text(max_size=200), TIMES, ZONES)
def test_reading_never_raises(text: str, as_of: datetime, zone: str) -> None:
    READER.read(text, as_of, zone)


@given(PHRASES, TIMES, ZONES)
@settings(max_examples=400)
def test_periods_begin_before_they_end_and_know_their_zone(text: str, as_of: datetime, zone: str) -> None:
    for period in READER.read(text, as_of, zone).periods:
        assert period.start.timestamp() < period.end.timestamp()
        assert period.start.utcoffset() is not None
        assert period.end - period.start >= timedelta(minutes=1)


@given(st.datetimes(datetime(2000, 1, 1), datetime(2060, 1, 1), timezones=st.just(UTC)), ZONES)  # noqa: DTZ001
def test_periods_touch_one_another(as_of: datetime, zone: str) -> None:
    for first, second in (
        ("yesterday", "today"),
        ("上周", "这周"),
        ("last month", "this month"),
        ("去年", "今年"),
        ("today", "tomorrow"),
    ):
        (one,), (other,) = (READER.read(text, as_of, zone).periods for text in (first, second))
        assert one.end == other.start
    (today,) = READER.read("today", as_of, zone).periods
    assert as_of in today


@given(st.lists(st.sampled_from(HOLDS), min_size=1, max_size=3).map("，".join), TIMES)
def test_all_spellings_read_alike(text: str, as_of: datetime) -> None:
    plain = READER.read(text, as_of, "UTC")
    wide = "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text)
    assert READER.read(TRADITIONAL(text), as_of, "UTC") == plain
    assert READER.read(wide, as_of, "UTC") == plain
    shouted = READER.read(text.upper(), as_of, "UTC")
    assert (shouted.periods, shouted.errand, shouted.personal, shouted.about_past) == (
        plain.periods, plain.errand, plain.personal, plain.about_past,
    )  # fmt: skip
