"""The numbers and names of ``configs/services.toml``, typed."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from pydantic import TypeAdapter


@dataclass(frozen=True, slots=True, kw_only=True)
class PortRange:
    """Where free ports are looked for, and how often a start is tried with other ones."""

    lowest: int
    highest: int
    attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisSettings:
    """A redis-server: how it is got and what it is started with."""

    oldest: str
    ready_s: float
    stop_s: float
    packages: list[str]
    wheels: list[str]
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class WeaviateSettings:
    """A Weaviate: how it is got and what it is started with."""

    version: str
    module: str
    ready_s: float
    stop_s: float
    build_disk_bytes: int
    build_minutes: int
    build_limit_s: float
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """The whole file."""

    ports: PortRange
    redis: RedisSettings
    weaviate: WeaviateSettings


@cache
def service_settings() -> ServiceSettings:
    """The packaged file, read once."""
    document = tomllib.loads(files("configs").joinpath("services.toml").read_text(encoding="utf-8"))
    return TypeAdapter(ServiceSettings).validate_python(document)
