"""What was started, in one small file beside the servers' data: enough to recognise and to end it later."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from hermes_cli.services.errors import ServiceError
from hermes_cli.services.processes import Mark

FILE = "services.json"


@dataclass(frozen=True, slots=True)
class Address:
    """Where clients find a server: ``grpc_port`` is 0 where there is none, ``key_env`` names the variable of its key."""

    url: str
    grpc_port: int = 0
    key_env: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One server. After a stop or a crash the entry stays: the next start takes the same ports if they are free."""

    pid: int
    birth: str
    ports: Mapping[str, int]
    program: str
    origin: str
    address: Address

    @property
    def mark(self) -> Mark:
        """The process that was started, to be told from another one with its number."""
        return Mark(self.pid, self.birth)


_Entries = TypeAdapter(dict[str, Entry])


def load(folder: Path) -> dict[str, Entry]:
    """The entries by the servers' names; none where nothing was ever started.

    Raises:
        ServiceError: the file is there and cannot be understood. Servers may run that it would name, and two on one
            data folder would spoil it: somebody has to look.
    """
    path = folder / FILE
    try:
        return _Entries.validate_json(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValidationError):
        problem = f"{path} cannot be read; end the servers it was about by hand, then remove it"
        raise ServiceError("services", problem) from None


def store(folder: Path, entries: Mapping[str, Entry]) -> None:
    """Replace the file, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{FILE}.{os.getpid()}"
    draft.write_text(
        json.dumps(_Entries.dump_python(dict(entries), mode="json"), indent=2) + "\n", encoding="utf-8"
    )
    draft.replace(folder / FILE)
