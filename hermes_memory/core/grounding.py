"""What a statement rests on: each of its words must be the user's (SPEC §3.3, §4.1.2).

A language model may lie in every field, so nothing here asks what a text means. Words are compared as the segmenter
makes them: Latin ones by their stem, Chinese ones as they stand in the text, both in one script and one spelling. Which
words add no fact, which negate, and which tell of health or faith is data (``configs/words/grounding.toml``).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

Pattern = re.Pattern[str]

_HAN = "\u3005\u3007\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_IS_HAN = re.compile(f"[{_HAN}]")
_LETTER = re.compile(r"[^\W\d_]")
_PIECE = re.compile(rf"(?P<han>[{_HAN}]+)|(?P<latin>[^\W_{_HAN}]+(?:'[^\W\d_{_HAN}]+)?)")
_FIGURE = re.compile(r"\d+(?:\.\d+)?")
_NUMERAL = re.compile("[零〇一二两三四五六七八九十百千万]+")
_NUMBER = re.compile(f"\\d|{_NUMERAL.pattern}")
_ALONE = re.compile(r"\|?(\d+)\|?")
_DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_UNITS = {"十": 10, "百": 100, "千": 1000}
_MYRIAD = 10_000
_COUNTED = re.compile(r"[零〇一二两三四五六七八九十百千万\d]*[个只条位名家辆台部把本张间套份件种次匹头]")
_SIGN = re.compile(r"[^\w\s，。、；：？！“”‘’（）()《》〈〉「」『』【】…—–\-.,;:?!'\"·/~～\u0300-\u036f]")
_HIDDEN = "\u25a1"  # stands where a phrase was that only looks like a negation


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    """The closed lists, all in the spelling of ``Grounding.read``.

    ``frame``: words that add no fact. ``copulas``: words for *is*. ``equal``: groups of words of which one may stand for
    another. ``figures``: English words for numbers. ``contractions``: what a short form stands for. ``negators``, and
    ``apart``, the phrases in which one negates nothing. ``breaks``: where a clause ends. ``resumes``: what follows a thing
    that stands before its verb ("香菜我不吃", "peanuts I can't eat"). ``against``: words by which a
    thing is disliked, given up or over. ``kept``: words that tell whether it is so, and may not be left out.
    ``limits``: to what a negation may be limited.
    ``corrects``: words by which a turn puts an earlier one right. ``asks``: what a question ends with. ``times``: words
    that name a time. ``bare``: what says yes and nothing else. ``cues``: literal words of a class that freezes at once or
    is sensitive. ``answer_chars``, ``answer_words``: the longest answer, in Chinese characters and in Latin words.
    """

    frame: frozenset[str]
    copulas: frozenset[str]
    equal: tuple[frozenset[str], ...]
    figures: Mapping[str, int]
    contractions: Mapping[str, tuple[str, ...]]
    negators: Pattern
    apart: Pattern
    breaks: Pattern
    resumes: Pattern
    against: Pattern
    kept: Pattern
    limits: Pattern
    corrects: Pattern
    asks: Pattern
    times: Pattern
    bare: Pattern
    cues: Mapping[str, Pattern]
    answer_chars: int
    answer_words: int


@dataclass(frozen=True, slots=True)
class Reading:
    """A text as it is compared.

    ``plain`` is in one script and spelling; in ``line`` its words stand between bars, without other marks;
    ``figures`` are the values of its numbers; ``negators`` say where in ``plain`` something is negated.
    """

    plain: str
    line: str
    words: frozenset[str]
    latin: tuple[tuple[int, int, frozenset[str]], ...]
    figures: frozenset[str]
    negators: tuple[int, ...]

    @property
    def whole(self) -> str:
        """The words as they stand in the line of a text that holds them in a row: Latin ones are not cut."""
        inner = self.line.strip("|")
        if not inner:
            return ""
        first, last = ("" if _IS_HAN.match(inner[at]) else "|" for at in (0, -1))
        return f"{first}{inner}{last}"

    def places(self, word: str) -> Iterator[tuple[int, int]]:
        """Where a word of this or another text stands."""
        if _IS_HAN.search(word):
            start = self.plain.find(word)
            while start >= 0:
                yield start, start + len(word)
                start = self.plain.find(word, start + 1)
        else:
            yield from ((start, end) for start, end, words in self.latin if word in words)


class Grounding:
    """Compares statements with the words they are said to rest on.

    Args:
        words: All words of a text, none left out, Latin ones stemmed.
        plain: A text in one script and spelling, its marks kept.
        lexicon: The closed lists.
        stop_words: Words by which two texts do not yet speak of one thing.
    """

    def __init__(
        self,
        words: Callable[[str], Iterable[str]],
        plain: Callable[[str], str],
        lexicon: Lexicon,
        stop_words: Iterable[str] = (),
    ) -> None:
        self.lexicon, self._plain, self._cut = lexicon, plain, words
        self._stop = frozenset(word for entry in stop_words for word in (entry, *words(entry)))
        self._frame = lexicon.frame | {word for entry in lexicon.frame for word in words(entry)}
        self._copulas = lexicon.copulas | {word for entry in lexicon.copulas for word in words(entry)}
        self._equal: dict[str, frozenset[str]] = {}
        for group in lexicon.equal:
            same = frozenset(word for entry in group for word in words(entry))
            self._equal |= dict.fromkeys(same, same)
        self._figures = {
            word: str(value) for entry, value in lexicon.figures.items() for word in words(entry)
        }
        self._token = lru_cache(maxsize=16_384)(self._token_now)
        self.read = lru_cache(maxsize=4096)(self._read)

    def _read(self, text: str) -> Reading:
        plain = self._plain("".join(char for char in text if unicodedata.category(char) != "Cf"))
        line: list[str] = []
        words: set[str] = set()
        latin: list[tuple[int, int, frozenset[str]]] = []
        for hit in _PIECE.finditer(plain):
            piece = hit.group()
            cut = self._token(piece)
            words |= cut
            line.append(piece)
            if hit.lastgroup == "latin":
                latin.append((hit.start(), hit.end(), cut))
        figures = {_value(figure) for figure in _FIGURE.findall(plain)}
        figures |= {str(numeral(hit)) for hit in _NUMERAL.findall(plain)}
        figures |= {self._figures[word] for word in words & self._figures.keys()}
        return Reading(
            plain=plain,
            line=f"|{'|'.join(line)}|".replace("'", "|"),
            words=frozenset(words),
            latin=tuple(latin),
            figures=frozenset(figures),
            negators=self._negators(plain),
        )

    def _negators(self, plain: str) -> tuple[int, ...]:
        if not self.lexicon.negators.search(plain):
            return ()
        masked = self.lexicon.apart.sub(lambda hit: _HIDDEN * len(hit.group()), plain)
        return tuple(hit.start() for hit in self.lexicon.negators.finditer(masked))

    def _token_now(self, token: str) -> frozenset[str]:
        full = self.lexicon.contractions.get(token, (token,))
        return frozenset(word for part in full for word in self._cut(part))

    # words

    def stands(self, thing: str, text: Reading) -> bool:
        """Whether ``thing`` is named in the text: as a whole, or each of its parts by itself."""
        whole = self.read(thing).whole
        if not whole:
            return False
        if whole in text.line:
            return True
        if _NUMBER.search(whole) and _in_figures(whole) in _in_figures(text.line):
            return True
        return all(self._part_stands(part, text) for part in whole.strip("|").split("|"))

    def _part_stands(self, part: str, text: Reading) -> bool:
        if _IS_HAN.match(part):
            return part in text.line or self._same_number(part, text)
        if f"|{part}|" in text.line or self._same_number(part, text):
            return True
        return bool(_LETTER.search(part)) and not self._token(part).isdisjoint(text.words)

    def shares(self, thing: str, text: Reading, *, beside: Reading | None = None) -> bool:
        """Whether a word of ``thing`` that names something, and is none of those ``beside``, stands in the text."""
        telling = self.telling(self.read(thing))
        if beside is not None:
            telling = [word for word in telling if word not in beside.words and word not in beside.line]
        return any(self._covered(word, (text,)) for word in telling)

    def telling(self, text: Reading) -> list[str]:
        """The words of a text that name something, and not only how many."""
        words = (word for word in text.words if _LETTER.search(word) and not _COUNTED.fullmatch(word))
        return [word for word in words if word not in self._stop and not self._adds_nothing(word, ())]

    def _same_number(self, word: str, text: Reading) -> bool:
        if _NUMERAL.fullmatch(word):
            return str(numeral(word)) in text.figures
        value = _value(word) if _FIGURE.fullmatch(word) else self._figures.get(word)
        return value in text.figures

    def strange(self, content: Reading, sources: Sequence[Reading]) -> list[str]:
        """The words of ``content`` that add a fact and stand in none of the sources."""
        if content.whole in sources[0].line:
            return []
        return [word for word in content.words if not self._covered(word, sources)]

    def _covered(self, word: str, sources: Sequence[Reading]) -> bool:
        if word in self._frame or word in self._copulas or not _LETTER.search(word):
            return True
        if self.lexicon.negators.fullmatch(word):
            return True  # whether something is negated is looked at as a whole
        if not _IS_HAN.search(word):
            same = self._equal.get(word, frozenset({word}))
            return any(not same.isdisjoint(text.words) or self._same_number(word, text) for text in sources)
        if any(word in text.line or self._same_number(word, text) for text in sources):
            return True
        return any(
            self._adds_nothing(one, sources) and self._covered(other, sources)
            for cut in range(1, len(word))
            for one, other in ((word[:cut], word[cut:]), (word[cut:], word[:cut]))
        )

    def _adds_nothing(self, word: str, sources: Sequence[Reading]) -> bool:
        if word in self._frame or word in self._copulas or self.lexicon.negators.fullmatch(word):
            return True
        return any(self._same_number(word, text) for text in sources)

    def equates(self, content: Reading, thing: Reading, sources: Sequence[Reading]) -> bool:
        """Whether "is" is all that ``content`` says of the thing, and nobody said so: "I'm a doctor" of "I hate doctors".

        The first of the sources is the quote.
        """
        if not self._has_copula(content) or any(self._has_copula(text) for text in sources):
            return False
        quote, *others = sources
        answers = any(text.words for text in others)  # "What do you do?" – "Doctor."
        return not self._says_more(content, thing) and (self._says_more(quote, thing) or not answers)

    def _has_copula(self, text: Reading) -> bool:
        return any(
            word in text.words or (_IS_HAN.search(word) and word in text.line) for word in self._copulas
        )

    def _says_more(self, text: Reading, thing: Reading) -> bool:
        """Whether a word of the text adds something to the thing."""
        return any(
            not self._adds_nothing(word, ()) and word not in thing.words and word not in thing.line
            for word in text.words
        )

    # numbers

    @staticmethod
    def strange_figures(plain: str, known: Container[str]) -> list[str]:
        """The numbers written in digits in a text, as ``Reading.plain`` has it, that are not ``known``."""
        return [value for figure in _FIGURE.findall(plain) if (value := _value(figure)) not in known]

    @staticmethod
    def strange_signs(content: Reading, quote: Reading) -> list[str]:
        """The signs in ``content`` that are no mere punctuation and do not stand in the quote."""
        return [sign for sign in _SIGN.findall(content.plain) if sign not in quote.plain]

    # negation

    def around(self, content: Reading, quote: Reading) -> list[tuple[int, int]]:
        """Where in the quote a negation would be one of ``content``: the clauses in which its words stand closest together."""
        whole = content.plain.strip()
        if places := [hit.span() for hit in re.finditer(re.escape(whole), quote.plain)] if whole else []:
            return [self._reach(quote, start, end) for start, end in places]
        events = sorted(
            (start, end, word)
            for word in content.words
            if not (word in self._frame or self.lexicon.negators.fullmatch(word))
            for start, end in quote.places(word)
        )
        if not events:
            return [(0, len(quote.plain))]
        return [self._reach(quote, start, end) for start, end in _tightest(events)]

    def _reach(self, quote: Reading, start: int, end: int) -> tuple[int, int]:
        """From where its clause begins to the end of a stretch, or of the clause where the verb is yet to come."""
        breaks = [hit.start() for hit in self.lexicon.breaks.finditer(quote.plain)]
        before = [at for at in breaks if at < start]
        after = next((at for at in breaks if at >= end), len(quote.plain))
        goes_on = self.lexicon.resumes.match(quote.plain, end, after)
        return (before[-1] if before else 0), (after if goes_on else end)

    @staticmethod
    def negated(text: Reading, start: int = 0, end: int | None = None) -> bool:
        """Whether something is negated in ``text.plain[start:end]``."""
        stop = len(text.plain) if end is None else end
        return any(start <= at < stop for at in text.negators)

    def left_out(self, content: Reading, quote: Reading, start: int, end: int) -> bool:
        """Whether ``content`` leaves out a word of that clause, also behind its own, which tells whether it is so."""
        breaks = (hit.start() for hit in self.lexicon.breaks.finditer(quote.plain, end))
        end = next(breaks, len(quote.plain))
        shapes = (self.lexicon.kept, self.lexicon.limits) if content.negators else (self.lexicon.kept,)
        return any(
            hit.group() not in content.plain
            for shape in shapes
            for hit in shape.finditer(quote.plain, start, end)
        )

    # what kind of text

    def cue(self, name: str, *texts: Reading) -> bool:
        """Whether one of the texts holds a literal word of a class."""
        cue = self.lexicon.cues.get(name)
        return cue is not None and any(cue.search(text.plain) for text in texts)

    def question(self, text: str) -> str:
        """The last question asked in ``text``; empty if there is none."""
        found = [hit.group() for hit in _SENTENCE.finditer(text) if self.lexicon.asks.search(hit.group())]
        return found[-1] if found else ""

    def short(self, text: Reading) -> bool:
        """Whether a turn is short enough to be an answer, or to put one thing right."""
        if _IS_HAN.search(text.plain):
            return len(text.plain) <= self.lexicon.answer_chars
        return len(text.latin) <= self.lexicon.answer_words


_SENTENCE = re.compile(r"[^。！？!?；;…\n]+[。！？!?；;…]*")


def numeral(text: str) -> int:
    """The value of a Chinese numeral; digit by digit where it names no unit (二〇二四)."""
    if not any(char in _UNITS or char == "万" for char in text):
        return int("".join(str(_DIGITS[char]) for char in text))
    total = section = digit = 0
    for char in text:
        if char == "万":
            total, section, digit = (total + section + digit or 1) * _MYRIAD, 0, 0
        elif char in _UNITS:
            section, digit = section + (digit or 1) * _UNITS[char], 0
        else:
            digit = _DIGITS[char]
    return total + section + digit


def _in_figures(line: str) -> str:
    """A line with its numbers in digits, each apart from what stands beside it."""
    figures = _NUMERAL.sub(lambda hit: str(numeral(hit.group())), line)
    return _ALONE.sub(r"#\1#", figures)


def _value(figure: str) -> str:
    """A number without leading zeros and idle decimals."""
    whole, _, part = figure.partition(".")
    part = part.rstrip("0")
    return f"{whole.lstrip('0') or '0'}{'.' + part if part else ''}"


def _tightest(events: Sequence[tuple[int, int, str]]) -> list[tuple[int, int]]:
    """The shortest stretches that hold every word once, of ``(start, end, word)`` in order."""
    wanted, held, low = len({word for _, _, word in events}), dict[str, int](), 0
    found: list[tuple[int, int]] = []
    for _, end, word in events:
        held[word] = held.get(word, 0) + 1
        while len(held) == wanted:
            found.append((events[low][0], end))
            left = events[low][2]
            held[left] -= 1
            if not held[left]:
                del held[left]
            low += 1
    shortest = min(end - start for start, end in found)
    return [stretch for stretch in found if stretch[1] - stretch[0] == shortest]
