"""Server processes: started, recognised later by more than their number, waited for, ended."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from hermes_cli.services.errors import PortTaken, StartFailed

POLL_S = 0.05
LOG_TAIL = 2000
BOOT = Path("/proc/sys/kernel/random/boot_id")
TAKEN = ("address already in use", "address in use")


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How one server is started, and how it is known to answer."""

    name: str
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path
    ready_s: float
    answers: Callable[[int], bool]
    """Whether the server with this process id answers now."""

    @property
    def log(self) -> Path:
        """What it writes."""
        return self.folder.parent / f"{self.folder.name}.log"


@dataclass(frozen=True, slots=True)
class Mark:
    """A process by its number and its birth: numbers are used again, also after a restart of the machine."""

    pid: int
    birth: str

    @property
    def alive(self) -> bool:
        """Whether that very process still runs."""
        return bool(self.birth) and birth_of(self.pid) == self.birth


def birth_of(pid: int) -> str:
    """When a process was born, in a form that no change of the clock moves; empty if there is none."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return ""
        if not BOOT.exists():
            return str(process.create_time())
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (psutil.Error, OSError, ValueError):
        return ""
    ticks = stat.rpartition(")")[2].split()[19]  # the 22nd field; the second is a name in brackets
    return f"{BOOT.read_text(encoding='ascii').strip()}:{ticks}"


def spawn(launch: Launch) -> subprocess.Popen[bytes]:
    """Start it in a process group of its own, with its output in its log.

    Raises:
        StartFailed: the program cannot be run at all.
    """
    launch.folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, **launch.environment}
    try:
        with launch.log.open("ab") as log:
            return subprocess.Popen(
                launch.argv, env=environment, cwd=launch.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
    except OSError as error:
        problem = f"{launch.argv[0]} cannot be run: {error.strerror or error}"
        raise StartFailed(launch.name, problem) from None


def start(launch: Launch, spawned: Callable[[Mark], None] = lambda mark: None) -> subprocess.Popen[bytes]:
    """Start it and wait until it answers; ``spawned`` hears of the process before the wait.

    Raises:
        PortTaken: somebody else has one of its ports.
        StartFailed: it ended, or did not answer in time; it does not run then.
    """
    before = launch.log.stat().st_size if launch.log.exists() else 0
    process = spawn(launch)
    try:
        spawned(Mark(process.pid, birth_of(process.pid)))
        wait_ready(launch, process, before)
    except BaseException:
        process.kill()
        process.wait()
        raise
    return process


def wait_ready(launch: Launch, process: subprocess.Popen[bytes], log_before: int = 0) -> None:
    """Wait until it answers, at most its ``ready_s``."""
    deadline = time.monotonic() + launch.ready_s
    while time.monotonic() < deadline:
        answered = launch.answers(process.pid)
        if (status := process.poll()) is not None:
            said = said_since(launch.log, log_before)
            taken = any(word in said.lower() for word in TAKEN)
            problem = "one of its ports is taken" if taken else f"ended with status {status}"
            raise (PortTaken if taken else StartFailed)(launch.name, f"{problem}: {launch.argv[0]}", said)
        if answered:
            return
        time.sleep(POLL_S)
    said = said_since(launch.log, log_before)
    raise StartFailed(launch.name, f"does not answer after {launch.ready_s:.0f} s: {launch.argv[0]}", said)


def said_since(log: Path, before: int) -> str:
    """The end of what a server wrote after the first ``before`` bytes of its log."""
    try:
        written = log.read_bytes()[before:]
    except OSError:
        return ""
    return written[-LOG_TAIL:].decode("utf-8", errors="replace").strip()


def end(mark: Mark, stop_s: float) -> bool:
    """SIGTERM, and SIGKILL after ``stop_s``; True if the server stopped by itself, or was gone already."""
    for number, patience_s in ((signal.SIGTERM, stop_s), (signal.SIGKILL, stop_s)):
        if not mark.alive:
            return number == signal.SIGTERM
        try:
            os.kill(mark.pid, number)
            os.kill(mark.pid, signal.SIGCONT)  # a stopped process hears nothing else
        except ProcessLookupError:
            continue
        if wait_gone(mark, patience_s):
            return number == signal.SIGTERM
    return False


def wait_gone(mark: Mark, patience_s: float) -> bool:
    """Whether the process is gone within ``patience_s``."""
    deadline = time.monotonic() + patience_s
    while mark.alive:
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_S)
    return True
