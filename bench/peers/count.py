"""Run by the peers' interpreter: calls as JSON lines on standard input, their tokens as JSON lines on standard output.

A line in is ``{"cache": …, "messages": […], "answer": …}``; calls of one ``cache`` follow each other. Counted with the
vocabulary of the Qwen models, which the package dashscope ships.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from collections import defaultdict
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from bench.peers.tokens import PrefixCache, counted

VOCABULARY = Path("resources", "qwen.tiktoken")
SPECIAL = {"<|endoftext|>": 151643, "<|im_start|>": 151644, "<|im_end|>": 151645}
# How these models cut text before they merge: words, single digits, signs, spaces.
CUT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def main() -> None:
    """Count until the input ends."""
    encoding = _encoding()
    caches: defaultdict[str, PrefixCache] = defaultdict(PrefixCache)

    @cache
    def encode(text: str) -> list[int]:
        return list(encoding.encode(text, allowed_special=set(SPECIAL)))

    for line in sys.stdin:
        call = json.loads(line)
        count = counted(call["messages"], call["answer"], encode, caches[call["cache"]])
        sys.stdout.write(json.dumps(asdict(count)) + "\n")


def _encoding() -> Any:
    spec = importlib.util.find_spec("dashscope")
    if spec is None or spec.origin is None:
        raise SystemExit("dashscope is not installed: make peers-install")
    ranks = importlib.import_module("tiktoken.load").load_tiktoken_bpe(
        str(Path(spec.origin).parent / VOCABULARY)
    )
    return importlib.import_module("tiktoken").Encoding(
        "qwen", pat_str=CUT, mergeable_ranks=ranks, special_tokens=SPECIAL
    )


if __name__ == "__main__":
    main()
