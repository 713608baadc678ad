"""The two kinds of servers behind one interface: how to get one, its ports, how to launch it, its addresses."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from hermes_cli.services import redis_server, weaviate_server
from hermes_cli.services.cache import Tell
from hermes_cli.services.errors import PortTaken, ServiceError
from hermes_cli.services.finding import Program
from hermes_cli.services.getting import get_redis, get_weaviate
from hermes_cli.services.ports import free_run, is_free
from hermes_cli.services.processes import Launch
from hermes_cli.services.settings import ServiceSettings
from hermes_cli.services.state import Address
from hermes_cli.services.weaviate_server import KEY_ENV, WeaviatePorts

Ports = Mapping[str, int]


class Kind(Protocol):
    """One kind of server."""

    name: str
    stop_s: float

    def get(self, tell: Tell) -> Program:
        """A program of it, found or fetched."""

    def choose(self, wanted: int | None) -> Ports:
        """Free ports; ``wanted`` is for the one that clients use first."""

    def launch(self, program: Path, folder: Path, ports: Ports) -> Launch:
        """How to start it there."""

    def address(self, ports: Ports) -> Address:
        """Where it answers when it is started now."""

    def elsewhere(self) -> Address | None:
        """The running one that the environment names.

        Raises:
            ServiceError: it does not answer.
        """


class RedisKind:
    """A redis-server; ``REDIS_URL`` names one that runs already."""

    name = redis_server.NAME

    def __init__(self, settings: ServiceSettings) -> None:
        self._settings = settings
        self.stop_s = settings.redis.stop_s

    def get(self, tell: Tell) -> Program:
        return get_redis(self._settings, tell)

    def choose(self, wanted: int | None) -> Ports:
        _refuse_taken(self.name, wanted)
        return {"port": wanted or free_run(1, self._settings.ports)[0]}

    def launch(self, program: Path, folder: Path, ports: Ports) -> Launch:
        return redis_server.redis_launch(program, folder, ports["port"], self._settings.redis)

    def address(self, ports: Ports) -> Address:
        return Address(redis_server.redis_url_of(ports["port"]))

    def elsewhere(self) -> Address | None:
        url = os.environ.get("REDIS_URL")
        if not url:
            return None
        parts = urlsplit(url)
        if not redis_server.listens(parts.hostname or "127.0.0.1", parts.port or redis_server.USUAL_PORT):
            raise ServiceError(self.name, "nothing listens where REDIS_URL says")
        return Address(url)


class WeaviateKind:
    """A Weaviate; ``WEAVIATE_URL`` and ``WEAVIATE_GRPC_PORT`` name one that runs already.

    It asks for the key that ``WEAVIATE_API_KEY`` holds when it is started; without one it asks for nothing.
    """

    name = weaviate_server.NAME

    def __init__(self, settings: ServiceSettings) -> None:
        self._settings = settings
        self.stop_s = settings.weaviate.stop_s

    def get(self, tell: Tell) -> Program:
        return get_weaviate(self._settings, tell)

    def choose(self, wanted: int | None) -> Ports:
        _refuse_taken(self.name, wanted)
        return asdict(WeaviatePorts.free(self._settings.ports, http=wanted))

    def launch(self, program: Path, folder: Path, ports: Ports) -> Launch:
        return weaviate_server.weaviate_launch(
            program, folder, WeaviatePorts(**ports), self._settings.weaviate,
            key=os.environ.get(KEY_ENV, ""),
        )  # fmt: skip

    def address(self, ports: Ports) -> Address:
        chosen = WeaviatePorts(**ports)
        return Address(weaviate_server.weaviate_url_of(chosen), chosen.grpc, _key_env())

    def elsewhere(self) -> Address | None:
        url = os.environ.get("WEAVIATE_URL")
        if not url:
            return None
        if not weaviate_server.is_ready(url):
            raise ServiceError(self.name, "no Weaviate is ready where WEAVIATE_URL says")
        return Address(
            url, int(os.environ.get("WEAVIATE_GRPC_PORT", weaviate_server.USUAL_GRPC_PORT)), _key_env()
        )


def kinds(settings: ServiceSettings) -> tuple[Kind, ...]:
    """All of them."""
    return RedisKind(settings), WeaviateKind(settings)


def _key_env() -> str:
    return KEY_ENV if os.environ.get(KEY_ENV) else ""


def _refuse_taken(name: str, wanted: int | None) -> None:
    if wanted is not None and not is_free(wanted):
        raise PortTaken(name, f"port {wanted} is taken by another program")
