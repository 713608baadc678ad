"""Play the black-box cases against a server of our own, then stop it and see that nothing is left.

    .venv/bin/python tests/run_cases.py --at-least 24 [--only CASE_ID] [--cluster]

With ``--cluster`` the server works on a real Redis and a real Weaviate of its own. CASES_DIR names the folder with `run.py` and `cases.yaml` (default ../shared/cases). Exits 1 if fewer than
`--at-least` cases pass, if the server does not come up or does not go down, or if a process of it is left.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import psutil

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
READY_S = 90
STOP_S = 60
GRACE_S = 10  # children of a stopped server end a moment after it
LOG_TAIL_LINES = 80


class CasesError(Exception):
    """What went wrong, in a sentence for the person who reads the log."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def tail(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(["--- the server's log", *lines[-LOG_TAIL_LINES:], "---"])


def left_behind(data: Path) -> list[psutil.Process]:
    """The processes whose environment names this run's data folder, other than our own."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and process.environ().get("HERMES_DATA_DIR") == str(data):
                found.append(process)
    return found


def wait_ready(server: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + READY_S
    answer = "no answer"
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise CasesError(f"the server ended with {server.returncode} before it was ready")
        try:
            response = httpx.get(f"{url}/readyz", timeout=5, trust_env=False)
        except httpx.HTTPError as error:
            answer = f"{type(error).__name__}: {error}"
        else:
            if response.status_code == httpx.codes.OK:
                return
            answer = f"{response.status_code} {response.text[:200]}"
        time.sleep(0.2)
    raise CasesError(f"not ready after {READY_S} s; last: {answer}")


def stop(server: subprocess.Popen[bytes], data: Path) -> None:
    """End the server as Ctrl-C does and make sure that it took everything with it."""
    if server.poll() is not None:
        raise CasesError(f"the server ended by itself with {server.returncode}")
    begin = time.monotonic()
    server.send_signal(signal.SIGINT)
    try:
        server.wait(STOP_S)
    except subprocess.TimeoutExpired:
        raise CasesError(f"the server still runs {STOP_S} s after SIGINT") from None
    print(f"server stopped with {server.returncode} after {time.monotonic() - begin:.1f} s", flush=True)
    deadline = time.monotonic() + GRACE_S
    while (left := left_behind(data)) and time.monotonic() < deadline:
        time.sleep(0.2)
    if left:
        names = [f"{process.pid} {process.name()}" for process in left if process.is_running()]
        raise CasesError(f"processes of the server are left: {names}")


def kill_rest(server: subprocess.Popen[bytes], data: Path) -> None:
    """Whatever happened, leave nothing running."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGKILL)
    for process in left_behind(data):
        with contextlib.suppress(psutil.Error):
            process.kill()
    server.wait()


@contextlib.contextmanager
def services(folder: Path) -> Iterator[str]:
    """A real Redis and a real Weaviate; the configuration that names them, as TOML."""
    from tests.servers import RedisServer, WeaviateServer  # only where they are wanted

    with RedisServer(folder / "redis") as redis, WeaviateServer(folder / "weaviate") as weaviate:
        yield (
            f'[ledger]\nkind = "redis"\nurl = "{redis.url}"\n'
            f'[index]\nkind = "weaviate"\nurl = "{weaviate.url}"\ngrpc_port = {weaviate.grpc_port}\n'
        )


@contextlib.contextmanager
def running_server(folder: Path, config: str = "") -> Iterator[str]:
    """A server on a free port with an empty data folder; its log is printed if anything goes wrong."""
    data, log, port = folder / "data", folder / "server.log", free_port()
    data.mkdir()
    written = folder / "cluster.toml"
    written.write_text(config, encoding="utf-8")
    hermes = Path(sys.executable).with_name("hermes")
    if not hermes.exists():
        raise CasesError(f"{hermes} is missing: make install")
    env = os.environ | {"HERMES_DATA_DIR": str(data), "PYTHONUNBUFFERED": "1"}
    with log.open("wb") as output:
        server = subprocess.Popen(
            [hermes, "serve", "--port", str(port), "--data", str(data), "--config", str(written)],
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            env=env, cwd=ROOT, start_new_session=True,
        )  # fmt: skip
        url = f"http://127.0.0.1:{port}"
        try:
            begin = time.monotonic()
            wait_ready(server, url)
            print(f"server ready at {url} after {time.monotonic() - begin:.1f} s", flush=True)
            yield url
            stop(server, data)
        except CasesError:
            print(tail(log), flush=True)
            raise
        finally:
            kill_rest(server, data)


def play(cases: Path, url: str, only: list[str], limit_s: float) -> int:
    """Run the case runner, pass its output on, and return how many cases passed."""
    command = [sys.executable, str(cases / "run.py"), "--url", url, str(cases / "cases.yaml")]
    for case in only:
        command += ["--only", case]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as runner:
        assert runner.stdout is not None
        counted = None
        limit = threading.Timer(limit_s, runner.kill)
        limit.start()
        for line in runner.stdout:
            print(line, end="", flush=True)
            counted = re.match(r"(\d+) passed, (\d+) failed", line) or counted
        limit.cancel()
    if counted is None:
        raise CasesError(
            f"the case runner ended with {runner.returncode} and no closing line (limit {limit_s} s)"
        )
    return int(counted[1])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--at-least", type=int, default=24, help="how many cases must pass")
    parser.add_argument("--only", action="append", default=[], help="a case's id; may be repeated")
    parser.add_argument("--cluster", action="store_true", help="on a real Redis and a real Weaviate")
    parser.add_argument("--limit-s", type=float, default=600, help="time for all the cases together")
    args = parser.parse_args()
    cases = (ROOT / os.environ.get("CASES_DIR", "../shared/cases")).resolve()
    if not (cases / "run.py").is_file():
        print(f"no case files at {cases} (CASES_DIR names another folder)", flush=True)
        return 1 if os.environ.get("CI") == "true" else 0
    wanted = min(args.at_least, len(args.only)) if args.only else args.at_least
    try:
        with (
            tempfile.TemporaryDirectory(prefix="hermes-cases-", ignore_cleanup_errors=True) as folder,
            services(Path(folder)) if args.cluster else contextlib.nullcontext("") as config,
            running_server(Path(folder), config) as url,
        ):
            passed = play(cases, url, args.only, args.limit_s)
    except CasesError as error:
        print(f"FAILED: {error}", flush=True)
        return 1
    if passed < wanted:
        print(f"FAILED: {passed} cases passed, at least {wanted} must", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
