"""How a chat becomes tokens, and which of them an engine with a prefix cache has read before. Standard library only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

BLOCK = 16  # tokens that an engine keeps or forgets together: vLLM's default

Encode = Callable[[str], Sequence[int]]
Messages = Sequence[Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Count:
    """One call in tokens. ``static``: of the system message; ``cached``: whole blocks that were read before."""

    read: int
    cached: int
    static: int
    written: int

    @property
    def static_blocks(self) -> int:
        """The static tokens that fill whole blocks."""
        return whole_blocks(self.static)


def rendered(messages: Messages, *, answered: bool = True) -> str:
    """The chat as the models of the Qwen family are given it (ChatML); ``answered``: up to where the answer begins."""
    said = "".join(f"<|im_start|>{one['role']}\n{one['content']}<|im_end|>\n" for one in messages)
    return said + "<|im_start|>assistant\n" if answered else said


def whole_blocks(tokens: int) -> int:
    """The tokens of ``tokens`` that fill whole blocks."""
    return tokens // BLOCK * BLOCK


@dataclass(slots=True)
class PrefixCache:
    """The blocks that were read, each with all that stands before it. It forgets nothing."""

    seen: set[int] = field(default_factory=set)

    def read(self, tokens: Sequence[int]) -> int:
        """How many leading tokens were read before; from now on all whole blocks were.

        The last token is always computed: an answer begins from it.
        """
        chain, cached, unbroken = 0, 0, True
        for start in range(0, whole_blocks(len(tokens)), BLOCK):
            chain = hash((chain, tuple(tokens[start : start + BLOCK])))
            unbroken = unbroken and chain in self.seen
            cached += BLOCK if unbroken else 0
            self.seen.add(chain)
        return min(cached, whole_blocks(len(tokens) - 1)) if tokens else 0


def counted(messages: Messages, answer: str, encode: Encode, cache: PrefixCache) -> Count:
    """One call, after those that ``cache`` has seen."""
    tokens = encode(rendered(messages))
    system = [one for one in messages if one["role"] == "system"]
    return Count(
        read=len(tokens),
        cached=cache.read(tokens),
        static=len(encode(rendered(system, answered=False))) if system else 0,
        written=len(encode(answer)),
    )
