"""What a model is asked: the static part first, then one JSON object, so that no turn can fake another.

The same system text for every user lets an engine's prefix cache read it once. Everything a user wrote is inside JSON
strings; memories and turns carry short aliases, so that a model can name nobody else's.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from typing import Any

from hermes_memory.adapters.model_extractor.contract import FORM, OPINION_FORM, opinion_schema, schema
from hermes_memory.adapters.rule_extractor.when import zone
from hermes_memory.core.bounded import outside_blocks
from hermes_memory.core.candidate import Candidate, ExtractionRequest
from hermes_memory.core.model import Memory, Polarity, Turn
from hermes_memory.errors import InvalidConfig
from hermes_memory.ports.language_model import Question

MAX_TURN_CHARS = 4000  # of one turn; the rest is not read, and a refusal says so
MAX_CHARS = 16_000  # of all turns that are read
MAX_BEFORE_CHARS = 500  # of a turn that only explains
OPINION_TOKENS = 16  # of each verdict with its marks, and as many around them
_GAP = " … "  # where a recall block was pasted into a turn: nobody's words


@dataclass(frozen=True, slots=True)
class Prompt:
    """The texts of one version, and the keys that a statement may bear on."""

    name: str
    system: str
    repair: str
    opinion: str
    dimensions: tuple[str, ...]

    def question(self, sheet: Sheet, max_tokens: int, problem: str = "") -> Question:
        """The question about the turns of ``sheet``; ``problem``: what was wrong with the answer before."""
        asked = _json(sheet.document)
        return Question(
            system=self.system,
            user=f"{asked}\n{self.repair.replace('{problem}', problem)}" if problem else asked,
            form=FORM,
            schema=schema(self.dimensions),
            max_tokens=max_tokens,
        )

    def second(self, doubted: Sequence[tuple[Candidate, str]]) -> Question:
        """The question whether each candidate is wholly supported by the words beside it."""
        asked = [
            {
                "quote": quote,
                "content": candidate.content,
                "about": candidate.subject,
                "dimension": candidate.dimension,
                "object": candidate.object,
                "denied": candidate.polarity is Polarity.NEGATIVE,
            }
            for candidate, quote in doubted
        ]
        return Question(
            system=self.opinion,
            user=_json({"statements": asked}),
            form=OPINION_FORM,
            schema=opinion_schema(),
            max_tokens=OPINION_TOKENS * (len(doubted) + 1),
        )


@dataclass(frozen=True, slots=True)
class Sheet:
    """One request as it is asked: what the aliases stand for, and which turns were clipped or left out."""

    document: Mapping[str, Any]
    turns: Mapping[str, Turn]  # T1 …
    memories: Mapping[str, Memory]  # M1 …
    ends: Mapping[str, int]  # how many characters of a turn were shown, by its alias
    clipped: tuple[Turn, ...]


def sheet_of(request: ExtractionRequest) -> Sheet:
    """What is asked about ``request``: at most ``MAX_TURN_CHARS`` of a turn, ``MAX_CHARS`` of all together."""
    turns = {f"T{number}": turn for number, turn in enumerate(request.turns, start=1)}
    memories = {f"M{number}": memory for number, memory in enumerate(request.known, start=1)}
    ends: dict[str, int] = {}
    left = MAX_CHARS
    for alias, turn in turns.items():
        ends[alias] = min(len(turn.content), MAX_TURN_CHARS, left)
        left -= ends[alias]
    clipped = tuple(turn for alias, turn in turns.items() if ends[alias] < len(turn.content))
    document = {
        "known": [
            {"m": alias, "content": memory.content, "dimension": memory.dimension, "subject": memory.subject}
            for alias, memory in memories.items()
        ],
        "before": [_before(turn) for turn in request.context],
        "turns": [
            {
                "t": alias,
                "who": turn.role.value,
                "when": _when(turn),
                "text": shown(turn.content[: ends[alias]]),
            }
            for alias, turn in turns.items()
            if ends[alias]
        ],
    }
    return Sheet(document, turns, memories, ends, clipped)


def shown(text: str) -> str:
    """``text`` without the recall blocks pasted into it: they are no words of the user's (SPEC §3.3)."""
    return _GAP.join(text[start:end] for start, end in outside_blocks(text))


def _before(turn: Turn) -> dict[str, str]:
    return {"who": turn.role.value, "text": shown(turn.content)[:MAX_BEFORE_CHARS]}


def _when(turn: Turn) -> str:
    """Statement time where the user is, to the minute."""
    return f"{turn.created_at.astimezone(zone(turn.timezone)):%Y-%m-%d %H:%M}"


def _json(document: Mapping[str, Any]) -> str:
    """As JSON; half a character, which nothing can send, is a question mark."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace").decode("utf-8")


def load_prompt(path: Traversable, dimensions: Iterable[str]) -> Prompt:
    """The prompt in the file at ``path``. Raises InvalidConfig."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        texts = [data["name"], data["system"], data["repair"], data["opinion"]["system"]]
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise InvalidConfig(path.name, "cannot be read as a prompt") from error
    if not all(isinstance(text, str) and text.strip() for text in texts):
        raise InvalidConfig(path.name, "needs the texts name, system, repair and opinion.system")
    name, system, repair, opinion = (text.strip() for text in texts)
    keys = tuple(dimensions)
    return Prompt(name, system.replace("{dimensions}", " ".join(keys)), repair, opinion, keys)
