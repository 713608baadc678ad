"""Kinds of contradiction, and of what looks like one, on the shipped dimensions (SPEC §6)."""

from __future__ import annotations

from importlib.resources import files

import pytest

from hermes_memory.adapters.dimension_file import load_dimensions
from hermes_memory.core.conflicts import contradicts
from hermes_memory.core.inspection import inspect
from hermes_memory.core.model import Category, Memory, Polarity
from hermes_memory.testing.builders import a_memory

DIMENSIONS = load_dimensions(files("configs") / "dimensions.toml")


def states(line: str) -> Memory:
    """``dimension+object`` or ``dimension-object``, and after ``|`` the content if it says more."""
    head, _, content = line.partition("|")
    sign = "+" if "+" in head else "-"
    key, _, value = head.partition(sign)
    entry = DIMENSIONS.get(key)
    assert entry is not None, key
    return a_memory(
        dimension=key, category=entry.category, layer=entry.layer, object=value, polarity=Polarity(sign),
        content=content or value,
    )  # fmt: skip


CONTRADICT = [
    # one value at a time
    ("city+苏州", "city+杭州"),
    ("city+Oslo", "city+Bergen"),
    ("city+天河区", "city+番禺区"),
    ("residence_need+带家具的房子", "residence_need+不带家具的房子"),
    ("relationship_status+单身", "relationship_status+结婚"),
    ("occupation+律师", "occupation+律师助理"),
    # an attribute has one value
    ("body+血型是A型|我的血型是A型", "body+血型是O型|我的血型是O型"),
    ("body+blood type is A|My blood type is A", "body+blood type is B|My blood type is B"),
    ("colour+blue|My favourite colour is blue", "colour+red|My favourite colour is red"),
    ("food+西瓜|我最喜欢的水果是西瓜", "food+葡萄|我最喜欢的水果是葡萄"),
    ("children+两个孩子|我有两个孩子", "children+三个孩子|我有三个孩子"),
    ("pet_name+咪咪|我的猫叫咪咪", "pet_name+豆豆|我的猫改名叫豆豆了"),
    ("contact+a@x.org|my email is a@x.org", "contact+b@x.org|my email is b@x.org"),
    ("budget+$500|my budget is $500", "budget+$800|my budget is $800"),
    (
        "financial_limit-$200 a month|I can't spend more than $200 a month",
        "financial_limit-$400 a month|I can't spend more than $400 a month",
    ),
    # what a denial covers
    ("drink_preference+coffee", "drink_preference-coffee"),
    ("drink_preference+冰美式咖啡", "drink_preference-咖啡"),
    ("pet+一只橘猫", "pet-宠物"),
    ("children+a daughter", "children-kids"),
    ("pet+golden retriever", "pet-a dog"),
    ("food+牛排", "food_taboo-肉"),
    ("alcohol+red wine", "alcohol-alcohol"),
    ("food+猪肉", "religious_taboo-猪肉"),
    ("legal_matter+custody case", "possession-a custody case"),
    ("vehicle+一辆车", "vehicle-车"),
    ("goal+run a marathon", "goal-Running a marathon"),
    ("drink_preference+coffee|coffee in the morning", "drink_preference-coffee|no coffee"),
    # values that exclude each other
    ("environment+安静的餐厅", "environment+热闹的餐厅"),
    ("environment+熱鬧的餐廳", "environment+安靜的餐廳"),
    ("diet+vegan", "food+cheese"),
    ("alcohol+teetotal", "alcohol+whisky"),
    ("travel_preference+自由行", "travel_preference+跟团"),
    ("education+小学三年级", "education+小学四年级"),
    ("diet+素食主义者", "food+牛排"),
    ("family_member+only child", "family_member+a sister"),
    ("routine+early bird", "routine+night owl"),
]

AGREE = [
    # several values
    ("hobby+登山", "hobby+钓鱼"),
    ("allergy+花生", "allergy+芒果"),
    ("body+血型是A型|我的血型是A型", "body+身高175|我的身高175"),
    ("colour+blue|My favourite colour is blue", "colour+red|I like red"),
    ("food+西瓜|我最喜欢的水果是西瓜", "food+菠菜|我最喜欢的蔬菜是菠菜"),
    # the same in other words
    ("city+Beijing", "city+北京"),
    ("relationship_status+结婚", "relationship_status+已婚"),
    ("seat_preference+window seats", "seat_preference+the window seat"),
    ("hometown+江西九江", "hometown+九江"),
    ("environment+安静的餐厅", "environment+安静的咖啡馆"),
    # more exact, or of another kind
    ("hometown+湖南", "hometown+湖南长沙"),
    ("city+杭州", "city+西湖区"),
    ("city+New York", "city+Queens"),
    ("occupation+designer", "occupation+UX designer"),
    ("occupation+teacher", "occupation+teach high school chemistry"),
    # a denial of less
    ("pet+a dog", "pet-beagle"),
    ("vehicle+摩托车", "vehicle-a car"),
    ("food+羊肉", "food_taboo-牛肉"),
    ("drink_preference+coffee", "drink_preference-instant coffee"),
    ("food+鸡蛋", "food_taboo-鸡"),
    ("drink_preference+咖啡", "drink_preference-咖啡|我晚上不喝咖啡"),
    ("pet+一只猫", "pet-狗"),
    ("interest+dogs", "pet-a dog"),
    # other circumstances, another one, another time
    ("seat_preference+靠窗|坐飞机喜欢靠窗", "seat_preference+过道|坐火车喜欢过道"),
    ("reply_tone+正式|写邮件的时候我喜欢正式的语气", "reply_tone+活泼|写朋友圈的时候我喜欢活泼的语气"),
    ("commute+地铁|平时坐地铁上班", "commute+开车|周末开车上班"),
    ("age+10|My older son is 10", "age+5|My younger son is 5"),
    ("city+苏州|我住在苏州", "city+无锡|我以前住在无锡"),
    ("smoking-烟|我不抽烟", "smoking+烟|我小时候抽烟"),
    # two denials
    ("city-苏州", "city-杭州"),
]


@pytest.mark.parametrize(("one", "other"), CONTRADICT)
def test_spec_6_what_cannot_both_hold(one: str, other: str) -> None:
    assert contradicts(states(one), states(other), DIMENSIONS)
    assert contradicts(states(other), states(one), DIMENSIONS)


@pytest.mark.parametrize(("one", "other"), AGREE)
def test_spec_6_what_only_looks_like_a_contradiction(one: str, other: str) -> None:
    assert not contradicts(states(one), states(other), DIMENSIONS)
    assert not contradicts(states(other), states(one), DIMENSIONS)


@pytest.mark.parametrize(("one", "other"), CONTRADICT)
def test_spec_9_the_inspection_finds_each_kind(one: str, other: str) -> None:
    assert len(inspect([states(one).with_(id="a"), states(other).with_(id="b")], DIMENSIONS)) == 1


def test_spec_6_episodes_never_contradict() -> None:
    one, other = states("city+苏州"), states("city+杭州")
    assert not contradicts(one.with_(category=Category.EVENT, layer=None), other, DIMENSIONS)
