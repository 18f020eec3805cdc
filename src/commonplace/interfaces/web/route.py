"""A route of the web app, as data."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.responses import Response

from commonplace.interfaces.web.request import Visit

Handler = Callable[[Visit], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Door:
    method: str
    path: str
    handler: Handler
    open: bool = False  # also for those who are not signed in


def get(path: str, handler: Handler, *, open: bool = False) -> Door:
    return Door("GET", path, handler, open)


def post(path: str, handler: Handler, *, open: bool = False) -> Door:
    return Door("POST", path, handler, open)
