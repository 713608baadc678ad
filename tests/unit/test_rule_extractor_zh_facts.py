"""SPEC §3.1, §3.2, §4.1.7: Chinese statements about the user: typed, dated, past apart from present, and nothing invented."""

import pytest

from hermes_memory.core.candidate import Marker, SpeechAct
from hermes_memory.core.model import Category, Polarity, Scope
from tests.unit.rule_outcomes import stored, stored_one

FACTS = [
    # who
    ("我姓欧阳", "name", "欧阳"),
    ("我是陈薇", "name", "陈薇"),
    ("我英文名叫Kevin", "name", "Kevin"),
    ("我今年二十九岁", "age", "二十九岁"),
    ("我26了", "age", "26"),
    ("我是三月十二号出生的", "birthday", "三月十二号"),
    ("我生日是农历八月十五", "birthday", "农历八月十五"),
    ("我是女生呀", "gender", "女生"),
    ("我是浙江台州的", "hometown", "浙江台州"),
    ("我是土生土长的洛阳人", "hometown", "洛阳"),
    ("我身高172", "body", "身高172"),
    ("我穿42码的鞋", "body", "42码的鞋"),
    # where
    ("我目前定居绵阳", "city", "绵阳"),
    ("我租的房子在天通苑", "district", "天通苑"),
    ("我住在锦绣花园小区", "district", "锦绣花园"),
    ("我家住在望京街道", "district", "望京街道"),
    ("我 base 在深圳", "city", "深圳"),
    ("I work in 北京", "city", "北京"),
    # work and school
    ("我在绵阳的一家医院当护士长", "occupation", "护士长"),
    ("我是开民宿的", "occupation", "开民宿"),
    ("我做会计已经十年了", "occupation", "会计"),
    ("作为一个产品经理，我每天都在开会", "occupation", "产品经理"),
    ("我做 backend", "occupation", "backend"),
    ("我上班的地方叫海味楼餐厅", "employer", "海味楼餐厅"),
    ("我在家办公", "work_schedule", "办公"),
    ("我是复旦的研究生", "education", "复旦的研究生"),
    ("我今年大三", "education", "大三"),
    ("我就念到高中", "education", "高中"),
    # family, home
    ("我家有三口人", "family_member", "三口人"),
    ("我去年结的婚", "relationship_status", "结的婚"),
    ("我跟男朋友分手了", "relationship_status", "分手"),
    ("我住在公司宿舍", "living_arrangement", "住在公司宿舍"),
    ("我养了一只特别黏人的小猫", "pet", "一只特别黏人的小猫"),
    # health, diet, money
    ("我乳糖不耐受", "illness", "乳糖不耐受"),
    ("我在备孕", "pregnancy", "备孕"),
    ("我在控糖", "diet", "控糖"),
    ("我每天早上吃一片阿司匹林", "medication", "一片阿司匹林"),
    ("我初一十五吃素", "religious_taboo", "初一十五吃素"),
    ("我月薪一万二", "financial_limit", "一万二"),
    ("我买东西比较看重性价比", "budget", "看重性价比"),
    # things, skills, habits
    ("我用的手机是红米K70", "possession", "红米K70"),
    ("我家的洗衣机是小天鹅的", "possession", "小天鹅"),
    ("我手头这台相机是富士X100", "possession", "富士X100"),
    ("我穿的跑鞋是李宁赤兔", "possession", "李宁赤兔"),
    ("我开一辆二手的丰田卡罗拉", "vehicle", "一辆二手的丰田卡罗拉"),
    ("我游泳游得很好", "skill", "游泳游得很好"),
    ("我有教师资格证", "skill", "教师资格证"),
    ("我还会一点日语", "language", "日语"),
    ("我英语六级", "language", "英语六级"),
    ("我一般十二点以后才睡", "routine", "十二点以后才睡"),
    ("我有早起跑步的习惯", "routine", "早起跑步"),
    ("我上班要坐一个半小时的地铁", "commute", "坐一个半小时的地铁"),
    ("我坐飞机一定要选靠过道的位置", "seat_preference", "靠过道"),
    ("我每顿饭都要喝汤", "drink_preference", "汤"),
    ("我是皇马球迷", "interest", "皇马球迷"),
    ("中秋是我最喜欢的节日", "interest", "中秋"),
    ("我们的结婚纪念日是9月9号", "anniversary", "9月9号"),
    ("我6月15号的生日", "birthday", "6月15号"),
    ("我周一到周五上班", "work_schedule", "到周五上班"),
    ("我每天通勤两小时", "commute", "两小时"),
    ("我只用苹果的产品", "brand", "苹果"),
    ("我色弱", "accessibility", "色弱"),
    # with English in it
    ("我 27 岁", "age", "27 岁"),
    ("我是 vegetarian", "diet", "vegetarian"),
    ("我的 budget 是 3000", "budget", "3000"),
    ("我在 Google 做 software engineer", "employer", "Google"),
    ("我在 Google 做 software engineer", "occupation", "software engineer"),
    ("我的 dog 叫 Lucky", "pet_name", "Lucky"),
    ("我对 peanut 过敏", "allergy", "peanut"),
    ("我喜欢 hiking 和 camping", "sport", "hiking"),
]


