"""Cuts text into the words that search compares: Chinese, English, or both mixed (FIELD_NOTES).

Both indexes are fed with these words, so that they agree. Chinese is cut by dictionary only, without guessing
unknown words: a guess depends on the neighbours, and then a name in a query and in a memory is cut
differently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path

import opencc
import rjieba
import snowballstemmer

from hermes_memory.core.words import Kind, normal, pieces, without

STOP_WORD_FILES = ("stop_zh.txt", "stop_en.txt")
COMMON_WORD_FILES = ("common_zh.txt", "common_en.txt")
MAX_CHARS = 20_000  # beyond this a text is cut off: it is no memory and no query


def read_stop_words(directory: Path) -> frozenset[str]:
    """The stop words in ``directory``, in their normal form."""
    return frozenset(normal(word) for word in _listed(directory, STOP_WORD_FILES))


def read_common_words(directory: Path, cut: Callable[[str], Iterable[str]]) -> frozenset[str]:
    """The words of everyday use in ``directory``, as ``cut`` makes them of a text."""
    return frozenset(word for entry in _listed(directory, COMMON_WORD_FILES) for word in cut(entry))


def _listed(directory: Path, names: Iterable[str]) -> Iterator[str]:
    """The entries of word lists: one a line, ``#`` starts a comment."""
    for name in names:
        for line in (directory / name).read_text("utf-8").splitlines():
            if entry := line.partition("#")[0].strip():
                yield entry


class _Simplified(dict[int, str]):
    """Traditional characters to simplified ones, looked up once each, for ``str.translate``."""

    def __init__(self) -> None:
        super().__init__()
        self._converter = opencc.OpenCC("t2s")

    def __missing__(self, code: int) -> str:
        char = chr(code)
        self[code] = simple = self._converter.convert(char) if code >= 0x3400 else char
        return simple


class Segmenter:
    """Deterministic words of a text; the same for simplified and traditional, for upper and lower case.

    Args:
        stop_words: Words to leave out, in their normal form.
        cache_size: How many texts are remembered.
    """

    def __init__(self, stop_words: Iterable[str] = (), *, cache_size: int = 4096) -> None:
        self._stop_words = frozenset(stop_words)
        self._simplified = _Simplified()
        self._stemmer = snowballstemmer.stemmer("english")
        rjieba.cut("", hmm=False)  # loads the dictionary now and not within a request
        self._stem = lru_cache(maxsize=65_536)(self._stem_now)
        self._cached = lru_cache(maxsize=cache_size)(self._words_now)

    def words(self, text: str) -> tuple[str, ...]:
        """The words of ``text`` in order, repeated where they repeat; compounds also give their parts."""
        return self._cached(text[:MAX_CHARS])

    def plain(self, text: str) -> str:
        """``text`` as it is before it is cut: in its normal form and in simplified characters, marks kept."""
        return normal(text[:MAX_CHARS]).translate(self._simplified)

    def _words_now(self, text: str) -> tuple[str, ...]:
        return tuple(self._each(normal(text).translate(self._simplified)))

    def _each(self, text: str) -> Iterator[str]:
        for kind, piece in pieces(text):
            if kind is Kind.HAN:
                yield from without(rjieba.cut_for_search(piece, hmm=False), self._stop_words)
            elif kind is Kind.WORD:
                yield from (self._stem(word) for word in without([piece], self._stop_words))
            else:
                yield piece

    def _stem_now(self, word: str) -> str:
        return str(self._stemmer.stemWord(word.removesuffix("'s")))
