"""A pack's file: what is read, and that a mistake is told with its line."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from hermes_memory.adapters.dimension_file import load_dimensions
from hermes_memory.adapters.pack_file import parse_pack, read_pack
from hermes_memory.core.knowledge import Pack
from hermes_memory.errors import InvalidInput
from tests.small_world import DIMENSIONS, default_rules, rules
from tests.unit.test_daytime import DAYTIMES

RULES = default_rules().knowledge
HEADER: dict[str, Any] = {
    "format": "hermes-knowledge/1", "name": "everyday", "version": "1.2", "languages": ["zh", "en"], "licence": "CC0-1.0",
}  # fmt: skip
ENTRY: dict[str, Any] = {"id": "tea", "content": {"en": "Tea contains caffeine."}}


def file_of(*rows: Any) -> str:
    return "".join(
        (row if isinstance(row, str) else json.dumps(row, ensure_ascii=False)) + "\n" for row in rows
    )


def parsed(*rows: Any) -> Pack:
    return parse_pack(file_of(*rows), "p.jsonl", DIMENSIONS, DAYTIMES, RULES)


def test_every_field_is_read() -> None:
    full = {
        "id": "mooncake",
        "content": {"zh": "月饼里常有蛋黄", "en": "Mooncakes often hold egg yolk"},
        "cues": {"zh": ["月饼"]},
        "topics": ["中秋"],
        "dimensions": ["allergy"],
        "when": {
            "daytime": ["evening", "night"],
            "week": ["weekend"],
            "season": ["autumn"],
            "scene": ["dining"],
        },
    }
    pack = parsed(HEADER | {"title": "Everyday"}, "", ENTRY, full)
    assert (pack.name, pack.version, pack.languages, pack.licence, pack.title) == (
        "everyday", "1.2", ("zh", "en"), "CC0-1.0", "Everyday",
    )  # fmt: skip
    tea, cake = pack.entries
    assert (tea.id, dict(tea.content), tea.limited) == ("tea", {"en": "Tea contains caffeine."}, False)
    assert (cake.cues, cake.topics, cake.dimensions) == ({"zh": ("月饼",)}, ("中秋",), ("allergy",))
    assert cake.limits == {
        "daytime": frozenset({"evening", "night"}), "week": frozenset({"weekend"}), "season": frozenset({"autumn"}),
    }  # fmt: skip
    assert cake.scenes == {"dining"}
    assert cake.limited


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ((), "p.jsonl: is empty"),
        (("\n",), "p.jsonl: is empty"),
        ((HEADER,), "p.jsonl: has no entries"),
        (("{",), "p.jsonl, line 1: is not JSON"),
        ((ENTRY,), "p.jsonl, line 1: format"),
        ((HEADER | {"format": "hermes-knowledge/2"}, ENTRY), "line 1: format"),
        ((HEADER | {"languages": []}, ENTRY), "line 1: languages"),
        ((HEADER | {"languages": ["fr"]}, ENTRY), "line 1: languages.0"),
        ((HEADER | {"name": "a pack"}, ENTRY), "line 1: name"),
        ((HEADER | {"author": "x"}, ENTRY), "line 1: author"),
        ((HEADER, "[1]"), "line 2: Input should be"),
        ((HEADER, ENTRY, "", ENTRY | {"id": "x", "content": {}}), "line 4: content"),
        ((HEADER, ENTRY | {"content": {"en": " "}}), "line 2: content.en"),
        ((HEADER, ENTRY | {"content": {"en": "x" * 257}}), "line 2: content.en"),
        ((HEADER, ENTRY | {"content": {"fr": "du thé"}}), "line 2: content.fr"),
        ((HEADER, ENTRY | {"content": {"en": 1}}), "line 2: content.en"),
        ((HEADER | {"languages": ["zh"]}, ENTRY), "line 2: speaks en, which the header does not name"),
        ((HEADER, ENTRY | {"cues": {"zh": ["茶"]}}), "line 2: Value error, has cues but no content in zh"),
        ((HEADER, ENTRY | {"cues": {"en": [""]}}), "line 2: cues.en.0"),
        ((HEADER, ENTRY, ENTRY), "line 3: repeats the id tea"),
        ((HEADER, ENTRY | {"dimensions": ["shoe_size"]}), "line 2: dimensions: shoe_size is not known"),
        ((HEADER, ENTRY | {"when": {"daytime": ["dawn"]}}), "line 2: when.daytime: dawn is not known"),
        ((HEADER, ENTRY | {"when": {"season": ["morning"]}}), "line 2: when.season: morning is not known"),
        ((HEADER, ENTRY | {"when": {"moon": ["full"]}}), "line 2: when.moon"),
        ((HEADER, ENTRY | {"weight": 2}), "line 2: weight"),
    ],
)
def test_a_mistake_is_told_with_its_line(rows: tuple[Any, ...], problem: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parsed(*rows)
    assert problem in str(refused.value)


def test_a_pack_has_a_size(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text(file_of(HEADER, ENTRY, ENTRY | {"id": "x"}), encoding="utf-8")
    assert len(read_pack(path, DIMENSIONS, DAYTIMES, RULES).entries) == 2
    few = rules(knowledge={"pack_entries": 1}).knowledge
    with pytest.raises(InvalidInput, match="line 3: is beyond the 1 entries"):
        read_pack(path, DIMENSIONS, DAYTIMES, few)
    small = rules(knowledge={"pack_bytes": 100}).knowledge
    with pytest.raises(InvalidInput, match="more than 100 bytes"):
        read_pack(path, DIMENSIONS, DAYTIMES, small)


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"none\.jsonl: cannot be read"):
        read_pack(tmp_path / "none.jsonl", DIMENSIONS, DAYTIMES, RULES)
    latin = tmp_path / "latin.jsonl"
    latin.write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_pack(latin, DIMENSIONS, DAYTIMES, RULES)


def test_the_sample_pack_holds_together() -> None:
    dimensions = load_dimensions(files("configs").joinpath("dimensions.toml"))
    sample = Path(str(files("configs").joinpath("knowledge", "everyday.jsonl")))
    pack = read_pack(sample, dimensions, DAYTIMES, RULES)
    assert len(pack.entries) >= 40
    assert all(set(entry.content) == set(entry.cues) == {"zh", "en"} for entry in pack.entries)
    spoken = " ".join(pack.passages)
    assert "用户" not in spoken
    assert "user" not in spoken.split()
