"""SPEC §3.1, §4.1.5, §6: liking and disliking, one dimension whatever the verb, directives."""

import pytest

from tests.unit.rule_turns import candidates, objects, one

LIKES = [
    ("我喜欢喝普洱茶", "drink_preference", "普洱茶"),
    ("我爱吃饺子", "food", "饺子"),
    ("我最喜欢的颜色是橙色", "colour", "橙色"),
    ("我特别喜欢民谣", "music", "民谣"),
    ("我平时喜欢游泳", "sport", "游泳"),
    ("我的爱好是摄影", "hobby", "摄影"),
    ("我喜欢靠过道的座位", "seat_preference", "靠过道的座位"),
    ("我偏爱北欧风的家具", "design_style", "北欧风的家具"),
    ("我对天文很感兴趣", "interest", "天文"),
    ("我坐高铁喜欢靠窗", "seat_preference", "靠窗"),
    ("我口味偏清淡", "taste", "清淡"),
    ("I love sushi.", "food", "sushi"),
    ("I enjoy pottery.", "hobby", "pottery"),
    ("My favorite color is teal.", "colour", "teal"),
    ("I prefer window seats.", "seat_preference", "window seats"),
    ("I'm really into chess.", "game", "chess"),
    ("I like my coffee black.", "drink_preference", "coffee black"),
    ("I'm a big fan of jazz.", "music", "jazz"),
    ("I prefer quiet hotels", "hotel_preference", "quiet hotels"),
]


@pytest.mark.parametrize(("content", "dimension", "thing"), LIKES)
def test_a_liking_goes_to_the_dimension_of_what_is_liked(content: str, dimension: str, thing: str) -> None:
    found = one(content, dimension)
    assert (found.object, found.polarity.value, found.negative) == (thing, "+", False)
    assert found.layer == "preference"


DISLIKES = [
    ("我不喜欢恐怖片", "film", "恐怖片"),
    ("我讨厌下雨天", "interest", "下雨天"),
    ("我受不了嘈杂的餐厅", "environment", "嘈杂的餐厅"),
    ("我不太喜欢甜食", "taste", "甜食"),
    ("我不爱吃胡萝卜", "food", "胡萝卜"),
    ("我对足球不感兴趣", "sport", "足球"),
    ("I hate coriander.", "food", "coriander"),
    ("I can't stand crowded buses", "environment", "crowded buses"),
    ("I don't like camping.", "travel_preference", "camping"),
    ("I'm not a fan of reggae music", "music", "reggae music"),
    ("I dislike small talk.", "service_style", "small talk"),
    ("I'm not into golf", "sport", "golf"),
]


@pytest.mark.parametrize(("content", "dimension", "thing"), DISLIKES)
def test_a_dislike_is_negative_in_polarity_and_kind(content: str, dimension: str, thing: str) -> None:
    found = one(content, dimension)
    assert (found.object, found.polarity.value, found.negative) == (thing, "-", True)


REVERSALS = [
    ("我喜欢喝可乐", "我不喜欢可乐"),
    ("我爱吃草莓", "我不喜欢吃草莓"),
    ("我喜欢爬山", "我不喜欢爬山"),
    ("我喜欢听摇滚", "我讨厌摇滚"),
    ("我能吃辣", "我不能吃辣"),
    ("我喝酒，经常喝酒", "我不喝酒"),
    ("I love beer.", "I don't like beer."),
    ("I like horror movies", "I hate horror movies"),
    ("I love spicy food", "I can't eat spicy food"),
    ("I enjoy running.", "I don't enjoy running anymore."),
    ("I like tea.", "I can't stand tea."),
]


@pytest.mark.parametrize(("before", "after"), REVERSALS)
def test_a_reversal_meets_the_liking_in_dimension_and_object(before: str, after: str) -> None:
    def keys(content: str, polarity: str) -> set[tuple[str, str]]:
        return {(dimension, thing) for dimension, thing, sign, _ in objects(content) if sign == polarity}

    assert keys(before, "+") & keys(after, "-")


