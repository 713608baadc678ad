"""vLLM names its processes; that shall not hide whose they are."""

from __future__ import annotations

import os
import subprocess
import sys

from hermes_memory.adapters.vllm_engine import ENVIRONMENT
from serve_app.processes import RUN_ID

NAMED = "import setproctitle; setproctitle.setproctitle('VLLM::EngineCore'); print(open('/proc/self/environ').read())"


def test_an_engine_that_outlives_its_replica_is_found_by_the_run_that_started_it() -> None:
    """A title is written over the environment, by which the processes of a server are recognised and reaped."""
    environment = {**os.environ, **ENVIRONMENT, RUN_ID: "run-7"}
    told = subprocess.run(
        [sys.executable, "-c", NAMED], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert f"{RUN_ID}=run-7" in told.stdout
