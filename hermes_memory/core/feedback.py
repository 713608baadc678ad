"""What users make of what was recalled: it moves rank, never what is remembered (S1 §4.3, S2 §4.4)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from hermes_memory.core.model import Felt, Memory, Signal
from hermes_memory.core.rules import FeedbackRules
from hermes_memory.core.tally import WELCOME

_WORTH = {Signal.LIKE: 1.0, Signal.CLICK: 1.0, Signal.IGNORE: -0.5, Signal.DISLIKE: -1.0}


def felt(memory: Memory, session_id: str, signal: Signal, at: datetime, rules: FeedbackRules) -> Memory:
    """The memory with a signal; the same one of a conversation counts once.

    A welcome signal about a negative memory speaks against it: the user came back to what they had turned down. It
    raises the count of disproofs (SPEC §7.2), once for each conversation, and nothing else of any memory changes:
    neither words, nor lock, nor confidence.
    """
    here = {one.signal for one in memory.feedback if one.session_id == session_id}
    if signal in here:
        return memory
    kept = (*memory.feedback, Felt(session_id=session_id, signal=signal, at=at))[-rules.kept :]
    disproved = memory.negative and signal in WELCOME and not here & WELCOME
    return memory.with_(feedback=kept, contradictions=memory.contradictions + disproved)


def liking(memory: Memory, rules: FeedbackRules) -> float:
    """The factor of rank in [``least``, ``most``]; 1 without signals.

    Of a negative memory welcome signals lower it: what it warns of is not unwelcome any more.
    """
    if not memory.feedback:
        return 1.0
    worth = sum(_WORTH[one.signal] for one in memory.feedback)
    return min(rules.most, max(rules.least, 1.0 + rules.step * (-worth if memory.negative else worth)))


def adrift(memories: Iterable[Memory]) -> bool:
    """Whether behaviour speaks more against what is behind a slot than for it (S2 §5.5).

    Against: contradictions, disproofs and dislikes. For: that it was said, confirmations, likes and clicks. Of a
    negative memory welcome signals are disproofs already, and dislikes speak for it.
    """
    balance = 1
    for memory in memories:
        signals = [one.signal for one in memory.feedback]
        disliked = signals.count(Signal.DISLIKE)
        liked = 0 if memory.negative else sum(signal in WELCOME for signal in signals)
        balance += len(memory.confirmations) - memory.contradictions + liked
        balance += disliked if memory.negative else -disliked
    return balance < 0
