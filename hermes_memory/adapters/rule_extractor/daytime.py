"""Clock times and counting words in Chinese and English."""

from __future__ import annotations

import re
from datetime import time

_ZH_NUMBER = {char: number for number, char in enumerate("零一二三四五六七八九十")} | {"两": 2, "半": 0}
_EN_COUNT = {
    "a": 1,
    "an": 1,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "ten": 10,
}
CLOCK = re.compile(
    r"""(?P<zpart>凌晨|早上|早晨|上午|中午|下午|傍晚|晚上|夜里|早|晚)?(?P<zh>\d{1,2}|(?<![少多快慢大小好高低短长单洁轻重有了近远细静])[一二两三四五六七八九十]{1,3})
       (?:点钟?(?P<zmin>半|一刻|三刻|(?:\d{1,2}|[一二三四五]?十?[一二三四五六七八九]?)分?)?|[:：](?P<zcol>[0-5]\d))
    |\b(?:at\ )?(?P<eh>\d{1,2})(?:[:.](?P<emin>[0-5]\d))?\s?(?P<ampm>[ap]\.?m\b\.?|o'clock)
    |\bat\ (?P<e24>\d{1,2}):(?P<e24m>[0-5]\d)\b
    |\b(?:at\ )?(?P<word>noon|midday|midnight)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_CLOCK_REACH = 24  # characters behind a date in which a clock time belongs to it
_AFTERNOON = frozenset({"下午", "傍晚", "晚上", "夜里", "晚"})
_EVENING_WORDS = frozenset({"今晚", "明晚", "昨晚", "tonight"})


def number(text: str) -> int:
    """A count in digits, Chinese numerals up to ninety-nine, or English words up to ten."""
    if text.isdigit():
        return int(text)
    if text.lower() in _EN_COUNT:
        return _EN_COUNT[text.lower()]
    tens, _, units = text.partition("十")
    if "十" not in text:
        return _ZH_NUMBER[text[-1]]
    return (_ZH_NUMBER[tens] if tens else 1) * 10 + (_ZH_NUMBER[units] if units else 0)


def clock_near(text: str, date: re.Match[str], end: int, start: int = 0) -> tuple[time, int] | None:
    """The clock time that belongs to the date: later in the clause, or just before it."""
    hit = CLOCK.search(text, date.end(), min(end, date.end() + _CLOCK_REACH))
    if hit is None:
        before = CLOCK.search(text, max(start, date.start() - 16), date.start())
        hit = before
    if hit is None:
        return None
    late = date.group("near") is not None and date.group("near").lower() in _EVENING_WORDS
    found = _clock(hit, late, text[date.end() : hit.start()])
    return (found, hit.end()) if found else None


def _clock(hit: re.Match[str], late: bool, between: str) -> time | None:
    if word := hit.group("word"):
        return time(0 if word.lower() == "midnight" else 12)
    if hit.group("e24"):
        return time(int(hit.group("e24")), int(hit.group("e24m")))
    if hit.group("eh"):
        hour, minute = int(hit.group("eh")) % 12, int(hit.group("emin") or 0)
        after = hit.group("ampm").lower().startswith("p") or (late and hit.group("ampm") == "o'clock")
        return time(hour + 12 * after, minute)
    hour = number(hit.group("zh"))
    part = hit.group("zpart") or next((word for word in _AFTERNOON if word in between), "")
    after = hour < 12 and (part in _AFTERNOON or late or (part == "中午" and hour < 4))
    return time(hour + 12 * after, _minute(hit))


def _minute(hit: re.Match[str]) -> int:
    text = (hit.group("zcol") or hit.group("zmin") or "").rstrip("分")
    named = {"": 0, "半": 30, "一刻": 15, "三刻": 45}
    return named[text] if text in named else number(text)
