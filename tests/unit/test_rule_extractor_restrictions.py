"""SPEC §3.1, §5: what must never be got wrong: allergies, illness, medication, diets, limits."""

import pytest

from tests.unit.rule_turns import candidates, objects, one

RESTRICTIONS = [
    ("我对海鲜过敏", "allergy", "海鲜"),
    ("我对鸡蛋有点过敏", "allergy", "鸡蛋"),
    ("我有花粉过敏", "allergy", "花粉"),
    ("我一喝牛奶就起疹子", "allergy", "牛奶"),
    ("我是对猫毛过敏的", "allergy", "猫毛"),
    ("我的过敏原是尘螨", "allergy", "尘螨"),
    ("我有高血压", "illness", "高血压"),
    ("我得了胃溃疡", "illness", "胃溃疡"),
    ("我去年确诊了糖尿病", "illness", "糖尿病"),
    ("我尿酸有点高", "illness", "尿酸有点高"),
    ("我在吃二甲双胍", "medication", "二甲双胍"),
    ("我每天都要打胰岛素", "medication", "胰岛素"),
    ("我吃清真的", "religious_taboo", "清真"),
    ("我吃素", "diet", "素"),
    ("我是纯素食者", "diet", "纯素食者"),
    ("我每月房贷要还六千", "financial_limit", "房贷"),
    ("我正在打官司", "legal_matter", "打官司"),
    ("我炒股比较保守，理财风格稳健", "risk_preference", "稳健"),
    ("我需要坐轮椅", "accessibility", "轮椅"),
    ("I'm allergic to walnuts.", "allergy", "walnuts"),
    ("I have a nut allergy", "allergy", "nut"),
    ("I'm severely allergic to wasps", "allergy", "wasps"),
    ("I was diagnosed with lupus.", "illness", "lupus"),
    ("I have epilepsy.", "illness", "epilepsy"),
    ("I'm asthmatic", "illness", "asthmatic"),
    ("I'm on blood thinners", "medication", "blood thinners"),
    ("I take insulin twice a day", "medication", "insulin"),
    ("I keep kosher.", "religious_taboo", "kosher"),
    ("I'm pescatarian.", "diet", "pescatarian"),
    ("I follow a keto diet", "diet", "keto"),
    ("I can't spend more than 200 euros", "financial_limit", "200 euros"),
    ("I have student loans to repay.", "financial_limit", "student loans to repay"),
    ("I'm going through a divorce.", "legal_matter", "going through a divorce"),
    ("I'm a conservative investor.", "risk_preference", "conservative investor"),
    ("I use a wheelchair.", "accessibility", "wheelchair"),
]


@pytest.mark.parametrize(("content", "dimension", "thing"), RESTRICTIONS)
def test_restrictions_are_read_into_their_layer(content: str, dimension: str, thing: str) -> None:
    found = one(content, dimension)
    assert thing in found.object
    assert found.layer == "restriction"
    assert found.importance >= 0.85
    assert found.scope.value == "user"


@pytest.mark.parametrize(
    ("content", "things"),
    [
        ("我对虾和螃蟹过敏", {"虾", "螃蟹"}),
        ("我对花生、腰果过敏", {"花生", "腰果"}),
        ("I'm allergic to soy and sesame.", {"soy", "sesame"}),
        ("I'm allergic to bees, wasps and cats.", {"bees", "wasps", "cats"}),
    ],
)
def test_a_list_of_allergies_is_several_statements(content: str, things: set[str]) -> None:
    found = candidates(content)
    assert {item.object for item in found} == things
    assert len({item.content for item in found}) == len(things)


DENIED = [
    ("我对海鲜不过敏", "allergy", "海鲜"),
    ("我已经不对花粉过敏了", "allergy", "花粉"),
    ("我现在对牛奶不再过敏", "allergy", "牛奶"),
    ("我没有高血压", "illness", "高血压"),
    ("我不吃降压药了", "medication", "降压药"),
    ("I'm no longer allergic to eggs.", "allergy", "eggs"),
    ("I'm not allergic to penicillin any more", "allergy", "penicillin"),
    ("I don't have diabetes.", "illness", "diabetes"),
    ("I'm not vegetarian", "diet", "vegetarian"),
    ("I don't take metformin anymore.", "medication", "metformin"),
]


@pytest.mark.parametrize(("content", "dimension", "thing"), DENIED)
def test_a_denied_restriction_keeps_its_object_and_is_negative_in_polarity(
    content: str, dimension: str, thing: str
) -> None:
    found = one(content, dimension)
    assert (found.object, found.polarity.value, found.negative) == (thing, "-", False)


@pytest.mark.parametrize(
    ("content", "thing"),
    [
        ("我不吃内脏", "内脏"),
        ("我从来不吃榴莲", "榴莲"),
        ("我不能吃芒果", "芒果"),
        ("I never eat veal.", "veal"),
        ("I can't eat lentils", "lentils"),
        ("I avoid dairy", "dairy"),
        ("I don't eat mushrooms", "mushrooms"),
    ],
)
def test_what_the_user_does_not_eat_is_a_restriction(content: str, thing: str) -> None:
    found = one(content, "food_taboo")
    assert (found.object, found.polarity.value, found.layer) == (thing, "-", "restriction")


def test_a_professional_who_reports_the_user_s_condition_is_not_a_quotation() -> None:
    assert ("illness", "血脂高", "+", "user") in objects("医生说我血脂高")
    found = one("My doctor says I have gout.", "illness")
    assert (found.speech_act, found.subject) == ("statement", "user")


def test_a_safety_statement_made_in_anger_is_still_a_statement() -> None:
    found = one("烦死了！我对花生过敏还给我放花生酱！", "allergy")
    assert (found.speech_act, found.emotional) == ("statement", True)


@pytest.mark.parametrize(
    "content", ["吃一点都会起疹子", "我吃一点就过敏", "碰都会起疹子", "我吃一口就会过敏", "我吃一点点都会肿"]
)
def test_how_little_of_it_is_no_allergen(content: str) -> None:
    """An allergy freezes at once: "a bit" and "even" are not what somebody cannot have."""
    assert not [found for found in candidates(content) if found.dimension in {"allergy", "food"}]
