"""A real server for the demo: ``hermes serve`` as a child, on a free port and a directory that goes with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import IO

from hermes_cli.serving import READY
from hermes_memory.errors import HermesError
from serve_app import processes

START_S = 180.0
STOP_S = 60.0
REAP_S = 5.0


class NoServer(HermesError):
    """The server ended, or took too long, before it answered."""

    code = "no_server"

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return f"the server did not come up: {self.why}"


@contextmanager
def running(say: Callable[[str], None]) -> Iterator[str]:
    """The URL of a server of our own; ``say`` is told its steps. Nothing of it is left afterwards.

    Raises:
        NoServer: it did not come up.
    """
    with (
        tempfile.TemporaryDirectory(prefix="hermes-demo-", ignore_cleanup_errors=True) as folder,
        _sigterm_exits(),
    ):
        data = Path(folder).resolve() / "data"
        with (Path(folder) / "server.err").open("w+", encoding="utf-8") as errors:
            child = _start(data, errors)
            try:
                yield _url(child, errors, say)
                say("stopping the server")
            finally:
                _stop(child, data)


def _start(data: Path, errors: IO[str]) -> subprocess.Popen[str]:
    ours = {processes.RUN_ID, processes.DATA_DIR}
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    return subprocess.Popen(
        [sys.executable, "-m", "hermes_cli", "serve", "--port", "0", "--data", str(data)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True, encoding="utf-8", env=environment,
    )  # fmt: skip


def _url(child: subprocess.Popen[str], errors: IO[str], say: Callable[[str], None]) -> str:
    limit = threading.Timer(START_S, child.terminate)
    limit.daemon = True
    limit.start()
    try:
        for line in child.stdout or ():
            if line.startswith(READY):
                return line.removeprefix(READY).split()[0]
            say(line.strip())
    finally:
        limit.cancel()
    child.wait()
    errors.seek(0)
    last = errors.read().strip().splitlines()[-1:] or [f"it ended with {child.returncode}"]
    raise NoServer(last[0])


def _stop(child: subprocess.Popen[str], data: Path) -> None:
    """End it as SIGTERM does, and whatever happens see that nothing is left."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the child is stopping; one more would help nobody
    try:
        if child.poll() is None:
            child.terminate()
        child.communicate(timeout=STOP_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
    finally:
        processes.reap(processes.of_data(data), REAP_S)
        signal.signal(signal.SIGINT, before)


@contextmanager
def _sigterm_exits() -> Iterator[None]:
    """A SIGTERM unwinds like Ctrl-C does, so that the server is stopped."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
