"""``hermes serve``: one server on one data directory, from the first line to the last process."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from rich.console import Console
from rich.status import Status
from rich.text import Text

from hermes_cli.console import stdout
from hermes_cli.options import Config, Data

READY = "Hermes Memory answers at"


def serve(
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="0 for a free one.", show_default="8000")
    ] = None,
    host: Annotated[
        str | None, typer.Option(help="The address to listen on.", show_default="127.0.0.1")
    ] = None,
    data: Data = Path("./data"),
    config: Config = None,
) -> None:
    """Run the server until Ctrl-C or SIGTERM."""
    from hermes_memory.config import load_settings

    given = {"port": port, "host": host}
    wanted = {name: value for name, value in given.items() if value is not None}
    settings = load_settings(config, {"serve": wanted} if wanted else {})

    from hermes_memory.adapters.logs import configure

    configure(settings.logging.format, settings.logging.level, "server")
    from hermes_cli.doctor import reading
    from serve_app.launch import Server  # loads FastAPI; a wrong configuration is told before

    steps, signals = _Steps(stdout()), _Signals()

    def say(step: str) -> None:
        signals.install()  # Ray puts its own handler in while it starts
        steps.say(step)

    server = Server(settings, data, say)
    if settings.extractor.kind != "rules":
        for line in reading.told(settings):
            steps.note(line)
    signals.install()
    with steps.shown():
        try:
            server.start()
            signals.started()
            steps.ready(server.url)
            signals.wanted.wait()
        except BaseException:
            # A signal in the middle of a step comes out of Ray's compiled parts as anything.
            if not signals.wanted.is_set():
                raise
        finally:
            signals.started()  # whatever comes from now on, the stop runs to its end
            server.stop()
            if signals.wanted.is_set():
                steps.done()


class _Stopped(BaseException):
    """A signal came while the server was starting."""


class _Signals:
    """The first signal asks for the stop, further ones change nothing: the stop is under way."""

    def __init__(self) -> None:
        self.wanted = threading.Event()
        self._starting = True

    def install(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._handle)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup stays nohup
            signal.signal(signal.SIGHUP, self._handle)

    def started(self) -> None:
        self.install()
        self._starting = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        first = not self.wanted.is_set()
        self.wanted.set()
        if first and self._starting:
            raise _Stopped


class _Steps:
    """What the server is doing: a spinner on a terminal, a line for each step elsewhere."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.monotonic()
        self._status: Status | None = None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """The spinner's life; a person's terminal gets its cursor back whatever happens."""
        if self._console.is_terminal:
            self._status = self._console.status("loading")
            self._status.start()
        try:
            yield
        finally:
            self._end()

    def say(self, step: str) -> None:
        """A step begins."""
        if self._console.is_terminal:
            if self._status is None:
                self._status = self._console.status(step)
                self._status.start()
            self._status.update(step)
        else:
            self._line(Text(step))

    def note(self, text: str) -> None:
        """Something that stays on the screen."""
        self._line(Text(text))

    def ready(self, url: str) -> None:
        """The server answers."""
        self._end()
        seconds = time.monotonic() - self._began
        self._line(Text.assemble(f"{READY} ", (url, "bold green"), f" (docs: {url}/docs)"))
        note = f"ready after {seconds:.1f} s"
        self._line(Text(f"{note}; Ctrl-C stops it" if self._console.is_terminal else note, "dim"))

    def done(self) -> None:
        """The server is gone."""
        self._end()
        self._line(Text("stopped", "dim"))

    def _end(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None

    def _line(self, text: Text) -> None:
        self._console.print(text, soft_wrap=True)
        self._console.file.flush()
