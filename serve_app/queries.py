"""Query parameters are held to what the route knows: a typo in ``?kind=`` must not erase more than was meant."""

from __future__ import annotations

from collections import Counter
from urllib.parse import unquote_to_bytes

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from hermes_memory.errors import InvalidInput


async def known_parameters(request: Request) -> None:
    """Refuse parameters that are unknown, given twice, or not UTF-8; names are not echoed."""
    if not request.url.query:
        return
    try:
        unquote_to_bytes(request.scope["query_string"]).decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidInput("query", "is not percent-encoded UTF-8") from None
    given = Counter(name for name, _ in request.query_params.multi_items())
    route = request.scope["route"]
    known = _names(route.dependant) if isinstance(route, APIRoute) else set()
    if not given.keys() <= known:
        raise InvalidInput("query", f"holds a parameter that is not known here ({_list(known)})")
    if twice := sorted(name for name, times in given.items() if times > 1):
        raise InvalidInput("query", f"gives a parameter twice ({_list(set(twice))})")


def _names(dependant: Dependant) -> set[str]:
    own = {parameter.alias for parameter in dependant.query_params}
    return own.union(*(_names(below) for below in dependant.dependencies))


def _list(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "none are"
