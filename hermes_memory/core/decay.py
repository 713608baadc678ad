"""Decay curves (SPEC §4.3): pure functions of days, by name."""

from __future__ import annotations

import math
from datetime import datetime

from hermes_memory.core.model import Lock, Memory
from hermes_memory.core.rules import Curve, LifeRules

DAY_S = 86_400.0


def days_between(earlier: datetime, later: datetime) -> float:
    """Days from ``earlier`` to ``later``, never negative."""
    return max(0.0, (later - earlier).total_seconds() / DAY_S)


def curve(name: Curve, days: float, rules: LifeRules) -> float:
    """The weight in (0, 1] that ``days`` leave on the plain curve."""
    if name is Curve.PLATEAU_STEP:
        over = days - rules.plateau_days
        return math.pow(rules.plateau_factor, math.floor(over / rules.plateau_step_days)) if over > 0 else 1.0
    if name is Curve.EXPONENTIAL:
        return math.exp(-rules.exponential_rate * days)
    if name is Curve.LAST_ACCESS:
        return math.pow(rules.last_access_factor, days)
    if name is Curve.HALF_LIFE:
        return math.pow(0.5, days / rules.half_life_days)
    return 1.0


def decay(memory: Memory, now: datetime, rules: LifeRules) -> float:
    """What is left of a memory's weight at ``now``.

    Days are stretched by 2·(1 − stability): stability 1 never decays, 0.5 is the plain curve, 0 is twice as
    fast. Frozen memories never decay, and a negative one not for the first weeks unless it was disproved often
    (SPEC §7.2).
    """
    if memory.lock is Lock.FROZEN:
        return 1.0
    name = rules.curves[memory.category]
    if name is Curve.NONE or memory.stability >= 1:
        return 1.0
    since = memory.updated_at
    if memory.negative and _kept_high(memory, now, rules):
        return 1.0
    if name is Curve.LAST_ACCESS and memory.last_access_at is not None:
        since = max(since, memory.last_access_at)
    weight = curve(name, days_between(since, now) * 2 * (1 - memory.stability), rules)
    if name is Curve.PLATEAU_STEP and days_between(memory.created_at, now) > rules.plateau_old_days:
        weight *= rules.plateau_old_factor
    return weight


def _kept_high(memory: Memory, now: datetime, rules: LifeRules) -> bool:
    fresh = days_between(memory.updated_at, now) <= rules.negative_days
    return fresh and memory.contradictions < rules.archive_disproved


def retention(memory: Memory, now: datetime, rules: LifeRules) -> float:
    """Importance × confidence × decay: what eviction compares (SPEC §4.2)."""
    return memory.importance * memory.confidence * decay(memory, now, rules)
