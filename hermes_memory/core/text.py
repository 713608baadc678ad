"""Small facts about text: what language it is in, and when two strings say the same thing."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from hermes_memory.core.ids import digest

_CJK = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_DIGITS = re.compile(r"\d+")
_LATIN_WORD = re.compile(r"[^\W\d_]+", re.UNICODE)


def language(text: str) -> str:
    """``zh`` if the text holds at least as many Chinese characters as half its Latin words, else ``en``."""
    chinese = len(_CJK.findall(text))
    return "zh" if chinese and chinese * 2 >= len(_LATIN_WORD.findall(_CJK.sub(" ", text))) else "en"


def main_language(texts: Iterable[str]) -> str:
    """The language that most of ``texts`` are in; ``en`` when there are none."""
    counted = [language(text) for text in texts]
    return "zh" if counted.count("zh") * 2 > len(counted) else "en"


def normal(text: str) -> str:
    """Compatibility-folded, case-folded, without punctuation, symbols and spaces."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(char for char in folded if unicodedata.category(char)[0] in "LNM")


def same_name(left: str, right: str) -> bool:
    """Whether two texts differ in case, width, spaces or punctuation only."""
    return left == right or normal(left) == normal(right)


def numbers(text: str) -> list[str]:
    """All runs of digits, compatibility-folded, in order."""
    return _DIGITS.findall(unicodedata.normalize("NFKC", text))


def content_hash(subject: str, polarity: str, content: str) -> str:
    """Equal for statements that differ in case, width, spaces or punctuation only (S2 §5.1)."""
    return digest(normal(subject), polarity, normal(content))


def pieces(text: str) -> frozenset[str]:
    """Latin words and Chinese character pairs: the units in which short texts are compared."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = set(re.findall(r"[^\W_]+", _CJK.sub(" ", folded)))
    runs = re.findall(r"[\u3400-\u9fff\uf900-\ufaff]+", folded)
    pairs = {run[i : i + 2] for run in runs for i in range(max(1, len(run) - 1))}
    return frozenset(words | pairs)


def overlap(left: str, right: str) -> float:
    """Share of the smaller text's pieces that the other has too, in [0, 1]; 0 if either is empty."""
    one, other = pieces(left), pieces(right)
    return len(one & other) / min(len(one), len(other)) if one and other else 0.0


def one_line(text: str) -> str:
    """All white space and control characters folded to single spaces."""
    return " ".join(
        "".join(" " if unicodedata.category(c) in {"Cc", "Zl", "Zp"} else c for c in text).split()
    )
