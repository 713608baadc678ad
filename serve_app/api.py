"""The FastAPI app: the routes of API.md, problems for errors, limits on bodies. Knows nothing of Ray."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from fastapi import FastAPI

from hermes_memory import __version__
from hermes_memory.config import ApiSettings
from serve_app import problems
from serve_app.limits import BodyLimit
from serve_app.routes import capture, health, memories, recall, user
from serve_app.services import Services

Open = Callable[[], AbstractAsyncContextManager[Services]]


def create_app(open_services: Open, limits: ApiSettings) -> FastAPI:
    """The app; ``open_services`` is entered when it starts and left when it stops."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with open_services() as services:
            app.state.services = services
            yield

    app = FastAPI(
        title="Hermes Memory",
        version=__version__,
        summary="Long-term memory for chat products, with evidence, under two gates.",
        lifespan=lifespan,
    )
    for routes in (capture, recall, memories, user, health):
        app.include_router(routes.router)
    problems.install(app)
    app.add_middleware(BodyLimit, max_bytes=limits.max_body_bytes)
    return app
