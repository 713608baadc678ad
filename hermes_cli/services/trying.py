"""Running the programs that get a server: bounded in time, and a failure is one sentence."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from hermes_cli.services.cache import Tell

SAID = 400
POLL_S = 0.5
TELL_EVERY_S = 30.0


class WayFailed(Exception):  # never leaves this package
    """One way to get a server does not work here; the text says why."""


def run(argv: Sequence[str | Path], *, folder: Path, limit_s: float, **environment: str) -> str:
    """The standard output of a program that ran to its end in ``folder``.

    Raises:
        WayFailed: there is no such program, it failed, or took longer than ``limit_s``.
    """
    try:
        done = subprocess.run(
            argv, cwd=folder, capture_output=True, text=True, errors="replace", timeout=limit_s, check=False,
            stdin=subprocess.DEVNULL, env={**os.environ, "LC_ALL": "C", **environment},
        )  # fmt: skip
    except OSError as error:
        raise WayFailed(f"{argv[0]} cannot be run: {error.strerror or error}") from None
    except subprocess.TimeoutExpired:
        raise WayFailed(f"{argv[0]} did not end within {limit_s:.0f} s") from None
    if done.returncode:
        raise WayFailed(f"{argv[0]} failed: {_end(done.stderr or done.stdout)}")
    return done.stdout


def run_long(
    argv: Sequence[str | Path],
    *,
    log: Path,
    limit_s: float,
    environment: Mapping[str, str],
    tell: Tell,
    what: str,
) -> None:
    """As ``run``, for minutes: the output goes to ``log``, and ``tell`` hears twice a minute how far it is.

    Raises:
        WayFailed: it cannot be run, it failed, or took longer than ``limit_s``.
    """
    began = told = time.monotonic()
    try:
        with log.open("wb") as output:
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
                env={**os.environ, **environment},
            )  # fmt: skip
    except OSError as error:
        raise WayFailed(f"{argv[0]} cannot be run: {error.strerror or error}") from None
    try:
        while (status := _status(process)) is None:
            now = time.monotonic()
            if now - began > limit_s:
                raise WayFailed(f"{what} did not end within {limit_s / 60:.0f} minutes; see {log}")
            if now - told >= TELL_EVERY_S:
                told = now
                tell(f"{what}: {(now - began) / 60:.1f} minutes so far, {_lines(log)} steps done")
    finally:
        if process.poll() is None:  # the build's own children too
            os.killpg(process.pid, 9)
            process.wait()
    if status:
        raise WayFailed(
            f"{what} failed: {_end(log.read_text(encoding='utf-8', errors='replace'))} (all of it: {log})"
        )


def _status(process: subprocess.Popen[bytes]) -> int | None:
    try:
        return process.wait(POLL_S)
    except subprocess.TimeoutExpired:
        return None


def _lines(log: Path) -> int:
    return log.read_bytes().count(b"\n")


def _end(said: str) -> str:
    return " ".join(said.split())[-SAID:] or "it says nothing"
