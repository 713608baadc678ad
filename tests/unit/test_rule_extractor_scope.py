"""SPEC §4.1.7, §5, §6: the words that decide scope, certainty and correction."""

import pytest

from hermes_memory.core.candidate import Marker
from tests.unit.rule_turns import candidates, one

TEMPORARY = [
    ("今天不想吃油腻的", "taste"),
    ("这次旅行我想坐靠过道的位置", "seat_preference"),
    ("我最近不喝咖啡", "drink_preference"),
    ("今晚想吃日料", "cuisine"),
    ("这次买车我预算十万", "budget"),
    ("Today I don't want spicy food.", "taste_spicy"),
    ("For this trip I prefer a window seat.", "seat_preference"),
    ("My budget is 300 dollars this time", "budget"),
    ("For this wedding I'm on a tight budget", "budget"),
    ("I don't drink coffee these days.", "drink_preference"),
    ("Tonight I'm craving ramen", "food"),
]


@pytest.mark.parametrize(("content", "dimension"), TEMPORARY)
def test_temporary_wording_is_session_scope_without_a_scene(content: str, dimension: str) -> None:
    found = one(content, dimension)
    assert Marker.TEMPORARY in found.markers
    assert found.scope.value == "session"


@pytest.mark.parametrize(("content", "dimension"), TEMPORARY[:5])
def test_temporary_wording_is_scene_scope_within_one(content: str, dimension: str) -> None:
    assert one(content, dimension, scene="holiday").scope.value in {"scene", "session"}
    assert one("这次装修我预算八万", "budget", scene="renovation").scope.value == "scene"


HABITUAL = [
    ("我从来不抽烟", "smoking"),
    ("我一直喜欢安静的地方", "environment"),
    ("我平时都喝绿茶", "drink_preference"),
    ("我总是坐靠窗的位置", "seat_preference"),
    ("我每周都去游泳", "sport"),
    ("我周末经常去钓鱼", "hobby"),
    ("I never eat bacon", "food_taboo"),
    ("I always order black tea.", "drink_preference"),
    ("I usually take the aisle seat", "seat_preference"),
    ("I play squash every Thursday", "sport"),
    ("I've always loved jazz", "music"),
]


@pytest.mark.parametrize(("content", "dimension"), HABITUAL)
def test_habitual_wording_is_user_scope(content: str, dimension: str) -> None:
    found = one(content, dimension)
    assert Marker.HABITUAL in found.markers
    assert found.scope.value == "user"


LASTING = [
    ("我最近搬到了宁波", "city"),
    ("从今天起我不喝酒了", "alcohol"),
    ("我以后都不吃红肉了", "food_taboo"),
    ("我今天查出来有高血压", "illness"),
    ("我最近换到一家外企，入职了西门子", "employer"),
    ("I recently moved to Utrecht.", "city"),
    ("From now on I don't drink beer.", "alcohol"),
    ("Starting today I'm vegan", "diet"),
    ("I was diagnosed with asthma today.", "illness"),
    ("I no longer eat meat", "food_taboo"),
]


@pytest.mark.parametrize(("content", "dimension"), LASTING)
def test_a_time_marker_on_a_lasting_change_does_not_lower_the_scope(content: str, dimension: str) -> None:
    found = one(content, dimension)
    assert Marker.LASTING_CHANGE in found.markers
    assert found.scope.value == "user"


CORRECTIONS = [
    ("其实我住在扬州", "city", "扬州"),
    ("不对，我叫李想", "name", "李想"),
    ("更正一下，我生日是6月1号", "birthday", "6月1号"),
    ("说错了，我在建行上班", "employer", "建行"),
    ("我住在无锡，不是常州", "city", "无锡"),
    ("我不是老师，是医生", "occupation", "医生"),
    ("Actually, I live in Ghent.", "city", "Ghent"),
    ("Correction: my name is Katrin.", "name", "Katrin"),
    ("No wait, I'm 31 years old.", "age", "31"),
    ("My name is not Steven but Stephen.", "name", "Stephen"),
    ("I live in Malmö, not Lund.", "city", "Malmö"),
    ("I meant I work at Bosch.", "employer", "Bosch"),
]


@pytest.mark.parametrize(("content", "dimension", "thing"), CORRECTIONS)
def test_a_correction_is_marked_and_gives_the_new_value(content: str, dimension: str, thing: str) -> None:
    found = one(content, dimension)
    assert (found.object, found.polarity.value) == (thing, "+")
    assert Marker.CORRECTION in found.markers


HEDGED = [
    ("我好像对芒果过敏", "allergy"),
    ("我可能喜欢绿茶多一点", "drink_preference"),
    ("我大概住在海淀那边", "city"),
    ("我应该是O型血", "body"),
    ("我感觉我对猫毛过敏", "allergy"),
    ("I think I'm allergic to dust.", "allergy"),
    ("Maybe I prefer tea.", "drink_preference"),
    ("I guess I like jazz", "music"),
    ("I'm probably lactose intolerant", "illness"),
    ("Perhaps I prefer the aisle seat", "seat_preference"),
]


@pytest.mark.parametrize(("content", "dimension"), HEDGED)
def test_a_hedge_is_marked(content: str, dimension: str) -> None:
    assert Marker.HEDGED in one(content, dimension).markers


CONDITIONAL = [
    "如果下雨我就坐地铁上班",
    "要是出差，我一般坐高铁喜欢靠窗",
    "If it rains, I take the bus to work.",
    "I prefer the aisle seat if I'm alone",
]


@pytest.mark.parametrize("content", CONDITIONAL)
def test_a_condition_is_marked_and_narrows(content: str) -> None:
    for found in candidates(content):
        assert Marker.CONDITIONAL in found.markers
        assert found.scope.value == "session"


PLAIN = [
    "我不吃香菇",
    "我住在贵阳",
    "我对虾过敏",
    "I live in Turin",
    "I don't eat lamb",
    "I'm allergic to kiwi",
]


@pytest.mark.parametrize("content", PLAIN)
def test_a_plain_declaration_is_user_scope_without_markers(content: str) -> None:
    (found,) = candidates(content)
    assert (found.scope.value, found.markers) == ("user", frozenset())


def test_a_temporary_word_reaches_the_clause_that_leans_on_it_and_not_the_next_subject() -> None:
    both = {item.dimension: item for item in candidates("今天胃不舒服，不想吃辣")}
    assert both["taste_spicy"].scope.value == "session"
    apart = {item.dimension: item for item in candidates("今天去体检了，我对青霉素过敏")}
    assert apart["allergy"].scope.value == "user"


def test_different_predicates_of_one_need_share_the_dimension() -> None:
    first = {item.dimension: item.object for item in candidates("我平时一个人住，想租个单间")}
    second = {item.dimension: item for item in candidates("其实我爸妈要搬过来一起住，得换个三居室")}
    assert first["residence_need"] == "单间"
    assert second["residence_need"].object == "三居室"
    assert second["residence_need"].subject == "user"
    assert Marker.CORRECTION in second["residence_need"].markers
