"""A server that is killed loses nothing acknowledged, and the next one starts on the same data.

The last one has the placement ``dedicated``: one Ray actor for each user, behind the same interface. A start takes long,
so there is none of its own for that.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import httpx
import psutil

from tests.cluster.harness import ServerProcess, records, say

DEDICATED = """
[actors]
placement = "dedicated"
"""


def test_sigkill_and_start_again_on_the_same_data(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    server.start()
    with server.client() as http:
        say(http, "ana", "I'm allergic to peanuts.", "s1")
        pending = http.post(
            "/v1/users/ana/messages",
            json={
                "session_id": "s1",
                "messages": [{"id": "late", "role": "user", "content": "I live in Porto."}],
            },
        )
        assert pending.status_code == 202
    _second_server_is_refused(server)

    server.kill()  # the driver alone: Ray's processes are orphans for a while
    server.start()
    with server.client() as http:
        job = pending.json()["job_id"]
        _wait_done(http, job)
        contents = " ".join(memory["content"] for memory in records(http, "ana"))
        assert "peanuts" in contents
        assert "Porto" in contents, "a turn that was acknowledged but not yet read when the server died"
        for pid in server.host_pids():
            os.kill(pid, signal.SIGKILL)
        assert "peanuts" in " ".join(memory["content"] for memory in records(http, "ana"))
        say(http, "ana", "I play the cello.", "s2")

    server.kill_group()
    server.config = DEDICATED
    server.start()
    with server.client() as http:
        contents = " ".join(memory["content"] for memory in records(http, "ana"))
        assert "peanuts" in contents
        assert "cello" in contents
        _every_user_has_an_actor_that_comes_back_after_a_kill(server, http)
    assert server.stop() == 0
    assert _gone(server), "processes are left after a clean stop"


def _every_user_has_an_actor_that_comes_back_after_a_kill(server: ServerProcess, http: httpx.Client) -> None:
    say(http, "bo", "我住在苏州。", "s-bo")
    hosts = [process for process in server.family() if "UserActorHost" in " ".join(process.cmdline())]
    assert len(hosts) == 2, "one process for each user"
    for process in hosts:
        os.kill(process.pid, signal.SIGKILL)
    assert "peanuts" in " ".join(memory["content"] for memory in records(http, "ana"))
    say(http, "bo", "我养了一只柯基。", "s-bo")
    contents = " ".join(memory["content"] for memory in records(http, "bo"))
    assert "苏州" in contents
    assert "柯基" in contents
    assert not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in hosts)


def _second_server_is_refused(first: ServerProcess) -> None:
    second = ServerProcess(first.data)
    process = second.spawn()
    assert process.wait(30) == 2
    log = second.log.read_text(encoding="utf-8")
    assert "in use" in log
    assert "Traceback" not in log


def _wait_done(http: httpx.Client, job_id: str) -> None:
    deadline, status = time.monotonic() + 30, "unknown"
    while status != "done" and time.monotonic() < deadline:
        time.sleep(0.2)
        status = http.get(f"/v1/jobs/{job_id}").json()["status"]
    assert status == "done", "the job of before the crash does not end"


def _gone(server: ServerProcess) -> bool:
    deadline = time.monotonic() + 10
    while server.family() and time.monotonic() < deadline:
        time.sleep(0.2)
    return not server.family()
