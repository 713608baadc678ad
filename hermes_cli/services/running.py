"""Starting, finding again and ending the servers of one folder."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen

import psutil

from hermes_cli.services import processes, state
from hermes_cli.services.cache import Tell
from hermes_cli.services.errors import PortTaken, ServiceError
from hermes_cli.services.finding import Program
from hermes_cli.services.kinds import Kind, Ports
from hermes_cli.services.locks import held
from hermes_cli.services.ports import is_free
from hermes_cli.services.processes import Mark
from hermes_cli.services.state import Address, Entry

LOCK = "services.lock"
POLL_S = 0.1

# They outlive this process on purpose; forgotten, Python would warn about each of them.
_STARTED: list[Popen[bytes]] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a server stands; ``state`` is started, running, stopped, silent (it runs and does not answer), elsewhere."""

    name: str
    state: str
    address: Address | None = None
    pid: int | None = None
    origin: str = ""
    took_s: float = 0.0
    memory_bytes: int = 0

    @property
    def usable(self) -> bool:
        """Whether a client can go there."""
        return self.state in {"started", "running", "elsewhere"}


class Services:
    """The servers of ``folder``; each has its data in a folder of its own in there."""

    def __init__(self, folder: Path, kinds: Iterable[Kind], attempts: int, tell: Tell) -> None:
        self._folder = folder.absolute()
        self._kinds = tuple(kinds)
        self._attempts = attempts
        self._tell = tell

    def start(self, ports: Mapping[str, int | None]) -> list[Standing]:
        """Get what is missing, start what does not run, wait until all of it answers.

        ``ports`` holds by a server's name the port it is to have; one that runs keeps the port it has.

        Raises:
            ServiceError: a program is not to be had, does not come up, or its port is taken. What was started before
                keeps running; a second start goes on from there.
        """
        with self._alone():
            return [self._start(kind, ports.get(kind.name)) for kind in self._kinds]

    def status(self) -> list[Standing]:
        """How they stand now."""
        entries = state.load(self._folder)
        return [self._standing(kind, entries.get(kind.name)) for kind in self._kinds]

    def stop(self) -> list[Standing]:
        """End what runs, the last started first; the data stays."""
        with self._alone():
            entries = state.load(self._folder)
            return [self._stop(kind, entries.get(kind.name)) for kind in reversed(self._kinds)]

    def _alone(self) -> AbstractContextManager[None]:
        return held(
            self._folder / LOCK, lambda: self._tell("services: another command is at work; waiting for it")
        )

    def _start(self, kind: Kind, wanted: int | None) -> Standing:
        if (address := kind.elsewhere()) is not None:
            return Standing(name=kind.name, state="elsewhere", address=address)
        entry = state.load(self._folder).get(kind.name)
        if entry is not None and entry.mark.alive:
            return self._running(kind, entry, wanted)
        program = kind.get(self._tell)
        began = time.monotonic()
        for left in reversed(range(self._attempts)):
            ports = self._ports(kind, entry, wanted)
            try:
                entry = self._spawn(kind, program, ports)
            except PortTaken:
                if wanted is not None or not left:
                    raise
                self._tell(f"{kind.name}: somebody was faster on its port; trying others")
                entry = None
            else:
                break
        standing = self._standing(kind, entry)
        return _as(standing, "started", time.monotonic() - began)

    def _ports(self, kind: Kind, entry: Entry | None, wanted: int | None) -> Ports:
        if entry is None or wanted is not None:
            return kind.choose(wanted)
        if taken := [port for port in entry.ports.values() if not is_free(port)]:
            self._tell(f"{kind.name}: port {taken[0]} of last time is taken; choosing others")
            return kind.choose(None)
        return entry.ports

    def _spawn(self, kind: Kind, program: Program, ports: Ports) -> Entry:
        self._tell(f"{kind.name}: starting {program.path} ({program.origin})")

        def record(mark: Mark) -> None:
            entry = Entry(
                pid=mark.pid, birth=mark.birth, ports=ports, program=str(program.path), origin=program.origin,
                address=kind.address(ports),
            )  # fmt: skip
            state.store(self._folder, {**state.load(self._folder), kind.name: entry})

        launch = kind.launch(program.path, self._folder / kind.name, ports)
        _STARTED.append(processes.start(launch, record))
        return state.load(self._folder)[kind.name]

    def _running(self, kind: Kind, entry: Entry, wanted: int | None) -> Standing:
        launch = kind.launch(Path(entry.program), self._folder / kind.name, entry.ports)
        deadline = time.monotonic() + launch.ready_s
        while not launch.answers(entry.pid):
            if time.monotonic() > deadline:
                problem = f"process {entry.pid} runs and does not answer; `hermes services stop` ends it"
                raise ServiceError(kind.name, problem)
            time.sleep(POLL_S)
        if wanted is not None and wanted not in entry.ports.values():
            self._tell(f"{kind.name}: runs already, and keeps its port; another one needs a stop first")
        if kind.address(entry.ports).key_env != entry.address.key_env:
            self._tell(
                f"{kind.name}: runs already, with or without a key as it was started; a stop comes first"
            )
        return self._standing(kind, entry)

    def _standing(self, kind: Kind, entry: Entry | None) -> Standing:
        if entry is None or not entry.mark.alive:
            return Standing(name=kind.name, state="stopped")
        launch = kind.launch(Path(entry.program), self._folder / kind.name, entry.ports)
        return Standing(
            name=kind.name,
            state="running" if launch.answers(entry.pid) else "silent",
            address=entry.address,
            pid=entry.pid,
            origin=entry.origin,
            memory_bytes=_memory(entry.pid),
        )

    def _stop(self, kind: Kind, entry: Entry | None) -> Standing:
        if entry is not None and entry.mark.alive:
            self._tell(f"{kind.name}: stopping process {entry.pid}")
            if not processes.end(entry.mark, kind.stop_s):
                self._tell(f"{kind.name}: it did not stop within {kind.stop_s:.0f} s and was killed")
        return Standing(name=kind.name, state="stopped")


def _as(standing: Standing, name: str, took_s: float) -> Standing:
    return Standing(
        name=standing.name, state=name, address=standing.address, pid=standing.pid, origin=standing.origin,
        took_s=took_s, memory_bytes=standing.memory_bytes,
    )  # fmt: skip


def _memory(pid: int) -> int:
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0
