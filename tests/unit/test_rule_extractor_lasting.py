"""What no pattern types: lasting circumstances reach user scope, what passes and what is not meant does not."""

import pytest

from hermes_memory.core.candidate import Candidate
from hermes_memory.core.model import USER, Category, Layer, Scope
from hermes_memory.core.scope import settled_scope
from tests.unit.rule_turns import candidates, read

LASTING_ZH = [
    # health and body
    "我有慢性腰痛", "左手腕有个旧伤，以前打球骨裂过", "有恐高，摩天轮都不敢坐", "我左膝盖换过人工关节", "右耳朵在厂里震坏了，听声音要用左边",
    "一到换季我就犯鼻炎", "我一坐长途车就吐", "一到晚上十点我就犯困，熬不了夜", "我睡觉特别浅，一点声音都会醒", "我右手使不上劲",
    "我腿脚不便，上下楼得扶着", "夜里睡不踏实，三点准醒", "我下巴容易长痘", "睡觉必须全黑，戴眼罩也要拉严窗帘", "我坐船会晕得一塌糊涂",
    # home and belongings
    "我家没有烤箱", "冰箱只有一百二十升，冻不了多少东西", "我家厨房只有一个灶眼", "我家的wifi信号到不了阳台", "家里的网是移动的，一到晚上就卡",
    "我们村不通快递", "我家洗衣机在地下室公用", "我家住的是平房，冬天烧煤炉", "我的阳台朝北，晒不到太阳", "我租的房子不让养宠物",
    "我的手机内存只有三十二G", "我的驾照只能开自动挡", "我的车烧柴油", "手上有个直播账号，卖圣诞花环",
    # kin, their work and places
    "我先生跑远洋货轮，一走就是七八个月", "我爸妈在佳木斯种木耳", "弟弟是和尚，在景洪一座庙里修行", "我婆婆在镇上开裁缝铺", "我奶奶不识字",
    "我妹妹嫁到了云南", "我爱人常年在非洲修铁路", "我两个儿子都在外地打工", "我一个人带孙子",
    # work
    "我在夜市摆摊卖烤冷面", "我在山上包了一片茶园", "我带四年级两个班的语文", "夜班是隔周轮，轮到时晚上八点到早上四点",
    # routines
    "每年泼水节我都请三天假回勐腊老家", "我晚上九点以后不接电话", "周三我不接活，那天固定去养老院", "我每个月十五号吃一天素", "冬天淡季我会关店两个月，回四川过",
    "每月给老家公婆寄一千五", "我随身总带一瓶水", "我付钱都刷卡",
    # aversions, limits, abilities
    "我从来不坐船", "我闻不了油漆味", "我不敢一个人走夜路", "我养不活植物", "嘴里有两颗种植牙，硬东西不敢咬", "我打字很慢", "我方向感特别差",
    "我英语口语挺好，波兰语只会几句问候", "我画不好手", "太长的小说我从来看不完", "我一个人住不惯", "有个心愿，五十岁前去趟冰岛看极光",
    # of all kinds
    "我家小区晚上十一点锁大门", "我的眼镜是渐进镜片，下楼梯容易踩空", "我孩子上的是寄宿学校，两周接一次", "我胳膊抬不过头顶", "我坐不了靠后的座位，会恶心",
    "我用左手写字，右手拿筷子", "我家水压低，楼上用水我家就断流", "我不在网上留真名", "我和我哥轮流照顾我妈", "我的床是一米二的", "我洗澡水得烫一点",
    "我出门必带现金", "两个孩子挤一间屋", "平时家里就我和猫", "我的工位靠着空调出风口", "比起电话我更喜欢书面反馈",
]  # fmt: skip
LASTING_EN = [
    "Tuesdays are choir night for me.", "Thursdays are bell-ringing practice, half seven till nine.", "Sundays I'm at my mother's.",
    "Mornings are for the horses.", "Home is a houseboat on the canal.", "There's no lift in our building.", "Our flat has no balcony.",
    "My kitchen only has a two-ring hob.", "No dishwasher at home, we wash by hand.", "Our street gets no mobile signal.",
    "I'd never wear fur.", "I'd never buy leather shoes.", "Stairs are hard for me.", "Loud noises set me off.", "Crowds make me panic.",
    "Heights make me dizzy.", "I bruise easily.", "My left knee is held together with screws.", "I've got a bad back.",
    "My commute is a ferry and then a bus.", "Our landlord doesn't allow pets.", "Wednesdays are my rehearsal evenings.", "I'd never go on a cruise.",
    "Our oven only heats from below.", "There's no bath in my flat, just a shower.", "Dust makes me sneeze.", "Reading small print gives me headaches.",
    "My brother keeps bees in Wales.", "My husband works on an oil rig, three weeks on, three off.",
]  # fmt: skip
PASSING = [
    "我这两天睡不好", "我现在在厨房做饭呢", "我正在等公交车", "我刚刚把门关上", "我家水管刚才爆了", "我这会儿没有网", "我现在手上没有笔", "我家楼下在修路，吵死了",
    "我家有点乱，等会儿收拾", "我手机快没电了", "我今天没带伞", "我今天腰有点疼", "我家今天停电", "我妈在给我打电话", "我女儿在写作业", "我老公刚出门", "我爸在睡觉",
    "我没有意见", "我没有听懂", "我没有收到验证码", "我没有别的要求", "我打不开这个文件", "我找不到下载按钮", "我不会这道题", "我一点开就闪退", "我每次打开都报错",
    "我会尽快回复", "我不会再问了", "我要去一趟银行", "我在网上买了个杯子", "我右手刚打完针，有点酸", "我家冰箱坏了，在等师傅来", "我真的不敢啊",
    "我下午有个会", "我输入密码之后没有反应", "我的论文写到第三章", "我选第二个方案", "我家网断了，帮我看看怎么弄", "我妈在楼下等我", "我用的是你给的模板",
    "My phone is dead right now.", "There's no way I can finish this today.", "I can't open the file.", "Tuesdays are the worst.", "Fridays are great.",
    "There's no rush.", "My back hurts today.", "Home is where the heart is.", "That makes me sick.", "Wednesdays are awful.", "I'd never have guessed.",
]  # fmt: skip
NOT_MEANT = [
    "我家没有烤箱就好了", "要是我家有个院子，我就种菜", "开玩笑的，我家有一百只猫", "说着玩的，我家住城堡", "如果我有慢性腰痛，能不能骑车", "假如我不会骑车怎么办",
    "我同事说他家没有烤箱", "听说他们村不通快递", "他家没有烤箱", "你家没有烤箱吗", "这个酒店没有电梯", "小说里的主角有恐高", "北京每年冬天都很冷",
    "医院每天有很多人排队", "慢性病人要多运动", "公交车每半小时一班", "这种药每天吃一次", "每个人都有自己的人生", "他弟弟在渔船上当大副",
    "I wish we had a lift.", "If I had a bad back I'd buy a new chair.", "Just kidding, I live in a castle.", "My friend says his flat has no balcony.",
    "The hotel has no lift.",
]  # fmt: skip

