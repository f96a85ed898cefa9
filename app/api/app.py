"""The HTTP application; the page is mounted on what `create_app` returns."""

from fastapi import FastAPI
from starlette.middleware import Middleware

import app as package
from app.api.guards import BodyLimit, OriginGuard, ResponseGuard
from app.api.options import ApiOptions
from app.api.problems import install_problem_handlers
from app.api.routes import api_routes, health_routes
from app.service import Studio


def create_app(studio: Studio, options: ApiOptions | None = None) -> FastAPI:
    """Build the application.

    There is no page of API documentation: the usual ones load scripts from other hosts. The schema itself is
    at `/api/v1/openapi.json`.

    Args:
        studio: What the routes ask.
        options: Limits and permissions.
    """
    options = options or ApiOptions()
    app = FastAPI(
        title="FaceDock",
        version=package.__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
        middleware=[
            Middleware(ResponseGuard),
            Middleware(OriginGuard, options=options),
            Middleware(BodyLimit, options=options),
        ],
    )
    install_problem_handlers(app)
    app.include_router(api_routes(studio, options))
    app.include_router(health_routes(studio))
    return app
