"""A simplified copy of a text for matching, character by character, so that offsets stay true."""

from __future__ import annotations

from functools import cache

import opencc

_CJK = (0x3400, 0x9FFF)
_WIDE_TO_NARROW = {wide: chr(wide - 0xFEE0) for a, b in ((0xFF10, 0xFF19), (0xFF21, 0xFF3A), (0xFF41, 0xFF5A))
                   for wide in range(a, b + 1)}  # fmt: skip
_ALIKE = {
    "’": "'", "‘": "'", "ʼ": "'", "`": "'", "　": " ", "\u00a0": " ", "\t": " ",
    "妳": "你", "牠": "它", "祂": "它", "喫": "吃", "著": "着", "裡": "里", "裏": "里",
    "「": "“", "」": "”", "『": "“", "』": "”", "︰": "：", "﹐": "，", "､": "、",
}  # fmt: skip


@cache
def _table() -> dict[int, str]:
    convert = opencc.OpenCC("t2s").convert
    chars = [chr(code) for code in range(_CJK[0], _CJK[1] + 1)]
    plain = convert("\n".join(chars)).split("\n")
    table = {ord(old): new for old, new in zip(chars, plain, strict=True) if len(new) == 1 and old != new}
    return table | _WIDE_TO_NARROW | {ord(old): new for old, new in _ALIKE.items()}


def simplified(text: str) -> str:
    """``text`` in simplified characters, narrow letters and plain quotes; the same length."""
    return text.translate(_table())
