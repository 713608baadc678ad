"""Placement ``dedicated``: one Ray actor for each user, behind the same interface."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil

from tests.cluster.harness import ServerProcess, records, say

CONFIG = """
[actors]
placement = "dedicated"
"""


def test_every_user_has_an_actor_that_comes_back_after_a_kill(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", CONFIG)
    server.start()
    with server.client() as http:
        say(http, "ana", "I'm allergic to peanuts.", "s-ana")
        say(http, "bo", "我住在苏州。", "s-bo")
        hosts = _user_actors(server)
        assert len(hosts) == 2, "one process for each user"
        for process in hosts:
            os.kill(process.pid, signal.SIGKILL)
        assert "peanuts" in records(http, "ana")[0]["content"]
        say(http, "bo", "我养了一只柯基。", "s-bo")
        assert {"苏州", "柯基"} <= {
            word for m in records(http, "bo") for word in ("苏州", "柯基") if word in m["content"]
        }
    assert server.stop() == 0


def _user_actors(server: ServerProcess) -> list[psutil.Process]:
    return [process for process in server.family() if "UserActorHost" in " ".join(process.cmdline())]