NAMING = [
    ("叫我老宋就好", "老宋"),
    ("你可以叫我Vivian", "Vivian"),
    ("请称呼我赵老师", "赵老师"),
    ("别叫我小周，叫我周经理", "周经理"),
    ("我不想被叫阿姨，叫我梅姐就行", "梅姐"),
    ("以后就叫我阿北吧", "阿北"),
    ("Call me Bex.", "Bex"),
    ("Please call me Ms. Okafor", "Ms. Okafor"),
    ("You can call me Teddy", "Teddy"),
    ("I go by Sam.", "Sam"),
    ("Don't call me sir, just call me Joe.", "Joe"),
    ("I'd prefer to be called Kit", "Kit"),
]


@pytest.mark.parametrize(("content", "thing"), NAMING)
def test_a_naming_directive_is_one_positive_statement(content: str, thing: str) -> None:
    found = one(content, "form_of_address")
    assert (found.object, found.polarity.value, found.speech_act, found.layer) == (
        thing,
        "+",
        "directive",
        "style",
    )
    assert found.intent == "ADDRESS_UPDATE"


@pytest.mark.parametrize(
    ("content", "thing"),
    [
        ("别叫我大姐", "大姐"),
        ("不要再叫我宝贝了", "宝贝"),
        ("Don't call me honey.", "honey"),
        ("stop calling me dude", "dude"),
    ],
)
def test_a_name_refused_alone_is_a_veto(content: str, thing: str) -> None:
    found = one(content, "form_of_address")
    assert (found.object, found.polarity.value, found.negative) == (thing, "-", True)


DIRECTIVES = [
    ("不要再给我推荐直播了", "content_preference", "直播", "-"),
    ("别给我推送八卦新闻", "content_preference", "八卦新闻", "-"),
    ("以后多给我推荐纪录片", "content_preference", "纪录片", "+"),
    ("回答尽量简洁", "reply_length", "简洁", "+"),
    ("说话别那么正式", "reply_tone", "正式", "-"),
    ("以后用英文回复我", "reply_language", "英文", "+"),
    ("不要用表情符号", "reply_format", "表情符号", "-"),
    ("语气轻松一点", "reply_tone", "轻松一点", "+"),
    ("别跟我提加班的事", "topic_boundary", "加班的事", "-"),
    ("Don't recommend podcasts to me anymore.", "content_preference", "podcasts", "-"),
    ("Stop suggesting crypto articles", "content_preference", "crypto articles", "-"),
    ("Keep your replies brief.", "reply_length", "brief", "+"),
    ("Please answer in French.", "reply_language", "French", "+"),
    ("No emojis please", "reply_format", "emojis", "-"),
    ("Don't be so formal", "reply_tone", "formal", "-"),
    ("Always use bullet points", "reply_format", "bullet points", "+"),
    ("Never bring up my divorce", "topic_boundary", "divorce", "-"),
]


@pytest.mark.parametrize(("content", "dimension", "thing", "polarity"), DIRECTIVES)
def test_a_standing_directive_is_a_preference_on_how_to_treat_the_user(
    content: str, dimension: str, thing: str, polarity: str
) -> None:
    found = one(content, dimension)
    assert (found.object, found.polarity.value, found.speech_act) == (thing, polarity, "directive")
    assert (found.category, found.layer in {"style", "preference"}) == ("PREFERENCE", True)
    assert found.negative == (polarity == "-")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("我只喝拿铁，少糖", "我只喝拿铁，少糖"),
        ("我喜欢冰美式，不加糖不加奶", "我喜欢冰美式，不加糖不加奶"),
        ("我喜欢吃火锅，尤其是鸳鸯锅", "我喜欢吃火锅，尤其是鸳鸯锅"),
        ("I drink tea, no sugar", "I drink tea, no sugar"),
        ("I love salads, especially with feta", "I love salads, especially with feta"),
    ],
)
def test_a_tail_belongs_to_its_preference(content: str, words: str) -> None:
    found = candidates(content)
    assert [item.content for item in found] == [words]


def test_a_fixed_phrase_is_no_list() -> None:
    assert objects("I love rock and roll") == {("music", "rock and roll", "+", "user")}
    assert {thing for _, thing, _, _ in objects("我喜欢爵士乐和古典乐")} == {"爵士乐", "古典乐"}


def test_not_owning_something_is_merely_denied() -> None:
    for content in ("我没有车", "I don't own a car."):
        found = one(content, "vehicle")
        assert (found.polarity.value, found.negative) == ("-", False)
