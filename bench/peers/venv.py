"""``python -m bench.peers.venv``: the peers' environment, made with uv in the project's cache, once for each lock.

What is listed there is for measuring against, nothing that the product or its tests need.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.peers.tokens import Count
from bench.report import ROOT
from hermes_cli.services.cache import cache_folder, only_one

REQUIREMENTS = Path(__file__).parent / "requirements.txt"
ALONE = ("dashscope",)  # installed without what it asks for: only a file of it is read
MISSING = "no peers' environment: make peers-install"


@dataclass(frozen=True, slots=True)
class Call:
    """What a language model was asked, and what it answered. ``form``: the answer's form, where one was asked for."""

    messages: tuple[dict[str, str], ...]
    answer: str
    form: str = ""


def folder() -> Path:
    """Where the environment is, or would be."""
    named = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:12]
    return cache_folder() / "bench-peers" / named


def interpreter() -> Path | None:
    """The peers' interpreter; None where nothing is installed."""
    python = folder() / "bin" / "python"
    return python if (folder() / "installed").exists() and python.exists() else None


def install() -> None:
    """Make the environment unless it is there."""
    with only_one("bench-peers", print):
        if interpreter() is not None:
            print(f"the peers are installed: {folder()}")
            return
        uv = str(Path(sys.executable).parent / "uv")
        uv = uv if Path(uv).exists() else shutil.which("uv") or "uv"
        lines = [
            line.partition("#")[0].strip() for line in REQUIREMENTS.read_text(encoding="utf-8").splitlines()
        ]
        wanted = [line for line in lines if line]
        alone = [line for line in wanted if line.partition("==")[0] in ALONE]
        shutil.rmtree(folder(), ignore_errors=True)
        subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(folder())], check=True)
        pip = [uv, "pip", "install", "--python", str(folder() / "bin" / "python")]
        subprocess.run([*pip, *(line for line in wanted if line not in alone)], check=True)
        subprocess.run([*pip, "--no-deps", *alone], check=True)
        (folder() / "installed").touch()
        print(f"the peers are installed: {folder()}")


def count(python: Path, calls: Iterable[tuple[str, Call]]) -> list[Count]:
    """The tokens of each call; calls with the same name share a prefix cache, in their order."""
    lines = [
        json.dumps({"cache": name, "messages": call.messages, "answer": call.answer}) for name, call in calls
    ]
    done = subprocess.run(
        [python, "-m", "bench.peers.count"], input="\n".join(lines), capture_output=True, text=True, check=True,
        cwd=ROOT, env=environment(),
    )  # fmt: skip
    counts: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    return [Count(**one) for one in counts]


def environment() -> dict[str, str]:
    """Of a peer's process: no proxy between it and this machine, no key of anybody's, no address of another service."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("OPENAI", "OPENROUTER"))
    }
    return {**kept, "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}


if __name__ == "__main__":
    install()
