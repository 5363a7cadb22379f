"""The FastAPI application."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware

import spanshot
from spanshot.errors import SpanshotError
from spanshot.service import label_studio, routes, tag_routes
from spanshot.service.core import Service
from spanshot.service.errors import ServiceError
from spanshot.service.guard import Guard, ServiceHTTPError, error_body
from spanshot.service.schemas import ErrorOut, Status
from spanshot.service.settings import VARIABLE, Settings

log = logging.getLogger(__name__)
_CODES = {400: "invalid_body", 404: "no_route", 405: "method_not_allowed"}


def create_app(settings: Settings) -> FastAPI:
    """Return the application. The model is loaded here, so that workers that share a parent fail early."""
    service = Service(settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        del app
        yield
        service.close()

    app = FastAPI(
        title="spanshot",
        version=spanshot.__version__,
        summary="Find entities in text, given a few labelled examples.",
        lifespan=lifespan,
        docs_url=None,  # the pages that FastAPI has for it load scripts from other sites
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.service = service
    for router in (_health_router(service), routes.router, tag_routes.router, label_studio.router):
        app.include_router(router)
    _handle_errors(app)
    app.add_middleware(Guard, service=service)
    if settings.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "X-API-Key"],
            expose_headers=["Retry-After"],
        )
    if settings.hosts:
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(settings.hosts), www_redirect=False)
    _describe_keys(app, bool(settings.keys))
    return app


def from_environment() -> FastAPI:
    """Return the application of a worker process, whose settings are in an environment variable."""
    return create_app(Settings.from_json(os.environ[VARIABLE]))


def _health_router(service: Service) -> APIRouter:
    router = APIRouter(tags=["operation"])

    @router.get("/health")
    async def health() -> Status:
        """Answer that the process is alive."""
        return Status(status="ok")

    @router.get("/ready", responses={503: {"model": ErrorOut, "description": "Not ready."}})
    async def ready() -> Status:
        """Answer whether requests can be served: taggers can be saved, and the service is not shutting down."""
        problem = "the service is shutting down" if service.closing else ""
        if not service.batcher.is_alive:
            problem = "the thread that tags has ended"
        try:
            service.store.check_writable()
        except OSError as error:
            problem = f"taggers cannot be saved: {error.strerror}"
        if problem:
            raise ServiceError(503, "not_ready", problem, 1)
        return Status(status="ready")

    @router.get(
        "/metrics",
        response_class=Response,
        responses={
            200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Prometheus' text format."},
            401: routes.ERRORS[401],
            429: routes.ERRORS[429],
            503: routes.ERRORS[503],
        },
    )
    async def metrics() -> Response:
        """Return metrics for Prometheus."""
        service.metrics.queue.set(service.batcher.queued)
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")

    return router


def _handle_errors(app: FastAPI) -> None:
    """Answer all errors in one form."""

    def answer(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> Response:
        return Response(error_body(code, message), status, headers, "application/json")

    @app.exception_handler(SpanshotError)
    async def of_spanshot(_: Request, error: SpanshotError) -> Response:
        if isinstance(error, ServiceError):
            return answer(error.status, error.code, str(error), error.headers)
        return answer(422, "invalid", str(error))

    @app.exception_handler(RequestValidationError)
    async def of_validation(_: Request, error: RequestValidationError) -> Response:
        return answer(422, "invalid", _validation_message(error))

    @app.exception_handler(HTTPException)
    async def of_http(request: Request, error: HTTPException) -> Response:
        headers = dict(error.headers or {})
        if error.status_code == 405:
            headers["Allow"] = ", ".join(_allowed_methods(app, request.url.path))
        if isinstance(error, ServiceHTTPError):
            return answer(error.status_code, error.error.code, str(error.error), headers)
        return answer(error.status_code, _CODES.get(error.status_code, "error"), str(error.detail), headers)

    @app.exception_handler(Exception)
    async def of_program(request: Request, error: Exception) -> Response:
        log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return answer(500, "internal_error", "an internal error; the log of the service says more")


def _allowed_methods(app: FastAPI, path: str) -> list[str]:
    """Return the methods of all routes with a path; the framework names those of the first one only."""
    methods: set[str] = set()
    for template, operations in app.openapi()["paths"].items():
        pattern = re.sub(r"\\{[^/]*?\\}", "[^/]+", re.escape(template))
        if re.fullmatch(pattern, path):
            methods |= {method.upper() for method in operations}
    return sorted(methods)


def _validation_message(error: RequestValidationError) -> str:
    """Return the first problems of a body, without repeating its content."""
    problems = []
    for problem in error.errors()[:3]:
        place = ".".join(str(part)[:40] for part in problem["loc"])
        problems.append(f"{place}: {str(problem['msg'])[:200]}")
    more = len(error.errors()) - len(problems)
    return "; ".join(problems) + (f"; and {more} more" if more > 0 else "")


def _describe_keys(app: FastAPI, needed: bool) -> None:
    """Add the API keys to the OpenAPI description."""
    if not needed:
        return
    make = app.openapi

    def openapi() -> dict[str, object]:
        schema: dict[str, object] = make()
        components = schema.setdefault("components", {})
        assert isinstance(components, dict)
        components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        paths = schema["paths"]
        assert isinstance(paths, dict)
        for path, operations in paths.items():
            if path not in ("/health", "/ready"):
                for operation in operations.values():
                    operation["security"] = [{"key": []}]
        return schema

    app.openapi = openapi  # type: ignore[method-assign]
