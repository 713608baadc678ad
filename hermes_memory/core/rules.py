"""The numbers of SPEC as typed, validated values. The defaults themselves are in ``configs/defaults.toml``."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum

from hermes_memory.core.model import Category, Lock, Tier
from hermes_memory.errors import InvalidConfig

MANY = 1e9  # where a number has no upper bound of its own


def _within(owner: str, low: float, high: float, **values: float) -> None:
    for name, value in values.items():
        if not low <= value <= high:
            raise InvalidConfig(f"{owner}.{name}", f"must be between {low} and {high}")


class Curve(StrEnum):
    """Decay curves by name (SPEC §4.3)."""

    PLATEAU_STEP = "plateau_step"
    EXPONENTIAL = "exponential"
    LAST_ACCESS = "last_access"
    HALF_LIFE = "half_life"
    NONE = "none"


class Consent(StrEnum):
    """Whether sensitive matters in the user's own words need consent first (SPEC §4.1.3)."""

    ASSUME = "assume"
    ASK = "ask"


class Episodic(StrEnum):
    """What is kept as EVENT (SPEC §7.6)."""

    INFORMATIVE = "informative"
    ALL_TURNS = "all_turns"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRules:
    """SPEC §4.1: what may enter."""

    min_importance: float
    duplicate_similarity: float
    sensitive_consent: Consent
    episodic: Episodic
    episode_importance: float
    episode_stability: float
    most_candidates: int

    def __post_init__(self) -> None:
        shares = ("min_importance", "duplicate_similarity", "episode_importance", "episode_stability")
        _within("entry", 0, 1, **{name: getattr(self, name) for name in shares})
        _within("entry", 1, 10_000, most_candidates=self.most_candidates)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityRules:
    """SPEC §4.2: how much there may be, per user."""

    working: int
    longterm: int
    core: int
    merge_above: int
    topicless: tuple[str, ...]

    def __post_init__(self) -> None:
        tiers = {"working": self.working, "longterm": self.longterm, "core": self.core}
        _within("capacity", 1, 1_000_000, merge_above=self.merge_above, **tiers)

    def of(self, tier: Tier) -> int:
        """The cap of one tier."""
        return {Tier.WORKING: self.working, Tier.LONGTERM: self.longterm, Tier.CORE: self.core}[tier]


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeRules:
    """SPEC §4.3: how long it lives."""

    curves: dict[Category, Curve]
    plateau_days: float
    plateau_step_days: float
    plateau_factor: float
    plateau_old_days: float
    plateau_old_factor: float
    exponential_rate: float
    last_access_factor: float
    half_life_days: float
    review_days: float
    review_min_access: int
    archive_event_days: float
    archive_event_importance: float
    archive_unused_days: float
    archive_disproved: int
    reactivate_days: float
    negative_days: float
    cooldown_conversations: int
    cooldown_days: float
    rival_days: float
    session_idle_minutes: float
    turns_hours: float
    operations_hours: float

    def __post_init__(self) -> None:
        missing = set(Category) - set(self.curves)
        if missing:
            raise InvalidConfig("life.curves", f"lacks {', '.join(sorted(missing))}")
        shares = (
            "plateau_factor", "plateau_old_factor", "exponential_rate", "last_access_factor",
            "archive_event_importance",
        )  # fmt: skip
        _within("life", 0, 1, **{name: getattr(self, name) for name in shares})
        _within(
            "life", 1e-3, MANY, plateau_step_days=self.plateau_step_days, half_life_days=self.half_life_days
        )
        others = {field.name for field in fields(self)} - {"curves", *shares}
        _within("life", 0, MANY, **{name: getattr(self, name) for name in others})


