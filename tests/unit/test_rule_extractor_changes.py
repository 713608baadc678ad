"""Changes and denials of what may be known: what conflicts are made of (SPEC §6)."""

from __future__ import annotations

import pytest

from hermes_memory.core.candidate import Marker
from hermes_memory.core.model import Polarity
from tests.unit.rule_turns import one, read

PLUS, MINUS = Polarity.POSITIVE, Polarity.NEGATIVE

STATED = [
    ("Home for me is Lisbon", "city", PLUS, "Lisbon"),
    ("I live in Italy", "city", PLUS, "Italy"),  # not the "it" of "in it"
    ("We moved to Marseille", "city", PLUS, "Marseille"),
    ("I make my living as a carpenter", "occupation", PLUS, "carpenter"),
    ("I'm a web developer now", "occupation", PLUS, "web developer"),
    ("I no longer work at Nokia", "employer", MINUS, "Nokia"),
    ("I left Nokia and joined Ericsson", "employer", PLUS, "Ericsson"),
    ("I'm employed by Lufthansa", "employer", PLUS, "Lufthansa"),
    ("I work nights", "work_schedule", PLUS, "nights"),
    ("I was born on 3 May 1990", "birthday", PLUS, "3 May 1990"),
    ("My star sign is Virgo, I'm told", "zodiac", PLUS, "Virgo"),
    ("I converted to Islam", "religion", PLUS, "Islam"),
    ("I'm married, as you know", "relationship_status", PLUS, "married"),
    ("We tied the knot", "relationship_status", PLUS, "tied the knot"),
    ("I can ski", "skill", PLUS, "ski"),
    ("I speak Italian", "language", PLUS, "Italian"),
    ("I'm not pregnant", "pregnancy", MINUS, "pregnant"),
    ("My son isn't allergic to eggs", "allergy", MINUS, "eggs"),
    ("I don't use a cane", "accessibility", MINUS, "cane"),
    ("I'm not bound by a non-compete", "legal_matter", MINUS, "bound by a non-compete"),
    ("I no longer have a mortgage", "financial_limit", MINUS, "mortgage"),
    ("I can't take on more debt", "financial_limit", MINUS, "debt"),
    ("You can always call me Sam", "form_of_address", PLUS, "Sam"),
    ("From now on, answer me in German", "reply_language", PLUS, "German"),
    ("I prefer a casual tone", "reply_tone", PLUS, "casual"),
    ("I'm no longer learning Latin", "study", MINUS, "Latin"),
    ("I stopped building the shed", "project", MINUS, "shed"),
    ("I feel calm", "mood", PLUS, "calm"),
    ("I take the ferry to work", "commute", PLUS, "take the ferry to work"),
    ("Pancakes are my favourite", "food", PLUS, "Pancakes"),
    ("I do eat liver", "food", PLUS, "liver"),
    ("I drink beer", "alcohol", PLUS, "beer"),
    ("我就是住在嘉兴", "city", PLUS, "嘉兴"),
    ("我靠卖煎饼为生", "occupation", PLUS, "卖煎饼"),
    ("我跳槽了，换到联想上班", "employer", PLUS, "联想"),
    ("我的班次改成早班了", "work_schedule", PLUS, "早班"),
    ("我上个月领证结婚了", "relationship_status", PLUS, "结婚"),
    ("我改信道教了", "religion", PLUS, "道教"),
    ("我性格比较外向", "personality", PLUS, "外向"),
    ("我今年33", "age", PLUS, "33"),
    ("我搬出来一个人住了", "living_arrangement", PLUS, "一个人住"),
    ("我没有特斯拉了", "vehicle", MINUS, "特斯拉"),
    ("我没有怀孕", "pregnancy", MINUS, "怀孕"),
    ("我不用拄拐杖了", "accessibility", MINUS, "拐杖"),
    ("我不吃布洛芬了", "medication", MINUS, "布洛芬"),
    ("我没有和邻居打官司", "legal_matter", MINUS, "打官司"),
    ("我没有车贷了", "financial_limit", MINUS, "车贷"),
    ("我最多能花800块", "financial_limit", PLUS, "800块"),
    ("我喜欢你用英文回答", "reply_language", PLUS, "英文"),
    ("榴莲我不爱吃", "food", MINUS, "榴莲"),
    ("我可喜欢滑雪了", "sport", PLUS, "滑雪"),
    ("我吃羊肉", "food", PLUS, "羊肉"),
    ("我喝白酒", "alcohol", PLUS, "白酒"),
    ("我不学韩语了", "study", MINUS, "韩语"),
    ("我没在写论文了", "project", MINUS, "论文"),
    ("考研不再是我的目标了", "goal", MINUS, "考研"),
]


@pytest.mark.parametrize(("content", "dimension", "polarity", "value"), STATED)
def test_spec_6_a_change_or_denial_is_read(
    content: str, dimension: str, polarity: Polarity, value: str
) -> None:
    found = one(content, dimension)
    assert (found.polarity, found.object) == (polarity, value)


@pytest.mark.parametrize("content", ["I'm Muslim and I don't eat pork", "我是穆斯林，不吃猪肉"])
def test_spec_3_1_a_food_that_a_believer_avoids_is_a_religious_rule(content: str) -> None:
    assert one(content, "religious_taboo").polarity is MINUS


def test_spec_3_1_a_food_that_is_just_avoided_is_none() -> None:
    assert one("I don't eat pork", "food_taboo").polarity is MINUS


@pytest.mark.parametrize("content", ["I was a barista for two years", "I was a teacher in Leeds"])
def test_spec_2_what_one_was_is_no_occupation(content: str) -> None:
    assert "occupation" not in {candidate.dimension for candidate in read(content).candidates}


def test_spec_4_1_7_where_one_works_these_days_is_lasting() -> None:
    assert Marker.TEMPORARY not in one("I work at Adidas these days", "employer").markers
    assert Marker.TEMPORARY in one("I don't drink coffee these days", "drink_preference").markers