@pytest.mark.parametrize(("content", "dimension", "thing"), FACTS)
def test_spec_3_2_a_statement_about_the_user_is_typed(content: str, dimension: str, thing: str) -> None:
    found = stored_one(content, dimension)
    assert (found.object, found.subject, found.polarity) == (thing, "user", Polarity.POSITIVE)
    assert found.scope is Scope.USER
    assert found.category is not Category.EVENT


DENIED = [
    ("我最讨厌的食物是胡萝卜", "food", "胡萝卜"),
    ("雨天是我最讨厌的天气", "interest", "雨天"),
    ("我不玩游戏", "game", "游戏"),
    ("我从来不网购", "shopping", "网购"),
    ("我不太会用电脑", "skill", "用电脑"),
    ("我烟酒不沾", "alcohol", "烟酒"),
]


@pytest.mark.parametrize(("content", "dimension", "thing"), DENIED)
def test_spec_3_1_a_dislike_or_denial_told_as_a_fact_is_negative(
    content: str, dimension: str, thing: str
) -> None:
    found = stored_one(content, dimension)
    assert (found.object, found.polarity, found.scope) == (thing, Polarity.NEGATIVE, Scope.USER)


def test_spec_3_2_a_form_is_read_line_by_line() -> None:
    found = {
        (item.dimension, item.object) for item in stored("姓名：张三丰，年龄：35，城市：成都，爱好：太极")
    }
    assert found == {("name", "张三丰"), ("age", "35"), ("city", "成都"), ("hobby", "太极")}


MOMENTARY = [
    "我是做好了准备的",
    "我家在装修",
    "我妈在厨房做饭",
    "我怕来不及",
    "我打算试试",
    "明年见",
    "我明天再来问你",
    "我的工作是真的累",
]


@pytest.mark.parametrize("content", MOMENTARY)
def test_spec_4_1_4_passing_remarks_reach_no_further_than_the_conversation(content: str) -> None:
    assert not [item for item in stored(content) if item.scope is Scope.USER]


def test_spec_3_2_one_job_told_in_two_clauses_is_one() -> None:
    assert [item.dimension for item in stored("我从事跨境电商，主要做东南亚市场")] == ["occupation"]


NO_NAMES = [
    "我是穆斯林", "我是高中生", "我是甘肃的", "我是路痴", "我是程序员", "我是温州人", "我是钟点工", "尤其是老歌", "我是单身", "我是上班族", "我是陆军",
    "我租的那个院子，叫竹影小区",
]  # fmt: skip


@pytest.mark.parametrize("content", NO_NAMES)
def test_spec_3_1_words_that_begin_like_a_surname_are_no_names(content: str) -> None:
    assert "name" not in {item.dimension for item in stored(content)}


# --- what was is no more than an episode

