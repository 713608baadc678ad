"""Relative and absolute dates in a clause, resolved in the speaker's time zone (SPEC §4.1.2)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from hermes_memory.adapters.rule_extractor.daytime import CLOCK, clock_near, number

_ZH_DAY = {char: number for number, char in enumerate("一二三四五六")} | {"日": 6, "天": 6, "末": 5}
_EN_DAY = {name: number for number, name in enumerate(("mon", "tue", "wed", "thu", "fri", "sat", "sun"))}
_EN_MONTH = {
    name: number + 1
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
    )
}
_NEAR = {
    "大后天": 3, "后天": 2, "明天": 1, "明早": 1, "明晚": 1, "明儿": 1, "今天": 0, "今晚": 0, "今早": 0, "今日": 0,
    "昨天": -1, "昨晚": -1, "前天": -2, "大前天": -3,
    "the day after tomorrow": 2, "day after tomorrow": 2, "tomorrow": 1, "today": 0, "tonight": 0,
    "this morning": 0, "this afternoon": 0, "this evening": 0,
    "the day before yesterday": -2, "yesterday": -1, "last night": -1,
}  # fmt: skip
_Z12 = r"(?:1[0-2]|[1-9]|十[一二]?|[一二三四五六七八九])"
_Z31 = r"(?:3[01]|[12]\d|0?[1-9]|三十一?|二?十[一二三四五六七八九]?|[一二三四五六七八九])"
_YEAR_STEP = {"今": 0, "明": 1, "后": 2, "去": -1, "前": -2}
_N = r"(?:\d{1,3}|[一二两三四五六七八九十]{1,3})"
_MONTHS = r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
_DAYS = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
_FULL_DAYS = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"  # "sun" alone shines
_DATE = re.compile(
    rf"""(?P<iso>\b\d{{4}}[-/]\d{{1,2}}[-/]\d{{1,2}}\b)
    |(?P<zfull>(?:(?P<zy>\d{{4}}|[今明去]|后|前)年)?(?P<zm>{_Z12})月(?:份)?(?P<zd>{_Z31})[日号])
    |(?P<zweek>(?P<zwhich>这个?|本|上上?个?|下下?个?)?(?:周|星期|礼拜)(?P<zday>[一二三四五六日天末]))
    |(?P<zin>(?P<zn>{_N})(?P<zu>天|周|个?星期|个月|年)(?P<zdir>后|之后|以后|前|之前|以前))
    |(?P<zmd>(?P<zmw>这个?|本|下个?|上个?)月(?P<zmn>{_Z31})[日号])
    |(?P<zmonth>(?:(?P<zmonthw>下下个?|下个?|上上个?|上个?)月|(?:(?P<zmonthy>\d{{4}}|[明去后前])年)?(?<![个\d一二三四五六七八九十.])(?P<zmonthn>{_Z12})月)(?:份|初|中旬|底|末)?(?![\d亮饼薪经嫂球季租天光])(?!前|后|之前|以前))
    |(?P<zyear>(?P<zyearw>[明后去前])年)
    |(?P<near>大后天|大前天|后天|明天|明早|明晚|明儿|今天|今晚|今早|今日|昨天|昨晚|前天
       |\b(?:the\ )?day\ after\ tomorrow\b|\b(?:the\ )?day\ before\ yesterday\b|\btomorrow\b|\btoday\b|\btonight\b
       |\byesterday\b|\blast\ night\b|\bthis\ (?:morning|afternoon|evening)\b)
    |(?P<eweek>\b(?:(?P<ewhich>this|next|last|on|coming|this\ coming)\ (?P<eday>{_DAYS})|(?P<efull>{_FULL_DAYS}))\b(?!s))
    |(?P<ein>\bin\ (?P<en>\d{{1,3}}|a|an|one|two|three|four|five|six|seven|ten)\ (?P<eu>days?|weeks?|months?|years?)\b)
    |(?P<eago>\b(?P<an>\d{{1,3}}|a|an|one|two|three|four|five|six|seven|ten)\ (?P<au>days?|weeks?|months?|years?)\ ago\b)
    |(?P<espan>\b(?:(?P<swhich>next|last)\ (?P<sunit>week|month|year|weekend)|this\ (?:coming\ )?weekend)\b)
    |(?P<emd>\b(?P<em1>{_MONTHS})\ (?P<ed1>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\ (?P<ey1>\d{{4}}))?)
    |(?P<emonth>\b(?:in|next|last)\ (?P<em3>{_MONTHS})\b(?!\ \d))
    |(?P<edm>\b(?:the\ )?(?P<ed2>\d{{1,2}})(?:st|nd|rd|th)?\ (?:of\ )?(?P<em2>{_MONTHS})\b(?:,?\ (?P<ey2>\d{{4}}))?)
    """,
    re.IGNORECASE | re.VERBOSE,
)
_FOR_SO_LONG = re.compile(
    r"(?:\bnot|n't|\bnever|\bfirst|\bonce)\b[^.,;]*$", re.I
)  # "I haven't run in five years"
_GAP = re.compile(
    r"(?:的|\s|,|，|at|on|早上|早晨|上午|中午|下午|傍晚|晚上|晚|早|凌晨|morning|afternoon|evening|night)*",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Moment:
    """A resolved date: where the words stand, the instant, and whether a clock time was named."""

    start: int
    end: int
    at: datetime
    timed: bool
    weekly: bool = False  # a weekday without "next" or "last"
    ahead: bool = False  # after the statement
    yearly: bool = False  # a month without its year
    form: str = "%Y-%m-%d"  # as exact as the words: "next month" names no day

    def before(self) -> Moment:
        """The last time instead of the next: what is told as past lies behind."""
        if not self.ahead or not (self.weekly or self.yearly):
            return self
        at = self.at - timedelta(days=7) if self.weekly else self.at.replace(year=self.at.year - 1)
        return replace(self, at=at, ahead=False)

    @property
    def label(self) -> str:
        """As it is put behind the content: a date, or date and time."""
        return self.at.strftime(f"{self.form} %H:%M" if self.timed else self.form)

    def side(self, said_at: datetime) -> int:
        """Whether it lies before (-1), on (0) or after (1) the day of the statement, or its month or year."""
        mine = self.at.strftime(self.form)
        theirs = said_at.astimezone(self.at.tzinfo).strftime(self.form)
        return (mine > theirs) - (mine < theirs)


@lru_cache(maxsize=1024)
def zone(name: str) -> ZoneInfo:
    """The time zone of a turn; UTC where the name is unknown. The first look at one reads a file."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo("UTC")


