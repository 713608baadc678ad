"""What `hermes services` starts, recognises later and ends; with programs that only sleep in the servers' place."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from hermes_cli.services import processes, running, state
from hermes_cli.services.cache import Tell
from hermes_cli.services.errors import PortTaken, ServiceError, StartFailed
from hermes_cli.services.finding import Program
from hermes_cli.services.kinds import Ports, RedisKind, WeaviateKind
from hermes_cli.services.ports import free_run, is_free
from hermes_cli.services.processes import Launch, Mark, birth_of
from hermes_cli.services.redis_server import process_behind
from hermes_cli.services.running import Services
from hermes_cli.services.settings import PortRange, service_settings
from hermes_cli.services.state import Address

RANGE = PortRange(lowest=20000, highest=29999, attempts=3)
SLEEP = "exec sleep 60"
TAKEN = "echo 'bind: Address already in use' >&2; exit 1"


@dataclass
class Sleeper:
    """A kind of server that runs ``body`` and answers when ``answering`` says so."""

    name: str = "sleeper"
    body: str = SLEEP
    stop_s: float = 5.0
    ready_s: float = 5.0
    answering: Callable[[int], bool] = psutil.pid_exists
    key_env: str = ""
    got: int = 0
    chosen: list[int] = field(default_factory=list)

    def get(self, tell: Tell) -> Program:
        self.got += 1
        return Program(Path("/bin/sh"), "on the PATH")

    def choose(self, wanted: int | None) -> Ports:
        if wanted is not None and not is_free(wanted):
            raise PortTaken(self.name, f"port {wanted} is taken by another program")
        self.chosen.append(wanted or free_run(1, RANGE)[0])
        return {"port": self.chosen[-1]}

    def launch(self, program: Path, folder: Path, ports: Ports) -> Launch:
        return Launch(
            name=self.name, argv=(str(program), "-c", self.body), environment={}, folder=folder,
            ready_s=self.ready_s, answers=self.answering,
        )  # fmt: skip

    def address(self, ports: Ports) -> Address:
        return Address(f"sleep://127.0.0.1:{ports['port']}", key_env=self.key_env)

    def elsewhere(self) -> Address | None:
        return None


@pytest.fixture
def kind() -> Sleeper:
    return Sleeper()


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def services(tmp_path: Path, kind: Sleeper, said: list[str]) -> Iterator[Services]:
    made = Services(tmp_path, [kind], RANGE.attempts, said.append)
    yield made
    (tmp_path / state.FILE).unlink(missing_ok=True)
    while running._STARTED:
        process = running._STARTED.pop()
        process.kill()
        process.wait()


def test_a_start_a_second_one_and_a_stop(services: Services, kind: Sleeper) -> None:
    (first,) = services.start({})
    assert (first.state, first.usable) == ("started", True)
    (again,) = services.start({})
    assert (again.state, again.pid, again.address) == ("running", first.pid, first.address)
    assert kind.got == 1
    assert first.pid is not None
    assert os.getpgid(first.pid) == first.pid  # Ctrl-C in the terminal does not reach it
    assert services.status()[0].memory_bytes > 0
    (gone,) = services.stop()
    assert (gone.state, gone.usable) == ("stopped", False)
    assert not birth_of(first.pid)
    assert services.status()[0].state == "stopped"
    assert services.stop()[0].state == "stopped"


def test_the_next_start_takes_the_same_port(services: Services, kind: Sleeper) -> None:
    (first,) = services.start({})
    services.stop()
    (second,) = services.start({})
    assert second.address == first.address
    assert second.pid != first.pid
    assert len(kind.chosen) == 1


def test_a_port_of_last_time_that_is_taken_now_gives_way(
    services: Services, kind: Sleeper, said: list[str]
) -> None:
    services.start({})
    services.stop()
    with socket.socket() as other:
        other.bind(("127.0.0.1", kind.chosen[0]))
        other.listen()
        (second,) = services.start({})
    assert second.address == Address(f"sleep://127.0.0.1:{kind.chosen[1]}")
    assert any("is taken; choosing others" in line for line in said)


@pytest.mark.parametrize("kind", [RedisKind(service_settings()), WeaviateKind(service_settings()), Sleeper()])
def test_a_port_that_was_asked_for_and_is_taken_is_an_error(kind: Sleeper) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(PortTaken, match=f"port {port} is taken"):
            kind.choose(port)


def test_a_port_that_was_asked_for_is_had(services: Services) -> None:
    (port,) = free_run(1, RANGE)
    assert services.start({"sleeper": port})[0].address == Address(f"sleep://127.0.0.1:{port}")


def test_asking_a_running_server_for_another_port_changes_nothing(
    services: Services, said: list[str]
) -> None:
    (first,) = services.start({})
    (second,) = services.start({"sleeper": 1})
    assert second.address == first.address
    assert any("keeps its port" in line for line in said)


def test_a_running_server_keeps_asking_for_what_it_asked_for(
    services: Services, kind: Sleeper, said: list[str]
) -> None:
    services.start({})
    kind.key_env = "A_KEY"
    (second,) = services.start({})
    assert second.address is not None
    assert second.address.key_env == ""
    assert any("as it was started" in line for line in said)
    services.stop()
    (third,) = services.start({})
    assert third.address is not None
    assert third.address.key_env == "A_KEY"


def test_somebody_faster_on_the_port_costs_another_try(
    services: Services, kind: Sleeper, tmp_path: Path, said: list[str]
) -> None:
    kind.body = f"[ -e {tmp_path}/second ] && {SLEEP}; touch {tmp_path}/second; {TAKEN}"
    kind.answering = lambda pid: psutil.Process(pid).name() == "sleep"
    (standing,) = services.start({})
    assert standing.state == "started"
    assert len(kind.chosen) == 2
    assert any("faster" in line for line in said)


def test_ports_that_are_always_taken_end_it(services: Services, kind: Sleeper) -> None:
    kind.body, kind.answering = TAKEN, lambda pid: False
    with pytest.raises(PortTaken) as caught:
        services.start({})
    assert len(kind.chosen) == RANGE.attempts
    assert "Address already in use" in caught.value.detail


def test_a_server_that_ends_says_what_it_wrote(services: Services, kind: Sleeper) -> None:
    kind.body, kind.answering = "echo earlier; echo 'no such option' >&2; exit 7", lambda pid: False
    for _ in range(2):
        with pytest.raises(StartFailed) as caught:
            services.start({})
        assert "ended with status 7" in caught.value.detail
        assert caught.value.log == "earlier\nno such option"  # of this start only
    assert services.status()[0].state == "stopped"


def test_a_server_that_never_answers_is_ended(services: Services, kind: Sleeper) -> None:
    marks: list[Mark] = []

    def silent(pid: int) -> bool:
        marks.append(Mark(pid, birth_of(pid)))
        return False

    kind.answering = silent
    kind.ready_s = 0.2
    with pytest.raises(StartFailed, match="does not answer after"):
        services.start({})
    assert marks
    assert not marks[0].alive


def test_a_program_that_cannot_be_run_is_named(tmp_path: Path) -> None:
    launch = Sleeper().launch(tmp_path / "missing", tmp_path / "data", {"port": 1})
    with pytest.raises(StartFailed, match="missing cannot be run: No such file"):
        processes.start(launch)


def test_a_server_that_runs_and_does_not_answer_is_told_and_can_be_stopped(
    services: Services, kind: Sleeper
) -> None:
    (first,) = services.start({})
    assert first.pid is not None
    kind.answering, kind.ready_s = lambda pid: False, 0.1
    assert services.status()[0].state == "silent"
    with pytest.raises(ServiceError, match="hermes services stop"):
        services.start({})
    os.kill(first.pid, signal.SIGSTOP)
    services.stop()
    assert not birth_of(first.pid)


def test_one_that_ignores_the_stop_is_killed(services: Services, kind: Sleeper, said: list[str]) -> None:
    kind.body, kind.stop_s = "trap '' TERM; echo ready; while :; do sleep 0.1; done", 0.3
    kind.answering = lambda pid: signal.SIGTERM in _ignored(pid)
    (first,) = services.start({})
    services.stop()
    assert first.pid is not None
    assert not birth_of(first.pid)
    assert any("was killed" in line for line in said)


def _ignored(pid: int) -> set[int]:
    mask = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if "SigIgn" in line)
    return {number for number in range(1, 32) if int(mask.split()[1], 16) >> (number - 1) & 1}


# ---------------------------------------------------------------------------------------------- stale records


def test_a_number_that_is_used_again_is_nobodys_server(services: Services, tmp_path: Path) -> None:
    services.start({})
    services.stop()
    time.sleep(0.05)  # births are told in hundredths of a second
    with subprocess.Popen(["sleep", "60"]) as stranger:
        try:
            path = tmp_path / state.FILE
            document = json.loads(path.read_text())
            document["sleeper"]["pid"] = stranger.pid
            path.write_text(json.dumps(document))
            assert services.status()[0].state == "stopped"
            services.stop()
            assert stranger.poll() is None
            (started,) = services.start({})
            assert (started.state, started.pid != stranger.pid) == ("started", True)
        finally:
            stranger.kill()


def test_a_server_that_crashed_is_started_again(services: Services) -> None:
    (first,) = services.start({})
    assert first.pid is not None
    mark = Mark(first.pid, birth_of(first.pid))
    os.kill(first.pid, signal.SIGKILL)
    assert processes.wait_gone(mark, 5)
    (second,) = services.start({})
    assert (second.state, second.address) == ("started", first.address)


def test_a_start_that_was_killed_has_left_a_record(services: Services, kind: Sleeper, tmp_path: Path) -> None:
    records = []

    def look(pid: int) -> bool:
        records.append(state.load(tmp_path)["sleeper"].pid == pid)
        return True

    kind.answering = look
    services.start({})
    assert records[0] is True  # before it was ready


@pytest.mark.parametrize("content", ["", "{", '{"sleeper": {"pid": 1}}', "[]"])
def test_a_record_that_cannot_be_read_is_nothing_to_guess_about(
    services: Services, tmp_path: Path, content: str
) -> None:
    (tmp_path / state.FILE).write_text(content)
    with pytest.raises(ServiceError, match=r"services\.json cannot be read"):
        services.start({})


def test_a_zombie_is_not_alive() -> None:
    process = subprocess.Popen(["true"])
    mark = Mark(process.pid, birth_of(process.pid) or "gone")
    assert processes.wait_gone(mark, 5)
    assert processes.end(mark, 1)
    process.wait()


def test_births_are_told_apart_and_stay_the_same() -> None:
    mine = birth_of(os.getpid())
    assert mine
    assert mine == birth_of(os.getpid())
    assert birth_of(2**22 + 1) == ""


def test_a_second_command_waits_for_the_first(services: Services, tmp_path: Path, said: list[str]) -> None:
    program = (
        "import sys; from pathlib import Path; from hermes_cli.services.locks import held\n"
        "with held(Path(sys.argv[1]), lambda: None): print('held', flush=True); sys.stdin.readline()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / running.LOCK)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as holder:  # fmt: skip
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == "held\n"
        say = holder.stdin

        def go_on(line: str) -> None:
            said.append(line)
            if "waiting" in line:
                say.write("\n")
                say.flush()

        waiting = Services(tmp_path, [Sleeper()], 1, go_on)
        assert waiting.start({})[0].state == "started"
    assert "waiting" in said[0]


# -------------------------------------------------------------------------------------------------- elsewhere


@pytest.mark.parametrize(("kind", "variable"), [(RedisKind, "REDIS_URL"), (WeaviateKind, "WEAVIATE_URL")])
def test_a_server_of_the_environment_is_used_and_not_started(
    kind: type[RedisKind | WeaviateKind], variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(variable, raising=False)
    made = kind(service_settings())
    assert made.elsewhere() is None
    (port,) = free_run(1, RANGE)
    monkeypatch.setenv(variable, f"http://127.0.0.1:{port}")
    with pytest.raises(ServiceError, match=variable):
        made.elsewhere()
    program = (
        "import http.server, sys\n"
        "class Ready(http.server.BaseHTTPRequestHandler):\n"
        "    def do_GET(self): self.send_response(200); self.end_headers()\n"
        "    def log_message(self, *_): pass\n"
        "server = http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), Ready)\n"
        "print('up', flush=True); server.serve_forever()"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(port)], stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            server.stdout.readline()
            (standing,) = Services(tmp_path, [made], 1, lambda line: None).start({})
        finally:
            server.kill()
    assert (standing.state, standing.usable, standing.pid) == ("elsewhere", True, None)
    assert standing.address is not None
    assert standing.address.url == f"http://127.0.0.1:{port}"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ([b"+PONG\r\n$900\r\n# Server\r\nprocess_id:4", b"2\r\ntcp_port:1\r\n"], 42),
        ([b"+PO", b"NG\r\n", b"process_id:7\r\n"], 7),
        ([b"-LOADING Redis is loading the dataset in memory\r\n"], None),
        ([b"-NOAUTH Authentication required.\r\n"], None),
        ([b"HTTP/1.1 400 Bad Request\r\n\r\n"], None),
        ([b"+PONG\r\n", b"x" * 300_000], None),
        ([], None),
    ],
)
def test_only_a_redis_that_is_ready_says_who_it_is(answer: list[bytes], expected: int | None) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(100)
                try:
                    for part in answer:
                        connection.sendall(part)
                        time.sleep(0.02)
                except OSError:
                    return  # the client has heard enough

        thread = threading.Thread(target=serve)
        thread.start()
        assert process_behind("127.0.0.1", server.getsockname()[1]) == expected
        thread.join()


# ------------------------------------------------------------------------------------------------------ ports


def test_free_ports_follow_each_other_and_leave_out_the_given_ones() -> None:
    narrow = PortRange(lowest=21000, highest=21011, attempts=1)
    for _ in range(20):
        run = free_run(6, narrow, frozenset({21005}))
        assert run == list(range(run[0], run[0] + 6))
        assert 21005 not in run
        assert 21000 <= run[0] <= run[-1] <= 21011


def test_no_free_port_is_an_error() -> None:
    with socket.socket() as other:
        other.bind(("", 0))
        other.listen()
        port = other.getsockname()[1]
        assert not is_free(port)
        with pytest.raises(PortTaken, match="no free one"):
            free_run(1, PortRange(lowest=port, highest=port, attempts=1))
    assert is_free(port)
