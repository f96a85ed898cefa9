"""Errors become answers: one body for all of them, status and hint from the one table."""

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import Scope

from app.api.schemas import ErrorBody, ErrorOut
from app.core.error_table import entry_of
from app.core.errors import (
    AppError,
    ConsentRequiredError,
    NotFoundError,
    QueueFullError,
    RequestTooLargeError,
    UsageError,
)
from app.processors.base import told

_RETRY_AFTER_S = "10"
_CODES_BY_STATUS = {404: NotFoundError.code, 413: RequestTooLargeError.code}


def problem(
    scope: Scope, code: str, message: str = "", *, status: int | None = None
) -> JSONResponse:
    """The answer for an error code.

    Args:
        scope: Of the request, for its id.
        code: As in the error table.
        message: The particulars; paths are cut out of it.
        status: Where HTTP itself demands another one than the table's.
    """
    request_id = scope.get("state", {}).get("request_id")
    body = ErrorBody(error=ErrorOut.of(code, message, request_id))
    busy = code == QueueFullError.code or (status or entry_of(code).http_status) == 503
    return JSONResponse(
        body.model_dump(),
        status_code=status or entry_of(code).http_status,
        headers={"Retry-After": _RETRY_AFTER_S} if busy else None,
    )


def problem_of(scope: Scope, error: AppError) -> JSONResponse:
    """The answer for one of our own errors."""
    return problem(scope, error.code, error.message)


def problem_of_validation(scope: Scope, error: RequestValidationError) -> JSONResponse:
    """The answer for a request that does not fit its schema; what was sent is not repeated."""
    found = error.errors()
    if any("consent" in one["loc"] for one in found):
        return problem(scope, ConsentRequiredError.code)
    return problem(scope, UsageError.code, told(found))


def install_problem_handlers(app: FastAPI) -> None:
    """Make every failure of the app's routes answer in the one form."""

    @app.exception_handler(AppError)
    async def _ours(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, AppError)
        return problem_of(request.scope, error)

    @app.exception_handler(RequestValidationError)
    async def _invalid(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        return problem_of_validation(request.scope, error)

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        code = _CODES_BY_STATUS.get(error.status_code, UsageError.code)
        return problem(request.scope, code, str(error.detail), status=error.status_code)