TASKS = [
    "我按照步骤一步一步操作", "我复制粘贴到表格里", "我用Python读取数据", "我照着教程配置环境", "我们下一步讨论预算", "我们从第一章讲起", "我改一改标题",
    "我的问题很简单", "我的订单显示已签收", "我点右上角的图标", "我公司的电脑蓝屏", "我参考的是国标", "我们老师让背诵全文", "我整理一下思绪", "我按回车没有变化",
]  # fmt: skip


def _lasting(content: str) -> list[Candidate]:
    return [one for one in candidates(content) if settled_scope(one, None) is Scope.USER]


@pytest.mark.parametrize("content", [*LASTING_ZH, *LASTING_EN])
def test_spec_4_1_7_a_plain_declaration_about_the_users_life_reaches_user_scope(content: str) -> None:
    assert _lasting(content)


@pytest.mark.parametrize("content", PASSING)
def test_spec_4_1_7_what_passes_stays_in_the_session_or_out(content: str) -> None:
    assert not _lasting(content)


@pytest.mark.parametrize("content", NOT_MEANT)
def test_spec_4_1_5_what_is_not_meant_or_not_theirs_is_no_circumstance(content: str) -> None:
    assert not _lasting(content)


def test_spec_4_3_what_lasts_is_a_fact_that_does_not_decay_as_an_episode_does() -> None:
    (found,) = candidates("我家的wifi信号到不了阳台")
    assert (found.dimension, found.category, found.layer) == ("circumstance", Category.FACT, Layer.IDENTITY)
    assert found.subject == USER
    assert found.content == found.object == "我家的wifi信号到不了阳台"


def test_spec_4_3_a_plain_declaration_of_no_known_kind_reaches_as_far_and_fades_as_a_note() -> None:
    (found,) = candidates("我出门必带现金")
    assert (found.dimension, found.category, found.scope) == ("note", Category.EVENT, Scope.USER)


@pytest.mark.parametrize("content", TASKS)
def test_spec_4_1_4_talk_of_the_work_at_hand_is_no_declaration(content: str) -> None:
    assert not _lasting(content)


def test_spec_4_1_3_what_it_says_of_the_body_is_sensitive() -> None:
    (found,) = candidates("左手腕有个旧伤，以前打球骨裂过")
    assert found.dimension == "condition"


def test_spec_4_1_6_what_is_told_of_a_relative_is_theirs() -> None:
    (found,) = candidates("我爸妈在佳木斯种木耳，大棚有六个")
    assert (found.subject, found.dimension) == ("爸妈", "circumstance")


def test_a_circumstance_beside_a_question_is_kept_and_the_question_is_not() -> None:
    found = read("我有恐高，哪些项目别玩？")
    assert [one.content for one in found.candidates] == ["我有恐高"]


def test_a_circumstance_beside_what_a_pattern_reads_is_kept_too() -> None:
    found = {one.content: one.dimension for one in candidates("我爷爷是修钟表的，一个人住在镇上")}
    assert "occupation" in found.values()
    assert len(found) == 2


def test_spec_4_1_7_who_nobody_named_is_nobody_to_remember() -> None:
    assert not _lasting("他们都在广东打工")


def test_spec_6_what_the_home_lacks_and_has_are_two_sides_of_one_thing() -> None:
    (lacks,), (has,) = candidates("我家没有烤箱"), candidates("我家有烤箱")
    assert (lacks.dimension, lacks.object) == (has.dimension, has.object) == ("possession", "烤箱")
    assert (lacks.polarity, has.polarity) == ("-", "+")
