"""Runs pytest; where only tests with processes or servers of their own failed, runs their files once more, alone.

    python -m tests.second_try [PYTEST ARGUMENTS]

Those tests wait for real processes on a machine that others use as well. A failure that does not come back is named in
the output and in the table of stages; one that does fails the stage. A test of a rule is never tried twice, and neither
are more than a few failures at once: those are no accident.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

AT_MOST = 3  # failed tests
WITH_PROCESSES = ("tests/cluster/", "tests/engine/", "tests/runtime/", "tests/conformance/")
FAILED = 1  # pytest's exit status when it ran and tests failed


def run(arguments: list[str], cache: Path) -> int:
    """pytest's exit status; what failed is in ``cache``."""
    command = [sys.executable, "-m", "pytest", "-o", f"cache_dir={cache}", *arguments]
    return subprocess.run(command, check=False).returncode


def failed_in(cache: Path) -> list[str]:
    """The ids of the tests that failed."""
    found = cache / "v" / "cache" / "lastfailed"
    return sorted(json.loads(found.read_text())) if found.exists() else []


def may_be_tried_again(failed: list[str]) -> bool:
    return 0 < len(failed) <= AT_MOST and all(test.startswith(WITH_PROCESSES) for test in failed)


def main(arguments: list[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        first = Path(folder) / "first"
        status = run(arguments, first)
        failed = failed_in(first)
        if status != FAILED or not may_be_tried_again(failed):
            return status
        files = sorted({test.split("::")[0] for test in failed})
        print(f"\n==> second try of {' '.join(files)}", flush=True)
        again = run(files, Path(folder) / "second")
    said = f"{len(failed)} failed at first: {', '.join(test.rsplit('::', 1)[-1] for test in failed)}"
    print(f"\nsecond try: {'passed' if again == 0 else 'failed too'}; {said}", flush=True)
    if again == 0 and (remark := os.environ.get("STAGES_REMARK")):
        Path(remark).write_text(said)
    return again


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
