"""The defaults are the numbers of SPEC; a file that does not hold together is refused."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from hermes_memory.config import Placement, document_of, load_settings, settings_of
from hermes_memory.core.model import Category, Lock
from hermes_memory.core.rules import Consent, Curve, Episodic
from hermes_memory.errors import InvalidConfig

DEFAULTS = load_settings()

NUMBERS: list[tuple[str, str, Any]] = [
    ("§4.1.4", "entry.min_importance", 0.5),
    ("§4.1.8", "entry.duplicate_similarity", 0.85),
    ("§4.1.3", "entry.sensitive_consent", Consent.ASSUME),
    ("§7.6", "entry.episodic", Episodic.INFORMATIVE),
    ("§4.2", "capacity.working", 200),
    ("§4.2", "capacity.longterm", 1000),
    ("§4.2", "capacity.core", 50),
    ("§4.2", "capacity.merge_above", 5),
    ("§4.3", "life.plateau_days", 30),
    ("§4.3", "life.plateau_step_days", 7),
    ("§4.3", "life.plateau_factor", 0.9),
    ("§4.3", "life.plateau_old_days", 90),
    ("§4.3", "life.plateau_old_factor", 0.5),
    ("§4.3", "life.exponential_rate", 0.02),
    ("§4.3", "life.last_access_factor", 0.95),
    ("§4.3", "life.half_life_days", 30),
    ("§4.3", "life.review_days", 180),
    ("§4.3", "life.review_min_access", 3),
    ("§4.3", "life.archive_event_days", 180),
    ("§4.3", "life.archive_event_importance", 0.6),
    ("§4.3", "life.archive_unused_days", 365),
    ("§4.3", "life.archive_disproved", 3),
    ("§4.3", "life.reactivate_days", 365),
    ("§4.3", "life.cooldown_conversations", 2),
    ("§4.3", "life.cooldown_days", 3),
    ("§6", "life.rival_days", 30),
    ("§4.2", "life.session_idle_minutes", 10),
    ("§4.3", "life.turns_hours", 24),
    ("§5", "locks.start_inferred", 0.60),
    ("§5", "locks.start_explicit", 0.75),
    ("§5", "locks.step", 0.1),
    ("§5", "locks.cap", 0.98),
    ("§5", "locks.confirm_confidence", 0.8),
    ("§5", "locks.confirm_count", 1),
    ("§5", "locks.core_sessions", 2),
    ("§5", "locks.candidate_sessions", 3),
    ("§5", "locks.inferred_freeze_confidence", 0.9),
    ("§5", "locks.change_confidence", 0.9),
    ("§5", "locks.says_correction", 1.0),
    ("§5", "locks.says_plain", 0.95),
    ("§5", "locks.says_hedged", 0.7),
    ("§5", "locks.says_inferred", 0.6),
    ("§5", "locks.immediate", ("allergy", "illness", "medication", "religious_taboo", "naming")),
    ("§5", "locks.eager_identity", False),
    ("§5", "locks.review_contradictions", 3),
    ("§5", "locks.challenge_tries", 3),
    ("§5", "locks.challenge_minutes", 10),
    ("§5", "locks.token_minutes", 5),
    ("§6", "conflicts.fact_gap_days", 180),
    ("§6", "conflicts.state_window_days", 7),
    ("§6", "conflicts.state_affirmed_bonus", 0.3),
    ("§6", "conflicts.state_inferred_malus", 0.2),
    ("§7.3", "recall.threshold", 0.76),
    ("§7.2", "recall.top_k", 6),
    ("§7.2", "recall.negative_factor", 1.2),
    ("§7.4", "briefing.budget_chars", 600),
    ("§7.4", "briefing.min_budget_chars", 200),
    ("§7.4", "briefing.share_frozen", 0.35),
    ("§7.4", "briefing.share_longterm", 0.40),
    ("§7.4", "briefing.share_recent", 0.20),
    ("§7.4", "briefing.share_transient", 0.05),
    ("§3.4", "window.turns", 10),
    ("§3.4", "window.fold_above", 15),
    ("§3.4", "window.fold_share", 0.5),
    ("§3.4", "window.summary_tokens", 800),
]


def value_of(settings: object, path: str) -> Any:
    for name in path.split("."):
        settings = getattr(settings, name)
    return settings


@pytest.mark.parametrize(("section", "path", "value"), NUMBERS, ids=[path for _, path, _ in NUMBERS])
def test_each_default_is_the_number_of_spec(section: str, path: str, value: Any) -> None:
    assert value_of(DEFAULTS, path) == value, f"SPEC {section}"


def test_spec_7_2_the_lock_weights_and_spec_4_3_the_curves() -> None:
    weights = DEFAULTS.recall.lock_weights
    assert weights == {Lock.FROZEN: 1.2, Lock.UNFROZEN: 1.2, Lock.CONFIRMED: 1.0, Lock.PENDING: 0.8}
    assert DEFAULTS.life.curves == {
        Category.FACT: Curve.NONE, Category.PREFERENCE: Curve.PLATEAU_STEP, Category.STATE: Curve.LAST_ACCESS,
        Category.EVENT: Curve.HALF_LIFE,
    }  # fmt: skip


# presets


def test_spec_4_2_preset_compact_holds_200_in_all() -> None:
    capacity = load_settings(overrides={"preset": "compact"}).capacity
    assert capacity.working + capacity.longterm + capacity.core == 200


def test_spec_5_presets_strict_and_eager() -> None:
    assert load_settings(overrides={"preset": "strict"}).locks.immediate == ()
    eager = load_settings(overrides={"preset": "eager"}).locks
    assert (eager.eager_identity, eager.eager_stability, eager.immediate) == (
        True,
        0.95,
        DEFAULTS.locks.immediate,
    )


def test_presets_join_and_own_keys_win_over_them() -> None:
    chosen = load_settings(overrides={"preset": ["compact", "strict"], "capacity": {"core": 7}})
    assert (chosen.capacity.core, chosen.capacity.working, chosen.locks.immediate) == (7, 40, ())


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(InvalidConfig, match="must be one of compact, eager, episodic, strict"):
        load_settings(overrides={"preset": "lenient"})


# files


def test_a_file_overrides_single_keys_and_arguments_override_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'preset = "strict"\n[recall]\ntop_k = 9\nthreshold = 0.5\n[actors]\nplacement = "dedicated"\n',
        encoding="utf-8",
    )
    settings = load_settings(path, {"recall": {"top_k": 3}})
    assert (settings.recall.top_k, settings.recall.threshold) == (3, 0.5)
    assert (settings.actors.placement, settings.locks.immediate) == (Placement.DEDICATED, ())
    assert settings.briefing == DEFAULTS.briefing


@pytest.mark.parametrize("data", [b"not toml at all [", b"\xff\xfe"])
def test_an_unreadable_file_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(data)
    with pytest.raises(InvalidConfig, match="cannot be read"):
        load_settings(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match="cannot be read"):
        load_settings(tmp_path / "none.toml")


# what is refused


@pytest.mark.parametrize(
    ("overrides", "field"),
    [
        ({"recal": {"top_k": 3}}, "recal"),
        ({"recall": {"topk": 3}}, "recall.topk"),
        ({"recall": 3}, "recall"),
        ({"presets": {}}, "presets"),
    ],
)
def test_an_unknown_key_is_refused_by_name(overrides: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        load_settings(overrides=overrides)
    assert caught.value.field == field


BAD: list[tuple[str, str, Any]] = [
    ("entry", "min_importance", 1.1),
    ("entry", "min_importance", -0.1),
    ("entry", "min_importance", "much"),
    ("entry", "duplicate_similarity", 2),
    ("entry", "sensitive_consent", "never"),
    ("entry", "episodic", "some"),
    ("capacity", "working", 0),
    ("capacity", "longterm", 2.5),
    ("capacity", "core", -1),
    ("capacity", "merge_above", 0),
    ("life", "half_life_days", 0),
    ("life", "plateau_step_days", 0),
    ("life", "plateau_factor", 1.5),
    ("life", "last_access_factor", -0.1),
    ("life", "review_days", -1),
    ("life", "rival_days", float("nan")),
    ("life", "curves", {"FACT": "linear"}),
    ("locks", "step", 1.1),
    ("locks", "cap", -1),
    ("locks", "start_explicit", 7),
    ("locks", "says_plain", -0.5),
    ("locks", "token_minutes", -5),
    ("conflicts", "state_window_days", -1),
    ("recall", "top_k", 0),
    ("recall", "top_k", 51),
    ("recall", "threshold", 1.01),
    ("recall", "slot_relevance", -1),
    ("recall", "negative_factor", -1),
    ("recall", "lock_weights", {"frozen": -1}),
    ("recall", "lock_weights", {"molten": 1}),
    ("briefing", "budget_chars", 199),
    ("briefing", "share_frozen", 0.5),
    ("window", "turns", 0),
    ("ledger", "kind", "postgres"),
    ("ledger", "synchronous", "OFF"),
    ("ledger", "prefix", "her{mes}"),
    ("ledger", "durability", "no"),
    ("ledger", "on_unsafe", "ignore"),
    ("ledger", "timeout_s", 0),
    ("ledger", "max_connections", 0),
    ("ledger", "attempts", 0),
    ("embedder", "dimension", -1),
    ("embedder", "batch", 0),
    ("embedder", "timeout_s", 0),
    ("embedder", "timeout_s", float("nan")),
    ("embedder", "attempts", 0),
    ("embedder", "attempts", 11),
    ("embedder", "backoff_s", -1),
    ("embedder", "max_chars", 0),
    ("reranker", "timeout_s", 0),
    ("reranker", "candidates", 0),
    ("reranker", "candidates", 51),
    ("actors", "placement", "scattered"),
]


@pytest.mark.parametrize(("section", "key", "value"), BAD, ids=[f"{s}.{k}={v}" for s, k, v in BAD])
def test_a_bad_value_is_refused_with_its_name(section: str, key: str, value: Any) -> None:
    with pytest.raises(InvalidConfig) as caught:
        load_settings(overrides={section: {key: value}})
    assert caught.value.field.startswith(section)


def test_spec_7_4_a_negative_share_is_refused_though_the_sum_is_one() -> None:
    with pytest.raises(InvalidConfig, match="shares"):
        load_settings(overrides={"briefing": {"share_frozen": 1.35, "share_recent": -0.8}})


@pytest.mark.parametrize(
    ("section", "table", "key"), [("life", "curves", "FACT"), ("recall", "lock_weights", "frozen")]
)
def test_a_table_must_be_complete(section: str, table: str, key: str) -> None:
    document = document_of(DEFAULTS)
    del document[section][table][key]
    with pytest.raises(InvalidConfig, match=f"lacks {key}"):
        settings_of(document)


def test_a_missing_key_is_refused() -> None:
    document = document_of(DEFAULTS)
    del document["recall"]["top_k"]
    with pytest.raises(InvalidConfig, match=r"recall\.top_k"):
        settings_of(document)


def test_the_settings_travel_as_plain_data() -> None:
    eager = load_settings(overrides={"preset": "eager"})
    assert settings_of(document_of(eager)) == eager
    assert {field.name for field in dataclasses.fields(eager)} == set(document_of(eager))


def test_the_rules_are_the_part_the_core_reads() -> None:
    rules = DEFAULTS.rules
    assert all(
        getattr(rules, field.name) == getattr(DEFAULTS, field.name) for field in dataclasses.fields(rules)
    )


def test_every_number_of_the_rules_is_read_by_some_code() -> None:
    root = Path(__file__).resolve().parents[2]
    read_by_name = {"working", "longterm"}  # through CapacityRules.of
    sources = "\n".join(
        path.read_text(encoding="utf-8")
        for package in ("hermes_memory", "actors", "serve_app", "jobs")
        for path in (root / package).rglob("*.py")
        if path.name not in {"rules.py", "config.py"}
    )
    names = {
        field.name
        for section in dataclasses.fields(DEFAULTS.rules)
        for field in dataclasses.fields(getattr(DEFAULTS.rules, section.name))
    }
    assert {name for name in names - read_by_name if f".{name}" not in sources} == set()


# the environment, and the files that are shipped


def test_a_string_of_a_file_names_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "own.toml"
    path.write_text('[serve]\nhost = "${SOME_HOST}"\nport = "${SOME_PORT:-9000}"\n', encoding="utf-8")
    monkeypatch.setenv("SOME_HOST", "10.0.0.1")
    monkeypatch.delenv("SOME_PORT", raising=False)
    assert (load_settings(path).serve.host, load_settings(path).serve.port) == ("10.0.0.1", 9000)
    monkeypatch.setenv("SOME_PORT", "7000")
    assert load_settings(path).serve.port == 7000


def test_a_variable_that_is_not_set_is_told_with_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "own.toml"
    path.write_text('[embedder]\nbase_url = "http://${SOME_HOST}:1/v1"\n', encoding="utf-8")
    monkeypatch.setenv("SOME_HOST", "")  # as good as unset
    with pytest.raises(InvalidConfig, match=r"embedder\.base_url.*SOME_HOST is not set"):
        load_settings(path)


def test_the_name_of_a_secret_can_depend_on_its_being_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "own.toml"
    path.write_text('[embedder]\nkey_env = "${SOME_KEY:+SOME_KEY}"\n', encoding="utf-8")
    monkeypatch.setenv("SOME_KEY", "hush")
    assert load_settings(path).embedder.key_env == "SOME_KEY"
    monkeypatch.delenv("SOME_KEY")
    assert load_settings(path).embedder.key_env == ""


def test_a_dollar_can_be_meant(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text('[capacity]\ntopicless = ["$${no}", "$5"]\n', encoding="utf-8")
    assert load_settings(path).capacity.topicless == ("${no}", "$5")


def test_overrides_of_a_program_are_taken_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_HOST", "10.0.0.1")
    assert load_settings(overrides={"serve": {"host": "${SOME_HOST}"}}).serve.host == "${SOME_HOST}"


def test_a_file_of_ones_own_goes_before_the_shipped_one_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cluster").write_text("[serve]\nport = 1234\n", encoding="utf-8")
    assert load_settings(Path("cluster")).serve.port == 1234


def test_what_is_no_file_and_not_shipped_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidConfig, match="defaults"):
        load_settings(Path("defaults"))
