"""A route of the web app, as data."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.responses import Response

from commonplace.interfaces.web.request import WebRequest

Handler = Callable[[WebRequest], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Route:
    method: str
    path: str
    handler: Handler
    open: bool = False  # also for those who are not signed in


def get(path: str, handler: Handler, *, open: bool = False) -> Route:
    return Route("GET", path, handler, open)


def post(path: str, handler: Handler, *, open: bool = False) -> Route:
    return Route("POST", path, handler, open)
