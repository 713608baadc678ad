"""SPEC §3.1, §4.1.6: what is said of relatives, colleagues and friends is theirs, and typed."""

import pytest

from hermes_memory.core.model import Category, Scope
from tests.unit.rule_outcomes import stored, stored_one

PEOPLE = [
    # name, age, birthday, body
    ("我下属名叫孙立言。", "下属", "name", "孙立言"),
    ("我表姐的名字叫韩冰", "表姐", "name", "韩冰"),
    ("我们部门经理姓郭", "经理", "name", "郭"),
    ("我外公都八十二岁了", "外公", "age", "八十二岁"),
    ("我姑父今年五十六", "姑父", "age", "五十六"),
    ("我小舅过生日是3月9号", "小舅", "birthday", "3月9号"),
    ("我老板的生日是在十一月二十日", "老板", "birthday", "十一月二十日"),
    ("我弟弟身高也就一米六八", "弟弟", "body", "身高也就一米六八"),
    ("我同桌个子有180厘米", "同桌", "body", "个子有180厘米"),
    ("我爸属兔", "爸", "zodiac", "兔"),
    # where they are and come from
    ("我婶婶老家是甘肃天水的", "婶婶", "hometown", "甘肃天水"),
    ("我导师是福建泉州人", "导师", "hometown", "福建泉州"),
    ("我上司他是潮汕人", "上司", "hometown", "潮汕"),
    ("我岳母她们家是河南洛阳的", "岳母", "hometown", "河南洛阳"),
    ("我堂哥在浙江宁波上班呢", "堂哥", "city", "宁波"),
    ("我师姐工作的地方在珠海", "师姐", "city", "珠海"),
    ("我干妈住在昆明", "干妈", "city", "昆明"),
    ("我邻居去年搬到了大理", "邻居", "city", "大理"),
    # work
    ("我大伯是开出租车的", "大伯", "occupation", "开出租车"),
    ("我嫂子是做会计的", "嫂子", "occupation", "会计"),
    ("我姨父干的活儿是电工", "姨父", "occupation", "电工"),
    ("我室友是名急诊科护士", "室友", "occupation", "急诊科护士"),
    ("我二叔的职位是副厂长", "二叔", "occupation", "副厂长"),
    ("我老婆她是法官", "老婆", "occupation", "法官"),
    ("我前女友在律所做助理", "前女友", "occupation", "助理"),
    ("我妹夫的单位叫西山文旅集团", "妹夫", "employer", "西山文旅集团"),
    ("我姐姐他们公司叫晴川软件", "姐姐", "employer", "晴川软件"),
    ("我表弟在地铁公司上班", "表弟", "employer", "地铁公司"),
    # school
    ("我侄子学历挺高的，是个硕士", "侄子", "education", "硕士"),
    ("我爸就念到初中", "爸", "education", "初中"),
    ("我姑姑上的是中专", "姑姑", "education", "中专"),
    ("我表妹学历是大专", "表妹", "education", "大专"),
    ("我儿子今年高二", "儿子", "education", "高二"),
    ("我学弟在东南大学读博士", "学弟", "education", "东南大学"),
    # contact, character
    ("我房东的邮箱是fang_dong@example.com", "房东", "contact", "fang_dong@example.com"),
    ("我教练的联系电话是13800000000", "教练", "contact", "13800000000"),
    ("我妈脾气比较急", "妈", "personality", "急"),
    ("我女儿性格特别开朗", "女儿", "personality", "开朗"),
    ("我队长是个很细心的人", "队长", "personality", "细心"),
    ("我同学有点社恐", "同学", "personality", "社恐"),
    # likes, health, home
    ("我闺蜜特喜欢瑜伽", "闺蜜", "sport", "瑜伽"),
    ("我舅妈特别爱好书法", "舅妈", "hobby", "书法"),
    ("我公公爱下象棋", "公公", "game", "下象棋"),
    ("我哥讨厌吃苦瓜", "哥", "food", "苦瓜"),
    ("我奶奶有糖尿病", "奶奶", "illness", "糖尿病"),
    ("我爷爷每天吃降压药", "爷爷", "medication", "降压药"),
    ("我小姑怀孕了", "小姑", "pregnancy", "怀孕"),
    ("我同事养了一只柯基", "同事", "pet", "一只柯基"),
    ("我表哥会拉二胡", "表哥", "instrument", "二胡"),
    ("我发小单身", "发小", "relationship_status", "单身"),
    # said in other ways
    ("我舅舅在公司当高管", "舅舅", "occupation", "高管"),
    ("我妈妈在单位是主管", "妈妈", "occupation", "主管"),
    ("我上司目前就职于西川集团", "上司", "employer", "西川集团"),
    ("我叔叔的工作单位在郑州", "叔叔", "city", "郑州"),
    ("我上司出生在哈尔滨", "上司", "hometown", "哈尔滨"),
    ("我叔叔是从山东来的", "叔叔", "hometown", "山东"),
    ("我表姐拿的是硕士学位", "表姐", "education", "硕士"),
    ("我上司快四十了", "上司", "age", "四十"),
    ("我表弟有一米八高", "表弟", "body", "一米八高"),
    ("我同事特别幽默", "同事", "personality", "幽默"),
    ("我婶婶闲下来就爱跳舞", "婶婶", "hobby", "跳舞"),
    ("我表弟迷上了滑板", "表弟", "sport", "滑板"),
    # named
    ("我同事小夏是山西人", "小夏", "hometown", "山西"),
    ("我室友李明远喜欢潜水", "李明远", "sport", "潜水"),
    ("王浩住在青岛", "王浩", "city", "青岛"),
    ("我老公的同事喜欢钓鱼", "老公的同事", "hobby", "钓鱼"),
]


