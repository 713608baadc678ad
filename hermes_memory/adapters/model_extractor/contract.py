"""What a model may answer: one pydantic model, its JSON schema, and the one way in (SPEC §3.1, §4.1.1).

The schema keeps to what guided decoding takes: no ``uniqueItems``, ``multipleOf``, ``format``, no ``pattern`` beside
``maxLength``, no ``allOf``. What may be left out is left out: a small model pays for each token it writes. The quote
comes first, so that a model looks for the words before it says what they mean.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from hermes_memory.core.candidate import SpeechAct
from hermes_memory.core.model import (
    MAX_CONTENT_CHARS,
    USER,
    Category,
    Granularity,
    Intent,
    Layer,
    Polarity,
    Scope,
)

FORM = "extraction"  # the schema's name, where an endpoint wants one
OPINION_FORM = "opinion"
MAX_STATEMENTS = 24  # of one answer; a batch has 8 turns by default
MAX_LINKS = 16  # confirmations, and corrections
MAX_QUOTE_CHARS = 400
MAX_WORDS_CHARS = 120  # a subject, a predicate, an object, a topic, an entity
MAX_ENTITIES = 8
MAX_ANSWER_CHARS = 120_000  # the longest text that is looked at

_KEPT_CONTROLS = frozenset("\n\r\t")  # a quote may run over a line's end


def _clean(text: str) -> str:
    if any(unicodedata.category(char) in ("Cc", "Cs") and char not in _KEPT_CONTROLS for char in text):
        raise ValueError("control characters")
    return text


def _one_line(text: str) -> str:
    if any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in text):
        raise ValueError("control characters")
    return text


Quote = Annotated[str, Field(min_length=1, max_length=MAX_QUOTE_CHARS), AfterValidator(_clean)]
Words = Annotated[str, Field(max_length=MAX_WORDS_CHARS), AfterValidator(_one_line)]
Alias = Annotated[str, Field(min_length=2, max_length=4), AfterValidator(_one_line)]
Share = Annotated[float, Field(ge=0, le=1)]


class _Part(BaseModel):
    """Nothing unknown, nothing converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Statement(_Part):
    """One proposed memory. What is left out is read by rule: the content is the quote, the rest the dimension's."""

    quote: Quote  # verbatim in the turn
    turn: Alias  # T1 …
    object: Annotated[str, Field(min_length=1, max_length=MAX_WORDS_CHARS), AfterValidator(_one_line)]
    dimension: Annotated[str, Field(min_length=1, max_length=40), AfterValidator(_one_line)]
    content: Annotated[str, Field(max_length=MAX_CONTENT_CHARS), AfterValidator(_clean)] = ""
    subject: Words = USER
    predicate: Words = ""
    polarity: Polarity = Polarity.POSITIVE
    negative: bool = False
    category: Category | None = None
    layer: Layer | None = None
    granularity: Granularity = Granularity.ATOMIC
    scope: Scope = Scope.USER
    act: SpeechAct = SpeechAct.STATEMENT
    source: Literal["explicit", "inferred"] = "explicit"
    intent: Intent = Intent.STATEMENT
    emotional: bool = False
    importance: Share | None = None
    stability: Share | None = None
    safety: bool = False
    when: Words = ""  # the words that say when, within the quote; the date is resolved by rule
    topic: Words = ""
    entities: Annotated[tuple[Words, ...], Field(max_length=MAX_ENTITIES)] = ()


class Confirmation(_Part):
    """That turn affirms that memory, in those words."""

    memory: Alias  # M1 …
    turn: Alias
    quote: Quote


class Correction(_Part):
    """That statement takes the place of that memory."""

    memory: Alias
    statement: Annotated[int, Field(ge=1, le=MAX_STATEMENTS)]  # its number in the answer, from 1


class Answer(_Part):
    """A model's whole answer for one batch of turns."""

    nothing: bool = False  # there is nothing to remember
    statements: Annotated[tuple[Statement, ...], Field(max_length=MAX_STATEMENTS)] = ()
    confirmations: Annotated[tuple[Confirmation, ...], Field(max_length=MAX_LINKS)] = ()
    corrections: Annotated[tuple[Correction, ...], Field(max_length=MAX_LINKS)] = ()

    @model_validator(mode="after")
    def _of_one_mind(self) -> Answer:
        if self.nothing and (self.statements or self.confirmations or self.corrections):
            raise ValueError("nothing, and something")
        return self


class Verdicts(_Part):
    """A second opinion: one word for each statement, in the order asked."""

    verdicts: Annotated[tuple[Literal["yes", "no"], ...], Field(max_length=MAX_STATEMENTS)]


_M = TypeVar("_M", bound=BaseModel)


class Unusable(ValueError):
    """An answer breaks the contract. ``code``: too_large, not_json, schema; ``problem``: where and how, never what it said."""

    def __init__(self, code: str, problem: str) -> None:
        super().__init__(code, problem)
        self.code, self.problem = code, problem

    def __str__(self) -> str:
        return f"{self.code}: {self.problem}"


def schema(dimensions: Iterable[str] = ()) -> dict[str, Any]:
    """The JSON schema of an ``Answer``; ``dimensions`` are the keys a statement may bear on, any where there are none."""
    document: dict[str, Any] = _plain(Answer.model_json_schema())
    if keys := list(dimensions):
        document["$defs"]["Statement"]["properties"]["dimension"] = {"type": "string", "enum": keys}
    return document


def opinion_schema() -> dict[str, Any]:
    """The JSON schema of ``Verdicts``."""
    document: dict[str, Any] = _plain(Verdicts.model_json_schema())
    return document


def parse(text: str) -> Answer:
    """The answer in ``text``. Raises Unusable."""
    return _validated(Answer, text)


def parse_verdicts(text: str, count: int) -> tuple[bool, ...]:
    """Whether each of ``count`` statements is supported. Raises Unusable, also for another number of words."""
    said = _validated(Verdicts, text).verdicts
    if len(said) != count:
        raise Unusable("schema", f"verdicts: {count} are asked for")
    return tuple(word == "yes" for word in said)


def _validated(model: type[_M], text: str) -> _M:
    if len(text) > MAX_ANSWER_CHARS:
        raise Unusable("too_large", f"more than {MAX_ANSWER_CHARS} characters")
    try:
        return model.model_validate_json(text.encode())
    except UnicodeEncodeError:
        raise Unusable("not_json", "it is no text") from None
    except ValidationError as error:
        raise _unusable(error) from None


def _unusable(error: ValidationError) -> Unusable:
    """The first few problems; keys that are not ours are not repeated."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    if problems[0]["type"] == "json_invalid":
        return Unusable("not_json", "it is not one JSON object")
    said = [f"{_place(problem['loc'], problem['type'])}: {problem['type']}" for problem in problems[:3]]
    return Unusable("schema", "; ".join(said))


def _place(loc: tuple[int | str, ...], kind: str) -> str:
    named = loc[:-1] if kind == "extra_forbidden" else loc
    return ".".join(map(str, named)) or "the object"


def _plain(node: Any, *, named: bool = False) -> Any:
    """Without titles, descriptions and defaults, and without the null that stands for what is left out.

    ``named``: the keys of ``node`` are names of properties, not words of the schema language.
    """
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, Mapping):
        return node
    if not named and "anyOf" in node:
        branches = [_plain(branch) for branch in node["anyOf"] if branch != {"type": "null"}]
        return branches[0] if len(branches) == 1 else {"anyOf": branches}
    return {
        key: _plain(value, named=not named and key in ("properties", "$defs"))
        for key, value in node.items()
        if named or key not in ("title", "description", "default")
    }