def find_moment(text: str, start: int, end: int, said_at: datetime, timezone: str) -> Moment | None:
    """The first date in ``text[start:end]``, seen from ``said_at``; None if there is none."""
    hit = _DATE.search(text, start, end)
    if hit is None:
        return None
    here = said_at.astimezone(zone(timezone))
    try:
        kind = _kind(hit)
        day = _RESOLVE[kind](hit, here)
        form = _zh_form(kind, hit) or _form(kind, hit)
        clock = clock_near(text, hit, end, start) if form == "%Y-%m-%d" else None
        if clock is None:
            stop, at = hit.end(), day.replace(hour=0, minute=0, second=0, microsecond=0)
        else:
            at = day.replace(hour=clock[0].hour, minute=clock[0].minute, second=0, microsecond=0)
            stop = max(hit.end(), clock[1])
        weekly = bool(hit.group("zweek") or hit.group("eweek"))
        return Moment(hit.start(), stop, at, clock is not None, weekly, at > here, kind == "emonth", form)
    except (ValueError, OverflowError):
        return None  # the thirty-first of June


def date_at(text: str, at: int, end: int) -> int:
    """Where a date or clock expression that begins at ``at`` ends; ``at`` if none does."""
    stop = at
    while True:
        gap = _GAP.match(text, stop, end).end()  # type: ignore[union-attr]
        hit = _DATE.match(text, gap, end) or (CLOCK.match(text, gap, end) if stop > at else None)
        if hit is None or hit.end() == hit.start():
            return gap if stop > at else at
        stop = hit.end()


def _kind(hit: re.Match[str]) -> str:
    return next(name for name in _RESOLVE if hit.group(name))


def _of(here: datetime, year: str | None, month: int, day: int) -> datetime:
    if year:
        return here.replace(year=int(year), month=month, day=day)
    found = here.replace(month=month, day=day)
    return found.replace(year=found.year + 1) if (here - found).days > 180 else found


def _iso(hit: re.Match[str], here: datetime) -> datetime:
    year, month, day = re.split("[-/]", hit.group("iso"))
    return _of(here, year, int(month), int(day))


def _week(here: datetime, weekday: int, weeks: int | None) -> datetime:
    """A weekday of the current week moved by ``weeks``; None means the next one to come."""
    days = weekday - here.weekday()
    if weeks is None:
        days %= 7
        return here + timedelta(days=days)
    return here + timedelta(days=days + 7 * weeks)


def _zh_week(hit: re.Match[str], here: datetime) -> datetime:
    which = (hit.group("zwhich") or "").replace("个", "")
    weeks = {"": None, "这": 0, "本": 0, "下": 1, "下下": 2, "上": -1, "上上": -2}[which]
    return _week(here, _ZH_DAY[hit.group("zday")], weeks)


def _en_week(hit: re.Match[str], here: datetime) -> datetime:
    which = (hit.group("ewhich") or "").lower()
    weekday = _EN_DAY[(hit.group("eday") or hit.group("efull")).lower()[:3]]
    return _week(here, weekday, {"next": 1, "last": -1}.get(which))