@pytest.mark.parametrize(("content", "who", "dimension", "thing"), PEOPLE)
def test_spec_4_1_6_a_statement_about_a_person_is_typed_and_theirs(
    content: str, who: str, dimension: str, thing: str
) -> None:
    found = stored_one(content, dimension)
    assert (found.subject, found.object, found.scope) == (who, thing, Scope.USER)
    assert not [item for item in stored(content) if item.subject == "user"]


RUNNING_ON = [
    ("我姐在税务局上班，性格很温柔，最爱追剧", "姐", {"employer", "personality"}),
    ("我表叔，他老家是衡阳的，今年五十岁", "表叔", {"hometown", "age"}),
    ("我大学室友现在在深圳做产品经理", "室友", {"city", "occupation"}),
    ("李婷是我高中同学，在厦门上班，喜欢冲浪", "李婷", {"social_circle", "city", "sport"}),
    ("我有个朋友是牙医，周末喜欢钓鱼", "朋友", {"occupation", "hobby"}),
]


@pytest.mark.parametrize(("content", "who", "dimensions"), RUNNING_ON)
def test_spec_4_1_6_the_clauses_that_follow_are_about_the_same_person(
    content: str, who: str, dimensions: set[str]
) -> None:
    found = stored(content)
    assert dimensions <= {item.dimension for item in found}
    assert {item.subject for item in found} == {who}


ACROSS_SENTENCES = [
    ("我妈今年58了。有高血压，不能吃咸的。", "妈", {"age", "illness", "taste"}),
    ("我室友是山东人。特别爱吃大葱。", "室友", {"hometown", "food"}),
    ("我下属刚毕业。学的是土木工程专业。住在燕郊。", "下属", {"education", "city"}),
]


@pytest.mark.parametrize(("content", "who", "dimensions"), ACROSS_SENTENCES)
def test_spec_4_1_6_a_sentence_without_a_subject_goes_on_about_the_same_person(
    content: str, who: str, dimensions: set[str]
) -> None:
    found = stored(content)
    assert dimensions <= {item.dimension for item in found}
    assert {item.subject for item in found} == {who}


@pytest.mark.parametrize(
    "content",
    [
        "我妈喜欢蓝色。我喜欢绿色。",
        "我老公爱钓鱼。打算给他买根鱼竿。",
        "我女儿对芒果过敏。请用中文回答。",
        "我爸有痛风。我也不吃海鲜。",
    ],
)
def test_spec_4_1_6_what_the_user_wants_or_says_of_themselves_stays_theirs(content: str) -> None:
    assert "user" in {item.subject for item in stored(content)}


def test_spec_4_1_6_user_and_other_are_kept_apart_in_one_sentence() -> None:
    found = {
        (item.subject, item.dimension, item.object) for item in stored("我妈是老师，我是医生，我弟在读高三")
    }
    assert found == {
        ("妈", "occupation", "老师"),
        ("user", "occupation", "医生"),
        ("弟", "education", "高三"),
    }


@pytest.mark.parametrize("content", ["她特别喜欢百合", "他今年七岁", "他们住在长沙"])
def test_spec_4_1_6_a_pronoun_that_names_nobody_reaches_no_further_than_the_conversation(
    content: str,
) -> None:
    assert {item.scope for item in stored(content)} == {Scope.SESSION}


@pytest.mark.parametrize(
    "content",
    ["我老家在南阳", "我老板娘是东北人", "我小区里有个公园", "我朋友圈发了照片", "我孩子气的时候很多"],
)
def test_spec_4_1_6_words_that_only_look_like_a_person_name_nobody(content: str) -> None:
    assert {item.subject for item in stored(content)} <= {"user", "老板娘"}


UNREAD = ["我表哥在非洲援建了三年", "我妈把老房子卖了，搬去跟我姨住", "我同事昨天升了主管"]


@pytest.mark.parametrize("content", UNREAD)
def test_spec_4_1_an_unread_sentence_about_somebody_close_is_kept_in_the_user_s_words(content: str) -> None:
    found = stored(content)
    assert found
    assert all(item.category is Category.EVENT and item.subject != "user" for item in found)


EVENTS = [
    ("新品发布会的时间定在下周三晚上八点", "新品发布会", "下周三晚上八点"),
    ("城市读书节的地点是太原", "城市读书节", "太原"),
    ("青年创业营的规模是三百人", "青年创业营", "三百人"),
    ("这期摄影展的主题是旧街巷", None, None),
    ("春季运动会的主要内容是接力赛和拔河", "春季运动会", "接力赛和拔河"),
    ("校友年会的持续时间是两天", "校友年会", "两天"),
]


@pytest.mark.parametrize(("content", "who", "thing"), EVENTS)
def test_spec_3_1_what_is_said_of_a_gathering_is_about_it(
    content: str, who: str | None, thing: str | None
) -> None:
    found = [(item.subject, item.object) for item in stored(content) if item.dimension == "event_detail"]
    assert found == ([] if who is None else [(who, thing)])


def test_spec_4_1_2_a_gathering_with_a_date_has_it_as_a_date() -> None:
    found = stored_one("新品发布会的时间定在下周三晚上八点", "event_detail")
    assert found.valid_from is not None
    assert f"{found.valid_from:%Y-%m-%d %H:%M}" == "2026-03-11 20:00"
