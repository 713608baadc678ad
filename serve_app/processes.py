"""The processes of one server: how they are recognised, and how what a killed run left behind is reaped.

Every process that a server starts inherits ``HERMES_RUN_ID`` and ``HERMES_DATA_DIR``. Ray's own processes leave
the process group, so the environment is what tells whose they are.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import psutil

RUN_ID, DATA_DIR = "HERMES_RUN_ID", "HERMES_DATA_DIR"


def of_data(data: Path, *, besides: str | None = None) -> list[psutil.Process]:
    """The living processes of servers on ``data``, without those of the run ``besides`` and without this one."""
    found = []
    ours = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    for process in psutil.process_iter():
        if process.pid in ours:
            continue
        environment = _environment(process)
        if environment.get(DATA_DIR) == str(data) and environment.get(RUN_ID, besides) != besides:
            found.append(process)
    return found


def of_run(run_id: str) -> list[psutil.Process]:
    """The living processes that a run has started, without this one."""
    mine = os.getpid()
    return [p for p in psutil.process_iter() if p.pid != mine and _environment(p).get(RUN_ID) == run_id]


def reap(processes: list[psutil.Process], patience_s: float) -> int:
    """End processes: politely first, by force after ``patience_s``. Returns how many there were."""
    for process in processes:
        _signal(process, force=False)
    _, alive = psutil.wait_procs(processes, timeout=patience_s)
    for process in alive:
        _signal(process, force=True)
    psutil.wait_procs(alive, timeout=patience_s)
    return len(processes)


def wait_until_gone(run_id: str, patience_s: float) -> list[psutil.Process]:
    """What is still there of a run after ``patience_s``, at most."""
    until = time.monotonic() + patience_s
    while (left := of_run(run_id)) and time.monotonic() < until:
        time.sleep(0.1)
    return left


def _environment(process: psutil.Process) -> dict[str, str]:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return {}
        return dict(process.environ())
    except (psutil.Error, OSError):
        return {}


def _signal(process: psutil.Process, *, force: bool) -> None:
    try:
        process.kill() if force else process.terminate()
    except psutil.NoSuchProcess:
        return