def _en_span(hit: re.Match[str], here: datetime) -> datetime:
    """The first day of the week, weekend, month or year that is named."""
    step = {"next": 1, "last": -1}.get((hit.group("swhich") or "").lower(), 0)
    unit = (hit.group("sunit") or "weekend").lower()
    if unit == "year":
        return here.replace(year=here.year + step, month=1, day=1)
    if unit == "month":
        month = here.month + step
        year = here.year + (month > 12) - (month < 1)
        return here.replace(year=year, month=(month - 1) % 12 + 1, day=1)
    return _week(here, 5 if unit == "weekend" else 0, step)


def _en_month(hit: re.Match[str], here: datetime) -> datetime:
    month = _EN_MONTH[hit.group("em3").lower()[:3]]
    found = here.replace(month=month, day=1)
    if hit.group().lower().startswith("last"):
        return found if found < here.replace(day=1) else found.replace(year=found.year - 1)
    return found.replace(year=found.year + 1) if month < here.month else found


def _en_in(hit: re.Match[str], here: datetime) -> datetime:
    if _FOR_SO_LONG.search(hit.string, max(0, hit.start() - 60), hit.start()):
        raise ValueError("a length of time, not a date")
    return _shift(here, number(hit.group("en")), hit.group("eu"), 1)


def _form(kind: str, hit: re.Match[str]) -> str:
    unit = (hit.group("sunit") or hit.group("eu") or hit.group("au") or "").lower().rstrip("s")
    return "%Y" if unit == "year" else "%Y-%m" if unit == "month" or kind == "emonth" else "%Y-%m-%d"


def _shift(here: datetime, count: int, unit: str, sign: int) -> datetime:
    days = {"d": 1, "天": 1, "w": 7, "周": 7, "星": 7, "m": 30, "月": 30, "y": 365}
    head = unit.replace("个", "").lower()[0]
    return here + timedelta(days=sign * count * days[head])


def _zh_in(hit: re.Match[str], here: datetime) -> datetime:
    sign = -1 if "前" in hit.group("zdir") else 1
    if hit.group("zu") == "年":
        return here.replace(year=here.year + sign * number(hit.group("zn")))
    return _shift(here, number(hit.group("zn")), hit.group("zu"), sign)


def _zh_month(hit: re.Match[str], here: datetime) -> datetime:
    step = {"下": 1, "上": -1}.get(hit.group("zmw")[0], 0)
    month = here.month + step
    year = here.year + (month > 12) - (month < 1)
    return here.replace(year=year, month=(month - 1) % 12 + 1, day=number(hit.group("zmn")))


def _zh_full(hit: re.Match[str], here: datetime) -> datetime:
    return _of(here, _zh_year(hit.group("zy"), here), number(hit.group("zm")), number(hit.group("zd")))


def _zh_year(word: str | None, here: datetime) -> str | None:
    """明 or 2027 to 2027; None where no year is named."""
    return str(here.year + _YEAR_STEP[word]) if word in _YEAR_STEP else word


def _zh_bare_month(hit: re.Match[str], here: datetime) -> datetime:
    """The first of the month that is named: 下个月, 明年三月, 五月."""
    if which := hit.group("zmonthw"):
        step = {"下": 1, "下下": 2, "上": -1, "上上": -2}[which.removesuffix("个")]
        months = here.year * 12 + here.month - 1 + step
        return here.replace(year=months // 12, month=months % 12 + 1, day=1)
    return _of(here, _zh_year(hit.group("zmonthy"), here), number(hit.group("zmonthn")), 1)


def _zh_bare_year(hit: re.Match[str], here: datetime) -> datetime:
    return here.replace(year=here.year + _YEAR_STEP[hit.group("zyearw")], month=1, day=1)


def _zh_form(kind: str, hit: re.Match[str]) -> str:
    """How exact a Chinese date is; empty where it names a day."""
    if kind == "zmonth":
        return "%Y-%m"
    return "%Y" if kind == "zyear" or hit.group("zu") == "年" else ""


_RESOLVE: dict[str, Callable[[re.Match[str], datetime], datetime]] = {
    "iso": _iso,
    "zfull": _zh_full,
    "zweek": _zh_week,
    "zin": _zh_in,
    "zmd": _zh_month,
    "zmonth": _zh_bare_month,
    "zyear": _zh_bare_year,
    "near": lambda hit, here: here + timedelta(days=_NEAR[hit.group("near").lower()]),
    "eweek": _en_week,
    "ein": _en_in,
    "espan": _en_span,
    "emonth": _en_month,
    "eago": lambda hit, here: _shift(here, number(hit.group("an")), hit.group("au"), -1),
    "emd": lambda hit, here: _of(
        here, hit.group("ey1"), _EN_MONTH[hit.group("em1").lower()[:3]], int(hit.group("ed1"))
    ),
    "edm": lambda hit, here: _of(
        here, hit.group("ey2"), _EN_MONTH[hit.group("em2").lower()[:3]], int(hit.group("ed2"))
    ),
}
