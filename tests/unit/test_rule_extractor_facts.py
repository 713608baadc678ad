"""SPEC §3.2, §4.1.2, §4.1.6: atomic facts, in the user's words, about the right person."""

import pytest

from tests.unit.rule_turns import candidates, objects, one

FACTS = [
    # zh
    ("我叫周明远。", "name", "周明远"),
    ("我的名字叫何晓雯", "name", "何晓雯"),
    ("你好，我是老郑", "name", "老郑"),
    ("我今年三十五岁了", "age", "三十五岁"),
    ("我的生日是8月15日", "birthday", "8月15日"),
    ("我是个女生", "gender", "女生"),
    ("我属虎的", "zodiac", "虎"),
    ("我老家在绍兴", "hometown", "绍兴"),
    ("我是山东人", "hometown", "山东"),
    ("我现在在成都定居", "city", "成都"),
    ("我家住在南京", "city", "南京"),
    ("我常住长春", "city", "长春"),
    ("我搬到大连了", "city", "大连"),
    ("我是一名护士", "occupation", "护士"),
    ("我的职业是律师", "occupation", "律师"),
    ("我在人民医院上班", "employer", "人民医院"),
    ("我刚入职一家游戏公司", "employer", "一家游戏公司"),
    ("我毕业于四川大学", "education", "四川大学"),
    ("我在读博士", "education", "博士"),
    ("我已经结婚五年了", "relationship_status", "结婚"),
    ("我有一对双胞胎", "children", "一对双胞胎"),
    ("我养了一只布偶猫", "pet", "一只布偶猫"),
    ("我家猫叫雪球", "pet_name", "雪球"),
    ("我会拉二胡", "instrument", "二胡"),
    ("我会说法语", "language", "法语"),
    ("我开一辆比亚迪", "vehicle", "一辆比亚迪"),
    ("我和爸妈一起住", "living_arrangement", "和爸妈一起住"),
    # en
    ("My name is Ottilie.", "name", "Ottilie"),
    ("Hello, I'm Rafael.", "name", "Rafael"),
    ("I'm 42 years old.", "age", "42"),
    ("My birthday is 9 November.", "birthday", "9 November"),
    ("I'm originally from Naples.", "hometown", "Naples"),
    ("I live in Antwerp.", "city", "Antwerp"),
    ("I'm based in Toronto now.", "city", "Toronto"),
    ("We just moved to New Orleans.", "city", "New Orleans"),
    ("I am a marine biologist.", "occupation", "marine biologist"),
    ("I work as a baker.", "occupation", "baker"),
    ("I work for a small publisher.", "employer", "small publisher"),
    ("I study chemistry.", "education", "chemistry"),
    ("I'm divorced.", "relationship_status", "divorced"),
    ("I have three kids.", "children", "three kids"),
    ("I've got two sisters.", "family_member", "two sisters"),
    ("We have a beagle named Waffles.", "pet", "beagle named Waffles"),
    ("My parrot is called Kiwi.", "pet_name", "Kiwi"),
    ("I play the oboe.", "instrument", "oboe"),
    ("I speak Tagalog.", "language", "Tagalog"),
    ("I drive a Volvo.", "vehicle", "Volvo"),
    ("I live with my parents.", "living_arrangement", "with my parents"),
]


@pytest.mark.parametrize(("content", "dimension", "thing"), FACTS)
def test_a_plain_fact_is_read_with_its_object(content: str, dimension: str, thing: str) -> None:
    found = one(content, dimension)
    assert (found.object, found.polarity.value, found.subject) == (thing, "+", "user")
    assert found.scope.value == "user"


COMPOUND = [
    ("我叫方圆，住在苏州，在一家银行工作。", {"name": "方圆", "city": "苏州", "employer": "一家银行"}),
    (
        "我叫阿哲今年30岁在厦门做摄影师",
        {"name": "阿哲", "age": "30岁", "city": "厦门", "occupation": "摄影师"},
    ),
    ("我住在武汉，而且养了两只狗", {"city": "武汉", "pet": "两只狗"}),
    ("我是老师，老家在洛阳，喜欢下围棋", {"occupation": "老师", "hometown": "洛阳"}),
    ("我不吃羊肉，也不喝牛奶", {"food_taboo": "羊肉", "drink_preference": "牛奶"}),
    ("I'm Petra and I live in Vienna.", {"name": "Petra", "city": "Vienna"}),
    ("I live in Bergen and work as a welder.", {"city": "Bergen", "occupation": "welder"}),
    ("I'm a nurse, I have two kids, and I play the harp.", {"occupation": "nurse", "instrument": "harp"}),
    ("I have a cat and I don't eat pork.", {"pet": "cat", "food_taboo": "pork"}),
    (
        "I moved to Lyon, but I still work for a Berlin startup.",
        {"city": "Lyon", "employer": "Berlin startup"},
    ),
]


