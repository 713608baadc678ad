"""SPEC §3.3, §4.1.2, §4.1.3: whatever is typed, spans are verbatim and masking leaves no secret."""

from datetime import UTC, datetime
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hermes_memory.adapters.detectors import SecretDetector
from hermes_memory.adapters.rule_extractor import load_rule_extractor
from hermes_memory.core.candidate import ExtractionRequest
from hermes_memory.core.model import Category, Role, Turn
from hermes_memory.core.privacy import mask

EXTRACTOR = load_rule_extractor()
DETECTOR = SecretDetector()
WHEN = datetime(2026, 3, 2, 10, tzinfo=UTC)

WORDS = [
    "我", "我妈妈", "我朋友小李", "不", "喜欢", "讨厌", "对", "花生", "过敏", "住在", "上海", "叫", "，", "。", "？", "！", "今天", "明天下午三点",
    "如果", "其实", "一直", "和", "、", "的", "了", "吃", "喝", "茶", "两只猫", "“", "”", "開玩笑", "[id]", "\n", " ", "他说", "气死我了",
    "I ", "my ", "sister ", "'m ", "don't ", "like ", "hate ", "live in ", "Lisbon", " and ", ", ", ". ", "? ", "allergic to ", "not ",
    "but ", "call me ", "Jo ", "tomorrow ", "at 3pm ", "if ", "every ", "he said ", "ugh ", "translate: ", "always ", "send ", "a@b.cn ",
]  # fmt: skip
SECRETS = [
    "4111 1111 1111 1111", "11010519491231002X", "密码是 abc123", "my password is x9y8z7", "sk-test-FAKE00000000000000000000",
    "DE89370400440532013000", "文三路478号", "742 Evergreen Terrace", "536-90-4399", "token: 9f86d081884c7d659a2feaa0c55ad015", "\u200b",
    "４", "卡号", "[card]", "密码", "is", ":", "-", "1", "12", "abc", "，", "。", " ", "@", "'",
]  # fmt: skip

texts = st.one_of(
    st.text(max_size=80),
    st.lists(st.sampled_from(WORDS), max_size=14).map("".join),
    st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=6)), max_size=10).map("".join),
)
risky = st.lists(
    st.one_of(st.sampled_from(SECRETS), st.sampled_from(WORDS), st.text(max_size=4)), max_size=10
).map("".join)


def turn(content: str) -> Turn:
    return Turn(
        session_id="s", index=0, message_id="m", role=Role.USER, content=content, created_at=WHEN, received_at=WHEN,
        timezone="Asia/Shanghai",
    )  # fmt: skip


@given(texts)
def test_every_candidate_rests_on_words_of_the_turn(content: str) -> None:
    found = EXTRACTOR.read(ExtractionRequest(turns=(turn(content),)))
    for item in found.candidates:
        assert 0 <= item.span.start < item.span.end <= len(content)
        quote = content[item.span.start : item.span.end]
        assert quote.strip()
        assert item.object in quote
        assert item.object.strip()
        assert item.content.strip()
        assert len(item.content) <= 256
        assert (item.category is Category.EVENT) == (item.layer is None)
        assert 0 <= item.importance <= 1
        assert 0 <= item.stability <= 1
    assert found.candidates or found.affirmations or found.refusals


@given(texts)
def test_reading_is_deterministic(content: str) -> None:
    request = ExtractionRequest(turns=(turn(content),))
    assert EXTRACTOR.read(request) == EXTRACTOR.read(request)


@given(st.one_of(texts, risky))
def test_masking_leaves_no_detectable_secret(content: str) -> None:
    found = DETECTOR.find(content)
    assert all(0 <= item.start < item.end <= len(content) for item in found)
    assert all(one.end <= other.start for one, other in pairwise(found))
    assert not DETECTOR.find(mask(content, found))
