"""The FastAPI app: the routes of API.md, problems for errors, limits on bodies. Knows nothing of Ray."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from fastapi import Depends, FastAPI

from hermes_memory import __version__
from hermes_memory.config import ApiSettings
from serve_app import problems
from serve_app.limits import BodyLimit, QuotedPath, RequestId
from serve_app.measuring import Measured
from serve_app.queries import known_parameters
from serve_app.routes import capture, health, memories, operators, recall, user
from serve_app.services import Services

Open = Callable[[], AbstractAsyncContextManager[Services]]


class Api(FastAPI):
    """FastAPI whose document describes the problems."""

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document."""
        document = super().openapi()
        document["components"]["schemas"]["Problem"] = problems.PROBLEM_SCHEMA
        return document


def create_app(open_services: Open, limits: ApiSettings) -> FastAPI:
    """The app; ``open_services`` is entered when it starts and left when it stops."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with open_services() as services:
            app.state.services = services
            yield

    app = Api(
        title="Hermes Memory",
        version=__version__,
        summary="Long-term memory for chat products, with evidence, under two gates.",
        lifespan=lifespan,
        redirect_slashes=False,  # a redirect would echo path and host
        generate_unique_id_function=lambda route: route.name,
    )
    for routes in (capture, recall, memories, user, operators):
        app.include_router(
            routes.router, dependencies=[Depends(known_parameters)], responses=problems.RESPONSES
        )
    app.include_router(health.router)
    problems.install(app)
    app.add_middleware(BodyLimit, max_bytes=limits.max_body_bytes)
    app.add_middleware(
        Measured
    )  # where the path is in its one form, and what is refused before is not a request
    app.add_middleware(QuotedPath)
    app.add_middleware(RequestId)  # added last: it is the outermost
    return app
