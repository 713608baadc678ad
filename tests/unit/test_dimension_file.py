"""The dimensions as data: strictly validated, and complete for what the rules name."""

from importlib.resources import files
from pathlib import Path

import pytest

from hermes_memory.adapters.dimension_file import load_dimensions
from hermes_memory.core.dimensions import SafetyClass, Sensitive
from hermes_memory.core.model import Category
from hermes_memory.errors import InvalidConfig

SHIPPED = load_dimensions(files("configs") / "dimensions.toml")
GOOD = """
[[dimension]]
key = "city"
cardinality = "single"
category = "FACT"
layer = "identity"
labels = { zh = "居住地", en = "City" }
cues.zh = ["附近"]
cues.en = ["nearby"]
"""


def load(tmp_path: Path, text: str) -> object:
    file = tmp_path / "dimensions.toml"
    file.write_text(text, encoding="utf-8")
    return load_dimensions(file)


def test_the_shipped_file_loads_and_is_large_enough() -> None:
    entries = list(SHIPPED)
    assert len(entries) >= 60
    for entry in entries:
        assert (entry.category is Category.EVENT) == (entry.layer is None), entry.key
        assert entry.labels["zh"]
        assert entry.labels["en"]
        assert entry.category is Category.EVENT or entry.cues["zh"], entry.key


def test_what_the_specification_names_is_there() -> None:
    assert SHIPPED.single("city")
    assert SHIPPED.single("residence_need")
    assert not SHIPPED.single("pet")
    assert SHIPPED.safety("allergy") is SafetyClass.ALLERGY
    assert SHIPPED.freeze_class("form_of_address") == "naming"
    classes = {SHIPPED.freeze_class(key) for key in ("allergy", "illness", "medication", "religious_taboo")}
    assert classes == {"allergy", "illness", "medication", "religious_taboo"}
    assert SHIPPED.safety("financial_limit") is SafetyClass.FINANCIAL
    assert SHIPPED.safety("legal_matter") is SafetyClass.LEGAL
    assert SHIPPED.safety("red_line") is SafetyClass.RED_LINE


def test_spec_4_1_3_sensitive_matters_are_marked() -> None:
    marked = {entry.key: SHIPPED.sensitive(entry.key) for entry in SHIPPED if SHIPPED.sensitive(entry.key)}
    assert marked == {
        "religion": Sensitive.RELIGION, "religious_taboo": Sensitive.RELIGION,
        "allergy": Sensitive.HEALTH, "illness": Sensitive.HEALTH, "medication": Sensitive.HEALTH,
        "pregnancy": Sensitive.HEALTH, "accessibility": Sensitive.HEALTH, "health_state": Sensitive.HEALTH, "condition": Sensitive.HEALTH,
        "legal_matter": Sensitive.GOVERNMENT,
    }  # fmt: skip
    assert SHIPPED.sensitive("pet") is None
    assert SHIPPED.sensitive("nothing known") is None


def test_a_good_file_is_read(tmp_path: Path) -> None:
    assert "city" in load(tmp_path, GOOD)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('cardinality = "single"', 'cardinality = "some"'),
        ('category = "FACT"', 'category = "OTHER"'),
        ('layer = "identity"', 'layer = "deep"'),
        ('key = "city"', 'key = ""'),
        ('key = "city"', ""),
        ("labels =", "names ="),
        (', en = "City"', ""),
        ('cues.zh = ["附近"]', "cues.zh = 1"),
        ('layer = "identity"', 'layer = "identity"\nunknown = 1'),
        ('layer = "identity"', 'layer = "identity"\nsafety = "none"'),
        ('layer = "identity"', 'layer = "identity"\nsensitive = "none"'),
        ('layer = "identity"', 'layer = "identity"\nfreeze_class = "none"'),
        ('layer = "identity"', 'layer = "identity"\nrelated = ["nowhere"]'),
        ('layer = "identity"', 'layer = "identity"\nexclusive = ["a"]'),
        ('layer = "identity"', 'layer = "identity"\nsame = ["a"]'),
        ('layer = "identity"', 'layer = "identity"\nsame = 1'),
        ('layer = "identity"', 'layer = "identity"\nkinds = [["dog"]]'),
        ('layer = "identity"', 'layer = "identity"\ngeneral = "a"'),
        ('layer = "identity"', 'layer = "identity"\nlevels = ["("]'),
        ('layer = "identity"', 'layer = "identity"\nparts = ["height"]'),
        ('layer = "identity"', 'layer = "identity"\nvalues_of = "nowhere"'),
        ("[[dimension]]", "[words]\nother = []\n[[dimension]]"),
        ("[[dimension]]", "words = 1\n[[dimension]]"),
        ("[[dimension]]", '[words]\nfavourite = ["favourite"]\n[[dimension]]'),
        ("[[dimension]]", "[other]\n[[dimension]]"),
        ("[[dimension]]", "[["),
    ],
)
def test_a_bad_file_is_refused(tmp_path: Path, old: str, new: str) -> None:
    with pytest.raises(InvalidConfig):
        load(tmp_path, GOOD.replace(old, new, 1))


def test_spec_6_a_dimension_may_read_its_values_as_another_does() -> None:
    city, hometown = SHIPPED.get("city"), SHIPPED.get("hometown")
    assert city is not None
    assert hometown is not None
    assert (hometown.same, hometown.levels, hometown.nested) == (city.same, city.levels, True)
    assert city.same


def test_a_key_may_occur_once_and_the_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig):
        load(tmp_path, GOOD + GOOD)
    with pytest.raises(InvalidConfig):
        load_dimensions(tmp_path / "absent.toml")