PAST = [
    ("我以前住在天津", "city", "天津"),
    ("三年前我在上海工作", "city", "上海"),
    ("我去年住在大连", "city", "大连"),
    ("我在北京待过五年", "city", "北京"),
    ("我之前用的是小米手机", "possession", "小米手机"),
    ("我养过一只兔子", "pet", "一只兔子"),
    ("我曾经对花粉过敏", "allergy", "花粉"),
    ("我爷爷以前是铁路工人", "occupation", "铁路工人"),
    ("我妈退休前是会计", "occupation", "会计"),
    ("我小时候特别喜欢吃糖", "food", "糖"),
]


@pytest.mark.parametrize(("content", "kind", "thing"), PAST)
def test_spec_2_a_past_period_is_never_current(content: str, kind: str, thing: str) -> None:
    found = stored_one(content, "event")
    assert (found.category, found.layer, found.object) == (Category.EVENT, None, thing)
    assert found.predicate == kind
    assert found.valid_to is not None
    assert not [item for item in stored(content) if item.category is not Category.EVENT]


STILL = [
    ("我以前住在天津，现在住在廊坊", "city", "廊坊"),
    ("我以前不吃辣，现在无辣不欢", "taste_spicy", "辣"),
    ("我去年搬到了大连", "city", "大连"),
    ("我三年前开始在上海工作", "city", "上海"),
    ("我从小住在烟台", "city", "烟台"),
    ("我一直住在烟台", "city", "烟台"),
]


@pytest.mark.parametrize(("content", "dimension", "thing"), STILL)
def test_spec_2_what_holds_still_is_current(content: str, dimension: str, thing: str) -> None:
    found = stored_one(content, dimension)
    assert (found.object, found.scope) == (thing, Scope.USER)
    assert found.valid_to is None


# --- what is to come does not hold yet

AHEAD = [
    ("我下个月搬到杭州", "2026-04"),
    ("我闺蜜下个月结婚", "2026-04"),
    ("我明年五月毕业", "2027-05"),
    ("我下周三入职一家新公司", "2026-03-11"),
    ("我儿子明年上小学", "2027"),
]


@pytest.mark.parametrize(("content", "label"), AHEAD)
def test_spec_4_1_2_a_fact_of_a_later_day_is_a_plan(content: str, label: str) -> None:
    (found,) = stored(content)
    assert (found.dimension, found.category) == ("plan", Category.EVENT)
    assert found.content.endswith(f"（{label}）")


@pytest.mark.parametrize(
    ("content", "dimension"),
    [
        ("从下个月起我吃素", "diet"),
        ("我生日是五月三号", "birthday"),
        ("我周末双休", "work_schedule"),
        ("从今天起我戒烟了", "smoking"),
    ],
)
def test_spec_4_1_7_a_date_that_is_the_value_or_starts_a_change_makes_no_plan(
    content: str, dimension: str
) -> None:
    assert stored_one(content, dimension).category is not Category.EVENT


HAPPENED = [
    ("我昨天把手机摔了", "2026-03-01"),
    ("上个月我去西藏玩了十天", "2026-02"),
    ("我前年拿到了第一笔奖金", "2024"),
    ("上周五我参加了校友会", "2026-02-27"),
    ("我去年和同事去爬了泰山", "2025"),
    ("二月十四号我们领证了", "2026-02-14"),
]


@pytest.mark.parametrize(("content", "label"), HAPPENED)
def test_spec_4_1_2_an_event_has_its_date(content: str, label: str) -> None:
    found = next(item for item in stored(content) if item.valid_from is not None)
    assert f"{found.valid_from:%Y-%m-%d}".startswith(label)
    assert found.dimension != "plan"


# --- opinions

OPINIONS = [
    "新买的这台空气炸锅真好用，做鸡翅特别香",
    "我觉得咱们小区的物业真心不错",
    "这双登山鞋穿着挺舒服的，就是有点沉",
    "市图书馆的自习室特别安静",
    "那家酒馆的氛围很棒",
]


@pytest.mark.parametrize("content", OPINIONS)
def test_spec_4_1_5_an_opinion_of_a_thing_is_one_event_in_the_user_s_words(content: str) -> None:
    (found,) = stored(content)
    assert (found.category, found.speech_act, found.subject) == (Category.EVENT, SpeechAct.OPINION, "user")
    assert found.content in content


