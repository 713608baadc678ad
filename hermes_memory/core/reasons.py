"""The published reason codes: why something entered, changed, left or was refused (SPEC §4.1).

Every refusal is counted and logged under one of these; the reference page lists them and a test holds the
two together.
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Stable codes, in snake case."""

    # refusals at the entry, in the order of the checks
    SCHEMA = "schema"
    TOO_LONG = "too_long"
    UNGROUNDED = "ungrounded"
    NOT_A_USER_TURN = "not_a_user_turn"
    NOT_SUPPORTED = "not_supported"
    PRIVACY = "privacy"
    SENSITIVE_INFERRED = "sensitive_inferred"
    NO_CONSENT = "no_consent"
    FILLER = "filler"
    QUESTION = "question"
    COMMAND = "command"
    LOW_VALUE = "low_value"
    JOKE = "joke"
    HYPOTHETICAL = "hypothetical"
    IRONY = "irony"
    QUOTATION = "quotation"
    VENTING = "venting"
    PLANTED_ORDER = "planted_order"
    PAUSED = "paused"
    OUTDATED = "outdated"
    UNKNOWN_MEMORY = "unknown_memory"
    TOO_MANY = "too_many"
    # what happens to what is let in
    NEW = "new"
    DUPLICATE = "duplicate"
    SAID_AGAIN = "said_again"
    AFFIRMED = "affirmed"
    PANEL = "panel"
    NEW_PERIOD = "new_period"
    PAST_PERIOD = "past_period"
    # conflicts
    NEWEST_WINS = "newest_wins"
    CORRECTION = "correction"
    WEAK_RIVAL = "weak_rival"
    RIVAL_CONFIRMED = "rival_confirmed"
    OLD_SAID_AGAIN = "old_said_again"
    HIGHER_CONFIDENCE = "higher_confidence"
    ASK_FIRST = "ask_first"
    SAFETY = "safety"
    FROZEN = "frozen"
    NOT_SURE_ENOUGH = "not_sure_enough"
    INSPECTED = "inspected"
    CONTRADICTED_OFTEN = "contradicted_often"
    # locks
    CONFIDENT = "confident"
    CORE_ATTRIBUTE = "core_attribute"
    FREEZE_CANDIDATE = "freeze_candidate"
    INFERRED_STRONG = "inferred_strong"
    BY_HAND = "by_hand"
    IMMEDIATE = "immediate"
    VERIFIED = "verified"
    REFREEZE = "refreeze"
    CORE_FULL = "core_full"
    # life
    SESSION_ENDED = "session_ended"
    CAPACITY = "capacity"
    MERGED = "merged"
    UNMERGED = "unmerged"
    RECALLED = "recalled"
    STALE = "stale"
    STALE_PENDING = "stale_pending"
    RECURRED = "recurred"
    DIGESTED = "digested"
    DISPROVED = "disproved"
    MENTIONED = "mentioned"
    EDITED = "edited"
    ERASED = "erased"


REASONS = {reason.value: reason for reason in Reason}  # by the published code
