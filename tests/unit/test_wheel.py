"""The installed wheel works without the checkout: nothing that a run needs is missing in it (ADR 1)."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
import hermes_memory, configs, serve_app, actors, hermes_cli, jobs
from hermes_memory.config import load_settings
from hermes_memory.wiring import build_policy
from hermes_memory.adapters.rule_extractor import load_rule_extractor

assert all(module.__file__.startswith(sys.argv[1]) for module in (hermes_memory, configs, serve_app, hermes_cli))
policy = build_policy(load_settings())
assert policy.words("我对花生过敏") and len(list(policy.dimensions)) > 60
assert load_rule_extractor(policy.dimensions).name
from hermes_memory.adapters.sqlite_ledger import SqliteLedger
print("fine")
"""


@pytest.mark.slow
def test_the_wheel_runs_outside_the_checkout(tmp_path: Path) -> None:
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path / "dist"), versions=["standard"])
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
        names = archive.namelist()
    assert not [name for name in names if name.startswith(("tests/", "bench/"))]
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(installed)],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(installed)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.stdout.strip() == "fine", ran.stderr