# --- leaning on another


@pytest.mark.parametrize(
    "content", ["我也喜欢爬山", "嗯嗯，我也很喜欢爵士", "不过我更喜欢周末去爬山", "我比较喜欢听评弹"]
)
def test_spec_4_1_7_a_liking_that_only_agrees_or_compares_is_hedged(content: str) -> None:
    found = stored(content)
    assert found
    assert {item.scope for item in found} == {Scope.SESSION}
    assert all(Marker.HEDGED in item.markers for item in found)


@pytest.mark.parametrize(
    "content",
    [
        "我喜欢爬山，也喜欢钓鱼",
        "我一点也不喜欢恐怖片",
        "我也对花生过敏",
        "不过我更喜欢靠窗的座位",
        "我比较喜欢简约的风格",
    ],
)
def test_spec_4_1_7_a_liking_beside_one_s_own_or_a_restriction_is_not(content: str) -> None:
    assert {item.scope for item in stored(content)} == {Scope.USER}


@pytest.mark.parametrize(
    "content", ["你在花店帮忙，又爱养多肉，真好", "你家在哪，养了几只猫？", "那你住在上海，上班一定很远吧"]
)
def test_spec_4_1_6_what_is_said_of_the_addressee_is_not_the_user_s(content: str) -> None:
    assert not stored(content)


# --- notes


def test_spec_4_1_an_unread_sentence_reaches_user_scope_only_with_a_date_or_figure() -> None:
    (vague,) = stored("我把阳台改成了一个小花园")
    (dated,) = stored("我上周六在阳台上种了两盆薄荷")
    assert (vague.scope, dated.scope) == (Scope.SESSION, Scope.USER)
    assert {vague.category, dated.category} == {Category.EVENT}


# --- what must never be got wrong

SAFETY = [
    ("我跟我妈一样对海鲜过敏", "allergy", "海鲜", "+"),
    ("我碰到花粉就打喷嚏", "allergy", "花粉", "+"),
    ("我对猫毛有点过敏", "allergy", "猫毛", "+"),
    ("你怎么又给我推荐海鲜，我说了我海鲜过敏！", "allergy", "海鲜", "+"),
    ("我没有高血压", "illness", "高血压", "-"),
    ("我腰椎间盘突出，不能久坐", "illness", "腰椎间盘突出", "+"),
    ("我甲状腺有结节", "illness", "甲状腺有结节", "+"),
    ("我装了心脏起搏器", "illness", "心脏起搏器", "+"),
    ("我听力有问题", "illness", "听力有问题", "+"),
    ("我在服用华法林", "medication", "华法林", "+"),
    ("我除了香菜都吃", "food_taboo", "香菜", "-"),
    ("我很少吃辣", "taste_spicy", "辣", "-"),
    ("我正在跟前夫打离婚官司", "legal_matter", "打离婚官司", "+"),
]


@pytest.mark.parametrize(("content", "dimension", "thing", "polarity"), SAFETY)
def test_spec_3_1_health_and_limits_are_read_with_their_polarity(
    content: str, dimension: str, thing: str, polarity: str
) -> None:
    found = stored_one(content, dimension)
    assert (found.object, found.polarity.value, found.subject, found.scope) == (
        thing,
        polarity,
        "user",
        Scope.USER,
    )


NOT_HEALTH = [
    "我以为我对虾过敏，结果不是", "医生怀疑我有糖尿病", "我担心自己得了胃癌", "我差点得了糖尿病", "我没说过我对花生过敏", "谁说我对花生过敏？",
    "我不觉得自己有抑郁症", "我对周一过敏", "我对什么都不过敏", "我怕得糖尿病", "我得了一等奖",
]  # fmt: skip


@pytest.mark.parametrize("content", NOT_HEALTH)
def test_spec_4_1_5_what_is_feared_denied_or_joked_about_is_no_illness(content: str) -> None:
    assert not {item.dimension for item in stored(content)} & {"allergy", "illness"}
