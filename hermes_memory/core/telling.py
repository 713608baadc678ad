"""The words in which a user is told what is remembered of them, in their language (SPEC §7.4, §11)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hermes_memory.core.model import USER, Layer, Lock, Memory

_TITLES = {
    "zh": {
        Layer.IDENTITY.value: "你是谁", Layer.RESTRICTION.value: "禁忌与限制", Layer.PREFERENCE.value: "喜好",
        Layer.STYLE.value: "希望怎样被回答", Layer.CONTEXT.value: "近况", "event": "说过的事",
    },
    "en": {
        Layer.IDENTITY.value: "Who you are", Layer.RESTRICTION.value: "What you must or will not have",
        Layer.PREFERENCE.value: "What you like", Layer.STYLE.value: "How you want to be answered",
        Layer.CONTEXT.value: "How life goes now", "event": "What you told",
    },
}  # fmt: skip
_WORDS = {
    "zh": {"seems": "似乎：", "disputed": "（近期可能改变）", "of": "关于{subject}：", "open": "“", "close": "”"},
    "en": {"seems": "Seems: ", "disputed": " (may be changing)", "of": "About {subject}: ", "open": "“", "close": "”"},
}  # fmt: skip


def titles(language: str) -> Mapping[str, str]:
    """Layer, or ``event``, → heading, in the order of telling."""
    return _TITLES[language]


def certainty(memory: Memory, rivals: Iterable[Memory], language: str) -> str:
    """The memory in a line: whom it is about if not the user, "seems" while it is pending, and what disputes it."""
    words = _WORDS[language]
    about = "" if memory.subject == USER else words["of"].format(subject=memory.subject)
    seems = words["seems"] if memory.lock is Lock.PENDING else ""
    disputed = memory.rival_of is not None or any(rival.rival_of == memory.id for rival in rivals)
    told = f"{words['open']}{memory.content}{words['close']}"
    return f"{about}{seems}{told}{words['disputed'] if disputed else ''}"