@pytest.mark.parametrize(("content", "wanted"), COMPOUND)
def test_a_compound_statement_falls_into_atoms(content: str, wanted: dict[str, str]) -> None:
    found = {item.dimension: item for item in candidates(content)}
    assert wanted.items() <= {key: item.object for key, item in found.items()}.items()
    for key in wanted:  # an atom does not carry its neighbours' words
        others = [value for name, value in wanted.items() if name != key]
        assert not any(other in found[key].content for other in others), found[key].content


OTHERS = [
    ("我妈妈喜欢豫剧", "interest", "豫剧", "妈妈"),
    ("我爸有痛风", "illness", "痛风", "爸"),
    ("我女儿对牛奶过敏", "allergy", "牛奶", "女儿"),
    ("我同事小张不吃海鲜", "food_taboo", "海鲜", "小张"),
    ("我老公在华为上班", "employer", "华为", "老公"),
    ("老婆住在合肥", "city", "合肥", "老婆"),
    ("我媽媽不吃牛肉", "food_taboo", "牛肉", "媽媽"),
    ("My brother lives in Perth.", "city", "Perth", "brother"),
    ("My friend Ines loves opera.", "music", "opera", "Ines"),
    ("My boss is allergic to latex.", "allergy", "latex", "boss"),
    ("My daughter hates broccoli.", "food", "broccoli", "daughter"),
    ("My neighbour Tom plays the banjo.", "instrument", "banjo", "Tom"),
    ("Our kids don't eat nuts.", "food_taboo", "nuts", "kids"),
]


@pytest.mark.parametrize(("content", "dimension", "thing", "subject"), OTHERS)
def test_what_is_said_of_another_has_that_subject(
    content: str, dimension: str, thing: str, subject: str
) -> None:
    found = one(content, dimension)
    assert (found.subject, found.object) == (subject, thing)
    assert not any(item.subject == "user" for item in candidates(content))


@pytest.mark.parametrize(
    ("content", "theirs", "mine"),
    [
        ("我姐姐喜欢绿色，我喜欢紫色", ("姐姐", "绿色"), "紫色"),
        ("My wife loves pink, but I prefer grey.", ("wife", "pink"), "grey"),
    ],
)
def test_two_people_in_one_sentence_are_kept_apart(content: str, theirs: tuple[str, str], mine: str) -> None:
    read = {(subject, thing) for _, thing, _, subject in objects(content)}
    assert read == {theirs, ("user", mine)}


@pytest.mark.parametrize(
    ("content", "dimension", "words"),
    [
        ("我妹妹住在珠海，喜欢喝咖啡", "drink_preference", "我妹妹喜欢喝咖啡"),
        ("My uncle lives in Cork and plays the fiddle.", "city", "My uncle lives in Cork"),
        ("My sister lives in Cairo and speaks Arabic.", "language", "My sister speaks Arabic"),
    ],
)
def test_a_clause_that_leans_on_a_person_named_before_says_so(
    content: str, dimension: str, words: str
) -> None:
    assert one(content, dimension).content == words


def test_a_child_s_age_and_name_are_not_the_user_s() -> None:
    for content in ("我有一个儿子，今年六岁，叫乐乐", "我养了一只橘猫，名字叫布丁"):
        assert {item.dimension for item in candidates(content)} <= {"children", "pet"}


@pytest.mark.parametrize(
    ("content", "thing", "mirror"),
    [
        ("我對蝦子過敏", "蝦子", "我對蝦子過敏"),
        ("我住在臺北，養了一隻貓", "臺北", "我住在臺北"),
        ("我喜歡喝烏龍茶", "烏龍茶", "我喜歡喝烏龍茶"),
        ("我血壓偏高", "血壓偏高", "我血壓偏高"),
        ("我不吃豬肉", "豬肉", "我不吃豬肉"),
    ],
)
def test_traditional_characters_are_understood_and_kept(content: str, thing: str, mirror: str) -> None:
    assert (thing, mirror) in {(item.object, item.content) for item in candidates(content)}


@pytest.mark.parametrize(
    ("content", "dimension", "thing"),
    [
        ("我住在 Amsterdam", "city", "Amsterdam"),
        ("我在 Spotify 上班", "employer", "Spotify"),
        ("I love 火锅", "cuisine", "火锅"),
        ("我对 gluten 过敏", "allergy", "gluten"),
        ("我喜欢 jazz", "music", "jazz"),
    ],
)
def test_mixed_languages_are_read(content: str, dimension: str, thing: str) -> None:
    assert one(content, dimension).object == thing


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("对了，我住在苏州。", "我住在苏州"),
        ("顺便说一下，我有哮喘哦", "我有哮喘"),
        ("By the way, I live in Graz.", "I live in Graz"),
        ("Just so you know, I'm diabetic.", "I'm diabetic"),
        ("你知道吗，我养了一只鹦鹉", "我养了一只鹦鹉"),
        ("Please remember that I have asthma.", "I have asthma"),
    ],
)
def test_content_is_the_clause_without_discourse_particles(content: str, words: str) -> None:
    assert [item.content for item in candidates(content)] == [words]
