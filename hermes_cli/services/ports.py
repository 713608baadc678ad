"""Free ports of this machine: tried before they are promised, and outside of what the kernel hands out itself."""

from __future__ import annotations

import random
import socket

from hermes_cli.services.errors import PortTaken
from hermes_cli.services.settings import PortRange

TRIES = 1000


def is_free(port: int) -> bool:
    """Whether a server could listen on ``port``, on loopback and on every interface."""
    for host in ("127.0.0.1", ""):
        with socket.socket() as probe:
            # As servers do: the leftovers of closed connections do not count.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                return False
    return True


def free_run(length: int, within: PortRange, apart_from: frozenset[int] = frozenset()) -> list[int]:
    """``length`` consecutive free ports.

    They are not held: whoever listens first has them, so a start that fails on one is tried again with others.

    Raises:
        PortTaken: there is none.
    """
    for _ in range(TRIES):
        first = random.randint(within.lowest, within.highest - length + 1)
        run = list(range(first, first + length))
        if apart_from.isdisjoint(run) and all(map(is_free, run)):
            return run
    raise PortTaken("ports", f"no free one between {within.lowest} and {within.highest}")
