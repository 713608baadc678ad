"""Where sentences and clauses of a text begin and end, in Chinese, English or both. Costs the length of the text."""

from __future__ import annotations

import re
from collections.abc import Iterator

Stretch = tuple[int, int]

# A full stop ends a sentence only before a blank or at the end, and not after what is commonly cut short: 3.5, Dr. Smith,
# e-mail addresses and file names hold together.
_SENTENCE = re.compile(
    r"""(?:[^。！？!?；;…\n.]|\.(?!\s|$)
        |(?<=\b[A-Z])\.|(?<=\b[DMJS]r)\.|(?<=\bMs)\.|(?<=\bMrs)\.|(?<=\bSt)\.|(?<=\bProf)\.|(?<=\bNo)\.(?=\s\d)
        |(?<=\bvs)\.|(?<=\be\.g)\.|(?<=\bi\.e)\.|(?<=\b[ap]\.m)\.(?=\s[a-z]))+
        (?:[。！？!?；;…]+|\.)?[”"’')）」』]*|\.""",
    re.VERBOSE,
)
_CLAUSE = re.compile(r"(?:[^，,、；;：:]|[,:](?!\s))+[，,、；;：:]*")
_ASKS = re.compile(r"[?？][”\"’')）」』\s]*$")
_EDGE = " \t\r\n\u3000，,、。；;：:"


def sentences(text: str) -> Iterator[Stretch]:
    """The sentences in order, each with its closing marks and without blanks around it."""
    return _trimmed(text, _SENTENCE.finditer(text), " \t\r\n\u3000")


def clauses(text: str) -> Iterator[Stretch]:
    """The clauses of a sentence in order, without the marks that part them."""
    return _trimmed(text, _CLAUSE.finditer(text), _EDGE)


def asks(sentence: str) -> bool:
    """Whether it closes with a question mark."""
    return _ASKS.search(sentence) is not None


def _trimmed(text: str, found: Iterator[re.Match[str]], edge: str) -> Iterator[Stretch]:
    for match in found:
        start, end = match.span()
        while start < end and text[start] in edge:
            start += 1
        while end > start and text[end - 1] in edge:
            end -= 1
        if start < end:
            yield start, end
