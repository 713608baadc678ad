"""What extraction by a language model costs in calls and tokens, beside mem0 on the same turns and the same endpoint.

A recording endpoint answers both with what the rules read, each in its own form. Our host runs in simulated time at the
default micro-batch; mem0 runs in a process of its own by its default ``add``. A *turn* is one message of either side.
Tokens are counted with the vocabulary of the Qwen models, the same for both; which of them an engine with a prefix cache
has read before is worked out in whole blocks of 16. What an endpoint adds for an answer's schema is not counted.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from rich.table import Table

from bench.extraction_calls.answers import OurAnswers, PeerAnswers
from bench.extraction_calls.figures import Row, Tokens, of_calls, summed, tokens
from bench.extraction_calls.replay import Pace, Played, ours, peer
from bench.extraction_calls.talks import DataSet, read
from bench.peers.venv import MISSING, count, interpreter
from bench.report import Limit, Report, table
from bench.stack import Say
from hermes_memory.adapters.dimension_file import load_dimensions
from hermes_memory.adapters.rule_extractor import load_rule_extractor

LIMITS = (
    Limit("calls_per_turn", at_most=0.5, what="calls per turn, an exchange in each post, all data"),
    Limit("calls_per_turn_sessions", at_most=0.5, what="calls per turn, a session in one post, all data"),
    Limit("unusable", 1, "answers that could not be used, and batches the rules read instead"),
    Limit(
        "static_not_cached",
        1,
        "calls whose static blocks were not all read before, from the second of a form on",
    ),
    Limit("tokens_beside_peer", 1.0, "tokens read per turn over mem0's, an exchange in each post"),
    Limit("fresh_beside_peer", 1.0, "the same without what is in the prefix cache"),
)
NEED_PEERS = ("static_not_cached", "tokens_beside_peer", "fresh_beside_peer")
PROMPT_S = 2.0  # a shorter wait of a micro-batch, for comparison


def run(*, quick: bool, say: Say) -> Report:
    """Replay everything, count, compare."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # as in a worker of the server
    data, python = read(quick=quick), interpreter()
    played = _play(data, python, say)
    say("counting tokens")
    counted = None if python is None else _tokens(python, played)
    return report(played, counted)


def _play(data: Sequence[DataSet], python: Path | None, say: Say) -> list[Played]:
    dimensions = load_dimensions(files("configs") / "dimensions.toml")
    rules = load_rule_extractor(dimensions)
    played = []
    for pace in Pace:
        for one in data:
            say(f"{one.name}, {pace}: hermes")
            played.append(ours(one, pace, OurAnswers(rules, dimensions)))
            if pace is Pace.EXCHANGES:
                prompt = ours(one, pace, OurAnswers(rules, dimensions), delay_s=PROMPT_S)
                played.append(prompt)
            if python is not None:
                say(f"{one.name}, {pace}: mem0")
                played.append(asyncio.run(peer(python, one, pace, PeerAnswers(rules))))
    return played


def _tokens(python: Path, played: Sequence[Played]) -> list[Tokens]:
    """Of each replay; those of one system at one pace share a prefix cache, as users of one engine do."""
    named = [(f"{one.system}, {one.pace}", call) for one in played for call in one.calls]
    counts = iter(count(python, named))
    return [tokens(one, [next(counts) for _ in one.calls]) for one in played]


def report(played: Sequence[Played], counted: Sequence[Tokens] | None) -> Report:
    """Figures, tables and data; ``counted``: the tokens of each replay, None without the peers' environment."""
    made = Report("extraction-calls")
    rows = summed([of_calls(one, counted[place] if counted else None) for place, one in enumerate(played)])
    total = {(row.system, row.pace): row for row in rows if row.data == "all"}
    mine = total["hermes", Pace.EXCHANGES]
    made.figures = {
        "calls_per_turn": mine.calls_per_turn,
        "calls_per_turn_sessions": total["hermes", Pace.SESSIONS].calls_per_turn,
        "calls_per_user_turn": mine.calls_per_user_turn,
        "unusable": float(sum(one.usage.invalid + one.fell_back for one in played)),
    }
    other = total.get(("mem0", Pace.EXCHANGES))
    if counted is None or other is None or mine.tokens is None or other.tokens is None:
        made.left_out = dict.fromkeys(NEED_PEERS, MISSING)
    else:
        made.figures |= {
            "static_not_cached": float(
                sum(one.static_missed for one, of in zip(counted, played, strict=True) if of.system != "mem0")
            ),
            "static_share": mine.tokens.static_share,
            "tokens_beside_peer": mine.tokens.read / other.tokens.read,
            "fresh_beside_peer": mine.tokens.fresh / other.tokens.fresh,
        }
    made.tables = [_table(pace, [row for row in rows if row.pace is pace]) for pace in Pace]
    made.data = {
        "rows": [row.as_data() for row in rows],
        "peer": next((one.version for one in played if one.version), None),
        "tokenizer": "Qwen (dashscope)",
    }
    return made


def _table(pace: Pace, rows: Sequence[Row]) -> Table:
    columns = (
        "system · data", "turns", "calls", "second opinions", "calls per turn", "per user turn", "read per turn",
        "of it cached", "fresh", "written", "static share",
    )  # fmt: skip
    return table(f"A language model's work, {pace}; tokens per turn", columns, [_cells(row) for row in rows])


def _cells(row: Row) -> list[Any]:
    cells: list[Any] = [
        f"{row.system} · {row.data}", row.turns, row.calls, row.opinions, f"{row.calls_per_turn:.3f}",
        f"{row.calls_per_user_turn:.3f}",
    ]  # fmt: skip
    if row.tokens is None:
        return [*cells, *[""] * 5]
    used = row.tokens
    each = [used.read / row.turns, used.cached / row.turns, used.fresh / row.turns, used.written / row.turns]
    return [*cells, *each, f"{used.static_share:.0%}"]
