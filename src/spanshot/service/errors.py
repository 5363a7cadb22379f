"""The errors that the service answers with."""

from __future__ import annotations

import math

from spanshot.errors import SpanshotError


class ServiceError(SpanshotError):
    """A request that cannot be served: an HTTP status, a code for programs, and a message for people."""

    def __init__(self, status: int, code: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.retry_after = None if retry_after is None else min(60, max(1, math.ceil(retry_after)))

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the answer."""
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        if self.status == 401:
            headers["WWW-Authenticate"] = 'Bearer realm="spanshot", Basic realm="spanshot"'
        return headers


def overloaded(what: str, seconds: float = 1.0) -> ServiceError:
    """Return the error of a busy service."""
    return ServiceError(429, "overloaded", f"{what}; try again later", seconds)


def too_many(what: str, limit: int, count: int) -> ServiceError:
    """Return the error of a request beyond a limit."""
    code = f"too_many_{what.replace(' ', '_')}"
    return ServiceError(422, code, f"too many {what}: found {count:,}; at most {limit:,} are allowed")


def too_long(what: str, limit: int, length: int) -> ServiceError:
    """Return the error of a text beyond a limit."""
    message = f"a {what} is too long: found {length:,} characters; at most {limit:,} are allowed"
    return ServiceError(422, f"{what}_too_long", message)


def not_found(what: str, name: str) -> ServiceError:
    """Return the error of something that does not exist."""
    return ServiceError(404, f"no_{what}", f"there is no {what} {name!r}")
