"""A night in a user's mailbox: each step in portions, each portion a decision and a commit of its own (SPEC §9)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from hermes_memory.app.commands import Maintain
from hermes_memory.app.nights import STEPS, joined

Portion = Callable[
    [Maintain, str], Awaitable[Any]
]  # one decision: the command with its step, its operation id


async def run_night(command: Maintain, operation_id: str, portion: Portion) -> dict[str, Any]:
    """Run the step that is named, or all of them; the answer tells of all that changed.

    Each portion decides on the state as it is when its turn comes. Its operation id follows from the night's, so
    that a night that is tried again under the same id does nothing twice and still answers the whole.
    """
    answers: list[dict[str, Any]] = []
    for step in STEPS if command.step is None else (command.step,):
        more, number = True, 0
        while more:
            answer = await portion(replace(command, step=step), f"{operation_id}:{step}:{number}")
            if answer is not None:  # None: the user was erased since this was first answered
                answers.append(answer)
            more = answer is not None and answer["more"] and bool(answer["changes"])
            number += 1
            await asyncio.sleep(0)  # the loop is everybody's
    return joined(answers)
