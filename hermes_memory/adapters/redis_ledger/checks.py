"""What a Redis must promise before it is trusted with what is acknowledged (ARCHITECTURE §3)."""

from __future__ import annotations

import logging
from typing import Any, Literal

from redis import exceptions

from hermes_memory.adapters.redis_ledger.connection import Link
from hermes_memory.errors import InvalidConfig, LedgerUnavailable

Durability = Literal["always", "everysec"]
OnUnsafe = Literal["refuse", "warn"]
MIN_VERSION = (6, 2)
_log = logging.getLogger(__name__)


async def check_server(link: Link, durability: Durability, on_unsafe: OnUnsafe) -> None:
    """Refuse, or if told so warn of, a server that could lose or evict what it acknowledged.

    Raises:
        InvalidConfig: names the setting, and the command that mends it.
        LedgerUnavailable: it cannot be reached.
    """
    for info in await link.servers("INFO", "server"):
        _check_version(info)
    wanted = {"appendonly": "yes", "appendfsync": durability, "maxmemory-policy": "noeviction"}
    for name, value in wanted.items():
        problem = await _problem(link, name, value)
        if problem and on_unsafe == "refuse":
            raise InvalidConfig("ledger", problem)
        if problem:
            _log.warning("%s", problem)


def _check_version(info: Any) -> None:
    text = str(info["redis_version"])
    version = tuple(int(part) for part in text.split(".")[:2])
    if version < MIN_VERSION:
        wanted = ".".join(map(str, MIN_VERSION))
        raise InvalidConfig("ledger", f"Redis {text} is too old: version {wanted} is the least")


async def _problem(link: Link, name: str, value: str) -> str | None:
    try:
        replies = await link.servers("CONFIG GET", name)
    except LedgerUnavailable as error:
        if isinstance(error.__cause__, exceptions.ResponseError):  # managed services forbid it
            return (
                f"cannot tell whether {name} is {value}: the server forbids CONFIG GET; "
                'if you know it is, set ledger.on_unsafe = "warn"'
            )
        raise
    found = {_text(_plain(reply).get(name)) for reply in replies}
    if found <= _good(name, value):
        return None
    return f"Redis has {name} {' and '.join(sorted(found))}, not {value}: run CONFIG SET {name} {value}, and CONFIG REWRITE"


def _good(name: str, value: str) -> set[str]:
    return {"always", value} if name == "appendfsync" else {value}


def _plain(reply: Any) -> dict[str, Any]:
    pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2], strict=True)
    return {_text(key): value for key, value in pairs}


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
