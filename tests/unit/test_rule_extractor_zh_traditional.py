"""SPEC §4.1.2: traditional characters are read like simplified ones, and kept as they were written."""

import pytest

from tests.unit.rule_outcomes import stored

TWINS = [
    ("我對花生過敏", "我对花生过敏"),
    ("我住在臺中，養了兩隻貓", "我住在台中，养了两只猫"),
    ("我媽媽的生日是十月五號", "我妈妈的生日是十月五号"),
    ("我從來不喝酒", "我从来不喝酒"),
    ("我討厭吃苦瓜", "我讨厌吃苦瓜"),
    ("我表哥是個工程師，在廣州上班", "我表哥是个工程师，在广州上班"),
    ("這次裝修我預算有限", "这次装修我预算有限"),
    ("我以前住在臺南，現在住在高雄", "我以前住在台南，现在住在高雄"),
    ("我下個月要去東京旅遊", "我下个月要去东京旅游"),
    ("別再給我推薦短視頻了", "别再给我推荐短视频了"),
    ("我覺得這家餐廳不錯", "我觉得这家餐厅不错"),
    ("我不喜歡被叫小林哥，叫我林工就行", "我不喜欢被叫小林哥，叫我林工就行"),
    ("我住在新竹，不對，是苗栗", "我住在新竹，不对，是苗栗"),
    ("我們主管姓陳，是個很溫和的人", "我们主管姓陈，是个很温和的人"),
    ("如果我會彈鋼琴就好了", "如果我会弹钢琴就好了"),
]


@pytest.mark.parametrize(("traditional", "simple"), TWINS)
def test_spec_4_1_2_twins_give_the_same_memories_in_their_own_characters(
    traditional: str, simple: str
) -> None:
    mine, theirs = stored(traditional), stored(simple)

    def outline(found: list) -> list[tuple[str, ...]]:
        return [
            (item.dimension, item.polarity.value, item.scope.value, item.category.value) for item in found
        ]

    assert outline(mine) == outline(theirs)
    assert [(item.span.start, item.span.end) for item in mine] == [
        (item.span.start, item.span.end) for item in theirs
    ]
    for item in mine:  # kept in the user's own characters
        assert item.object in traditional


def test_spec_4_1_2_most_twins_give_something() -> None:
    assert sum(bool(stored(traditional)) for traditional, _ in TWINS) >= len(TWINS) - 1