@dataclass(frozen=True, slots=True, kw_only=True)
class LockRules:
    """SPEC §5: what may change what is already known."""

    start_inferred: float
    start_explicit: float
    step: float
    cap: float
    confirm_confidence: float
    confirm_count: int
    core_sessions: int
    candidate_sessions: int
    inferred_freeze_confidence: float
    change_confidence: float
    says_correction: float
    says_plain: float
    says_hedged: float
    says_inferred: float
    immediate: tuple[str, ...]
    eager_identity: bool
    eager_stability: float
    review_contradictions: int
    corrections_bear: int
    challenge_tries: int
    challenge_minutes: float
    token_minutes: float

    def __post_init__(self) -> None:
        counts = (
            "confirm_count", "core_sessions", "candidate_sessions", "review_contradictions", "corrections_bear",
            "challenge_tries",            "challenge_minutes", "token_minutes",
        )  # fmt: skip
        _within("locks", 0, MANY, **{name: getattr(self, name) for name in counts})
        shares = {field.name for field in fields(self)} - {"immediate", "eager_identity", *counts}
        _within("locks", 0, 1, **{name: getattr(self, name) for name in shares})


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictRules:
    """SPEC §6: how contradictions are settled."""

    fact_gap_days: float
    state_window_days: float
    state_affirmed_bonus: float
    state_inferred_malus: float
    confirmation_days: float

    def __post_init__(self) -> None:
        _within("conflicts", 0, MANY, **{field.name: getattr(self, field.name) for field in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRules:
    """SPEC §7: what comes back."""

    threshold: float
    top_k: int
    lock_weights: dict[Lock, float]
    negative_factor: float
    slot_relevance: float
    errand_relevance: float
    period_holds: float
    period_fails: float
    fit_holds: float
    fit_fails: float

    def __post_init__(self) -> None:
        missing = set(Lock) - set(self.lock_weights)
        if missing:
            raise InvalidConfig("recall.lock_weights", f"lacks {', '.join(sorted(missing))}")
        shares = ("threshold", "slot_relevance", "errand_relevance", "period_fails")
        _within("recall", 0, 1, **{name: getattr(self, name) for name in shares})
        _within("recall", 1, 10, period_holds=self.period_holds)
        _within("recall", 1, 50, top_k=self.top_k)
        factors = {f"lock_weights.{lock}": weight for lock, weight in self.lock_weights.items()}
        _within("recall", 0, 10, negative_factor=self.negative_factor, **factors)
        _within("recall", 1, 10, fit_holds=self.fit_holds)
        _within("recall", 0, 1, fit_fails=self.fit_fails)


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionRules:
    """SPEC §7.1.3: how meaning, words and neighbouring turns make one measure (``core.fusion``)."""

    meaning: float
    words: float
    covered: float
    even: float
    personal: float
    doubt: float
    exact: float
    period: float
    before: tuple[float, ...]
    after: tuple[float, ...]
    cut: float
    candidates: int

    def __post_init__(self) -> None:
        _within("fusion", 1e-3, MANY, meaning=self.meaning)
        _within("fusion", 0, 100, words=self.words, covered=self.covered, even=self.even)
        _within(
            "fusion", 0, 100, personal=self.personal, doubt=self.doubt, exact=self.exact, period=self.period
        )
        _within("fusion", 0, 1, cut=self.cut)
        for name in ("before", "after"):
            _within(
                "fusion",
                0,
                1,
                **{f"{name}.{number}": share for number, share in enumerate(getattr(self, name))},
            )
        _within("fusion", 50, MANY, candidates=self.candidates)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeRules:
    """SPEC §7.1.4: how much of a namespace's knowledge packs a recall may show, and how large a pack may be."""

    threshold: float
    most: int
    lexical_weight: float
    dimension_weight: float
    cue_relevance: float
    pack_entries: int
    pack_bytes: int

    def __post_init__(self) -> None:
        shares = ("threshold", "lexical_weight", "dimension_weight", "cue_relevance")
        _within("knowledge", 0, 1, **{name: getattr(self, name) for name in shares})
        _within("knowledge", 0, 50, most=self.most)
        _within("knowledge", 1, MANY, pack_entries=self.pack_entries, pack_bytes=self.pack_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class BriefingRules:
    """SPEC §7.4: the block's budget in characters and its shares, in the order of the sections."""

    budget_chars: int
    min_budget_chars: int
    share_frozen: float
    share_longterm: float
    share_recent: float
    share_transient: float

    def __post_init__(self) -> None:
        shares = [self.share_frozen, self.share_longterm, self.share_recent, self.share_transient]
        _within("briefing", self.min_budget_chars, MANY, budget_chars=self.budget_chars)
        if min(shares) < 0 or abs(sum(shares) - 1) > 1e-9:
            raise InvalidConfig("briefing", "the four shares must add up to 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRules:
    """SPEC §3.4: working memory; what a token is estimated at (``core.window.tokens``)."""

    turns: int
    fold_above: int
    budget_tokens: int
    fold_share: float
    summary_tokens: int
    passage_turns: int
    merged_passages: int
    turn_chars: int
    piece_chars: int
    clause_chars: int
    cjk_tokens: float
    word_tokens: float
    word_chars: int
    mark_tokens: float

    def __post_init__(self) -> None:
        estimates = ("cjk_tokens", "word_tokens", "mark_tokens")
        _within("window", 0, 1, fold_share=self.fold_share)
        _within("window", 0, 100, **{name: getattr(self, name) for name in estimates})
        counts = {field.name for field in fields(self)} - {"fold_share", *estimates}
        _within("window", 1, MANY, **{name: getattr(self, name) for name in counts})


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackRules:
    """S1 §4.3: how far signals move the rank of a memory; of each memory the last ``kept`` count."""

    step: float
    least: float
    most: float
    kept: int

    def __post_init__(self) -> None:
        _within("feedback", 0, 1, step=self.step, least=self.least)
        _within("feedback", 1, 10, most=self.most)
        _within("feedback", 1, 1000, kept=self.kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRules:
    """SPEC §8: when slots are made anew, and how their confidence moves."""

    new_memories: int
    rival_malus: float
    agreement_bonus: float

    def __post_init__(self) -> None:
        _within("profile", 1, MANY, new_memories=self.new_memories)
        _within("profile", 0, 1, rival_malus=self.rival_malus, agreement_bonus=self.agreement_bonus)


@dataclass(frozen=True, slots=True, kw_only=True)
class NightRules:
    """SPEC §9: what one night does to one user; days unless the name says otherwise."""

    stale_pending_days: float
    digest_days: float
    digest_least: int
    tally_days: int
    active_least: int
    merge_share: float
    portion: int

    def __post_init__(self) -> None:
        _within("night", 1, MANY, stale_pending_days=self.stale_pending_days, digest_days=self.digest_days)
        _within("night", 2, MANY, digest_least=self.digest_least)
        _within("night", 1, MANY, tally_days=self.tally_days, active_least=self.active_least)
        _within("night", 0, 1, merge_share=self.merge_share)
        _within("night", 1, MANY, portion=self.portion)


SHARES = (
    "recall_hit_rate", "extraction_yield", "ungrounded_rate", "conflict_rate", "eviction_hit_rate", "repeat_rate",
    "profile_accuracy", "profile_drift",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityRules:
    """SPEC §10: over how many days figures are taken, from how many cases on they speak, and what they must reach."""

    window_days: int
    least_cases: int
    least: dict[str, float]
    most: dict[str, float]

    def __post_init__(self) -> None:
        _within("quality", 1, MANY, window_days=self.window_days, least_cases=self.least_cases)
        if unknown := {*self.least, *self.most} - set(SHARES):
            raise InvalidConfig("quality", f"knows no figure {', '.join(sorted(unknown))}")
        _within("quality", 0, 1, **{f"least.{name}": limit for name, limit in self.least.items()})
        _within("quality", 0, 1, **{f"most.{name}": limit for name, limit in self.most.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class CohortRules:
    """S2 §7.2: whether consenting users make cohorts, of how many at least, and what may be told of them."""

    enabled: bool
    min_group: int
    most_values: int
    least_share: float
    share_step: float
    known_below: int

    def __post_init__(self) -> None:
        _within("cohorts", 2, MANY, min_group=self.min_group)
        _within("cohorts", 1, MANY, most_values=self.most_values, known_below=self.known_below)
        _within("cohorts", 0, 1, least_share=self.least_share)
        _within("cohorts", 1e-3, 1, share_step=self.share_step)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Every rule of both gates, of recall and of the briefing."""

    entry: EntryRules
    capacity: CapacityRules
    life: LifeRules
    locks: LockRules
    conflicts: ConflictRules
    recall: RecallRules
    fusion: FusionRules
    briefing: BriefingRules
    window: WindowRules
    knowledge: KnowledgeRules
    feedback: FeedbackRules
    profile: ProfileRules
    night: NightRules
    quality: QualityRules
    cohorts: CohortRules
