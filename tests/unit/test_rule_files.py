"""The rule files: strictly validated, known dimensions only, and fast."""

import shutil
import time
from importlib.resources import as_file, files
from pathlib import Path

import pytest

from hermes_memory.adapters.dimension_file import load_dimensions
from hermes_memory.adapters.rule_extractor.loading import load_rules
from hermes_memory.errors import InvalidConfig
from tests.unit.rule_turns import read

DIMENSIONS = load_dimensions(files("configs") / "dimensions.toml")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with as_file(files("configs") / "dimensions.toml") as place:
        shutil.copytree(place.parent / "extraction", tmp_path / "extraction")
    return tmp_path / "extraction"


def test_the_shipped_rules_load(folder: Path) -> None:
    rules = load_rules(folder, DIMENSIONS)
    assert {row.language for row in rules.patterns} == {"zh", "en"}
    assert all(row.dimension in DIMENSIONS for row in rules.patterns)
    assert all(weight.importance >= 0.4 for weight in rules.weights.values())


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("zh.toml", 'dimension = "city"', 'dimension = "nowhere"'),
        ("zh.toml", 'polarity = "-"', 'polarity = "!"'),
        ("en.toml", "bare = true", "odd = true"),
        ("en.toml", "regex = '''", "regex = '''@LOST@"),
        ("en.toml", "regex = '''", "regex = '''("),
        ("markers.toml", "[hedged]", "[hedge]"),
        ("speech.toml", "[joke]", "[jest]"),
        ("speech.toml", "[joke]", "[joke]\nfr = 'x'"),
        ("grammar.toml", "[tail]", "[end]"),
        ("lexicon.toml", 'dimension = "colour"', 'dimension = "color"'),
        ("weights.toml", "name = {", "nobody = {"),
        ("weights.toml", "importance = 0.9", "importance = 9"),
        ("affirming.toml", "[[probe]]", "[[probe]]\nodd = 1"),
        ("worth.toml", "points = ", "odd = 1\npoints = "),
        ("worth.toml", "enough = ", "plenty = "),
        ("lasting.toml", "[plain]", "[simple]"),
        ("lasting.toml", 'health = "condition"', 'health = "nowhere"'),
        ("lasting.toml", 'health = "condition"', 'nobody = "condition"'),
        ("lasting.toml", "@KIN@", "@LOST@"),
        ("en.toml", 'after = ["', 'after = ["nowhere", "'),
    ],
)
def test_a_bad_rule_file_is_refused(folder: Path, name: str, old: str, new: str) -> None:
    file = folder / name
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InvalidConfig):
        load_rules(folder, DIMENSIONS)


def test_a_missing_rule_file_is_refused(folder: Path) -> None:
    (folder / "markers.toml").unlink()
    with pytest.raises(InvalidConfig):
        load_rules(folder, DIMENSIONS)


ORDINARY = [
    "我叫林一，在一家医院上班，平时喜欢游泳，不吃香菜。", "帮我推荐几家附近的餐厅，我对花生过敏", "I live in Lisbon and I play the cello.",
    "Actually, from now on I don't eat meat anymore.", "今天天气怎么样？",
]  # fmt: skip


def test_an_ordinary_turn_takes_about_a_millisecond() -> None:
    best = []
    for content in ORDINARY:
        read(content)
        times = []
        for _ in range(20):
            start = time.perf_counter()
            read(content)
            times.append(time.perf_counter() - start)
        best.append(min(times))
    assert sum(best) / len(best) < 0.003  # a third of that on a quiet machine


@pytest.mark.parametrize(
    "content",
    [
        "好啊" * 200 + "x",
        "and then " * 200 + "x",
        "患有" * 200 + "x",
        "我喜欢" * 400,
        "I like and " * 400,
        "从小有点" * 200,
        "my my " * 300,
    ],
)
def test_no_text_makes_matching_explode(content: str) -> None:
    start = time.perf_counter()
    read(content)
    assert time.perf_counter() - start < 5
