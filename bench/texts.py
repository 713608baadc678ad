"""Made-up but plausible texts: what a user of a chat product says, and what is asked; Chinese and English."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, product
from math import gcd

from hermes_memory.core.model import Category, Layer

_FOODS = (
    "火锅",
    "寿司",
    "牛肉面",
    "清蒸鱼",
    "小笼包",
    "披萨",
    "沙拉",
    "麻婆豆腐",
    "烤鸭",
    "冬阴功汤",
    "饺子",
    "粥",
)
_FOODS_EN = (
    "ramen",
    "tacos",
    "salmon",
    "dumplings",
    "pizza",
    "falafel",
    "curry",
    "salad",
    "pancakes",
    "risotto",
)
_PLACES = ("苏州", "杭州", "成都", "北京", "厦门", "昆明", "西安", "大理", "青岛", "广州", "南京", "长沙")
_PLACES_EN = ("Lisbon", "Kyoto", "Berlin", "Oslo", "Boston", "Dublin", "Prague", "Seattle", "Porto", "Vienna")
_PEOPLE = ("妈妈", "同事小王", "女儿", "大学室友", "邻居", "男朋友", "表妹", "老板", "教练", "爷爷")
_PEOPLE_EN = ("my sister", "Tom", "my manager", "an old friend", "my daughter", "the neighbours", "my coach")
_DOINGS = (
    "爬山",
    "看展览",
    "学吉他",
    "打羽毛球",
    "拍照片",
    "练毛笔字",
    "做木工",
    "钓鱼",
    "写代码",
    "跑步",
    "烘焙",
)
_DOINGS_EN = (
    "hiking",
    "pottery",
    "chess",
    "swimming",
    "sketching",
    "gardening",
    "running",
    "baking",
    "coding",
)
_TIMES = ("明天", "周五晚上", "下个月", "国庆假期", "今年冬天", "这周末", "生日那天", "下班以后", "七月初")
_TIMES_EN = (
    "tomorrow",
    "on Friday",
    "next month",
    "over the holidays",
    "this winter",
    "in July",
    "after work",
)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of statement: where it belongs, how it is said, and of how many a user has it at most."""

    dimension: str
    category: Category
    layer: Layer | None
    zh: str
    en: str
    most: int | None = None


FEW = (  # what every user has one or a few of
    Kind("name", Category.FACT, Layer.IDENTITY, "用户叫{who}", "The user is called {who}", 1),
    Kind("form_of_address", Category.PREFERENCE, Layer.STYLE, "用户希望被称呼为{who}", "Wants to be called {who}", 1),
    Kind("city", Category.FACT, Layer.IDENTITY, "用户住在{where}", "The user lives in {where}", 1),
    Kind("hometown", Category.FACT, Layer.IDENTITY, "用户的老家在{where}", "The user grew up in {where}", 1),
    Kind("reply_length", Category.PREFERENCE, Layer.STYLE, "用户喜欢简短的回答", "Likes short answers", 1),
    Kind("allergy", Category.FACT, Layer.RESTRICTION, "用户对{food}过敏", "The user is allergic to {food}", 3),
    Kind("food_taboo", Category.PREFERENCE, Layer.RESTRICTION, "用户不吃{food}", "The user does not eat {food}", 3),
)  # fmt: skip
MANY = (  # what fills the tiers, in turn
    Kind("event", Category.EVENT, None, "上周和{who}在{where}{doing}", "Went {doing} in {where} with {who}"),
    Kind("plan", Category.EVENT, None, "打算下个月去{where}见{who}", "Plans to see {who} in {where} next month"),
    Kind("opinion", Category.EVENT, None, "觉得{where}的{food}很一般", "Found the {food} in {where} rather plain"),
    Kind("food", Category.PREFERENCE, Layer.PREFERENCE, "喜欢吃{where}的{food}", "Likes the {food} in {where}"),
    Kind("hobby", Category.PREFERENCE, Layer.PREFERENCE, "周末常和{who}{doing}", "Often goes {doing} with {who}"),
    Kind("note", Category.EVENT, None, "{who}推荐了{where}的一家{food}店", "{who} knows a place for {food} in {where}"),
    Kind("project", Category.STATE, Layer.CONTEXT, "最近在{where}忙着{doing}", "Is busy with {doing} in {where}"),
    Kind("social_circle", Category.FACT, Layer.IDENTITY, "{who}在{where}教{doing}", "{who} teaches {doing} in {where}"),
    Kind("travel_preference", Category.PREFERENCE, Layer.PREFERENCE, "去{where}时要{doing}", "In {where} wants {doing}"),
    Kind("goal", Category.STATE, Layer.CONTEXT, "今年想跟{who}学会{doing}", "Wants to learn {doing} from {who}"),
)  # fmt: skip

_ASKED = (
    "{when}和{who}去{where}玩，有什么{food}店推荐吗",
    "帮我安排一下{when}和{who}在{where}{doing}的行程",
    "{who}{when}想学{doing}，在{where}怎么开始比较好",
    "给{who}写一封邮件，说说{when}在{where}{doing}的事",
)
_ASKED_EN = (
    "Where in {where} could I have {food} with {who} {when}?",
    "Draft a note to {who} about {doing} in {where} {when}",
    "How do I get {who} interested in {doing} while we are in {where} {when}?",
)


def _fills(chinese: bool) -> Iterator[dict[str, str]]:
    """Every combination once, in an order in which neighbours have little in common."""
    pools = (
        (_FOODS, _PLACES, _PEOPLE, _DOINGS, _TIMES)
        if chinese
        else (_FOODS_EN, _PLACES_EN, _PEOPLE_EN, _DOINGS_EN, _TIMES_EN)
    )
    whole = list(product(*pools))
    stride = int(len(whole) * 0.618)
    while gcd(stride, len(whole)) > 1:
        stride += 1
    for number in range(len(whole)):
        food, where, who, doing, when = whole[number * stride % len(whole)]
        yield {"food": food, "where": where, "who": who, "doing": doing, "when": when}


def statements(count: int) -> list[tuple[Kind, str, str]]:
    """``count`` statements with their kind and object: the few first, then the many; two of three Chinese."""
    chinese, english = _fills(chinese=True), _fills(chinese=False)
    few = [kind for kind in FEW for _ in range(kind.most or 1)]
    made = []
    for number in range(count):
        kind = few[number] if number < len(few) and count > len(few) else MANY[number % len(MANY)]
        in_chinese = number % 3 != 2
        values = next(chinese if in_chinese else english)
        text = (kind.zh if in_chinese else kind.en).format(**values)
        made.append((kind, text, _object(kind, values)))
    return made


def _object(kind: Kind, values: dict[str, str]) -> str:
    return next(
        (values[name] for name in ("food", "doing", "who", "where") if f"{{{name}}}" in kind.zh), "yes"
    )


def queries() -> Iterator[str]:
    """Different queries without end in sight (some ten thousand), two of three Chinese."""
    chinese = (_ASKED[i % len(_ASKED)].format(**v) for i, v in enumerate(_fills(chinese=True)))
    english = (_ASKED_EN[i % len(_ASKED_EN)].format(**v) for i, v in enumerate(_fills(chinese=False)))
    seen: set[str] = set()
    while batch := [*islice(chinese, 2), *islice(english, 1)]:
        for text in batch:
            if text not in seen:
                seen.add(text)
                yield text
