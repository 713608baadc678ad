"""What `make test` tries twice, and what it never does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import second_try

FLAKY = "tests/cluster/test_http.py::test_it"


@pytest.fixture
def runs() -> list[list[str]]:
    """What pytest was asked; ``play`` says how it went."""
    return []


def play(monkeypatch: pytest.MonkeyPatch, asked: list[list[str]], *tries: list[str]) -> int:
    """One list of failed tests per try."""
    left = list(tries)

    def run(arguments: list[str], cache: Path) -> int:
        asked.append(arguments)
        failed = left.pop(0)
        (cache / "v" / "cache").mkdir(parents=True)
        (cache / "v" / "cache" / "lastfailed").write_text(json.dumps(dict.fromkeys(failed, True)))
        return 1 if failed else 0

    monkeypatch.setattr(second_try, "run", run)
    return second_try.main(["-n", "2", "tests/cluster"])


def test_a_failure_that_does_not_come_back_is_named(
    monkeypatch: pytest.MonkeyPatch, runs: list[list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STAGES_REMARK", str(tmp_path / "remark"))
    assert play(monkeypatch, runs, [FLAKY], []) == 0
    assert runs == [["-n", "2", "tests/cluster"], ["tests/cluster/test_http.py"]]
    assert (tmp_path / "remark").read_text() == "1 failed at first: test_it"
    assert "1 failed at first: test_it" in capsys.readouterr().out


def test_one_that_comes_back_fails(monkeypatch: pytest.MonkeyPatch, runs: list[list[str]]) -> None:
    assert play(monkeypatch, runs, [FLAKY], [FLAKY]) == 1


def test_what_passes_runs_once(monkeypatch: pytest.MonkeyPatch, runs: list[list[str]]) -> None:
    assert play(monkeypatch, runs, []) == 0
    assert len(runs) == 1


@pytest.mark.parametrize(
    "failed",
    [
        ["tests/unit/test_life.py::test_it"],
        ["tests/property/test_recall.py::test_it"],
        [FLAKY, "tests/unit/test_life.py::test_it"],
        [f"{FLAKY}_{number}" for number in range(second_try.AT_MOST + 1)],
    ],
    ids=["a rule", "a property", "a rule among them", "many"],
)
def test_never_twice(monkeypatch: pytest.MonkeyPatch, runs: list[list[str]], failed: list[str]) -> None:
    assert play(monkeypatch, runs, failed) == 1
    assert len(runs) == 1


def test_it_reads_what_pytest_writes(tmp_path: Path) -> None:
    (tmp_path / "test_of_mine.py").write_text("def test_that_fails():\n    assert False\n")
    assert second_try.run([str(tmp_path), "-q", "-p", "no:cacheprovider"], tmp_path / "none") == 1
    assert second_try.failed_in(tmp_path / "none") == []
    assert second_try.run([str(tmp_path), "-q"], tmp_path / "cache") == 1
    (failed,) = second_try.failed_in(tmp_path / "cache")
    assert failed.endswith("::test_that_fails")
