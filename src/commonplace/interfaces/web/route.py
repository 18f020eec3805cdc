"""A route of the web app, as data."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.responses import Response

from commonplace.interfaces.web.request import WebRequest

Handler = Callable[[WebRequest], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Route:
    method: str
    path: str
    handler: Handler
    open: bool = False  # also for those who are not signed in


get, post = partial(Route, "GET"), partial(Route, "POST")


def post_then(path: str, run: Callable[[WebRequest], Awaitable[Any]], to: str, said: str) -> Route:
    """A form that does something, and then leads to a page that says so.

    `to` and `said` may use what `run` returned, as in `{done.name}`. `to` is empty: the page that
    the form was on.
    """

    async def handle(request: WebRequest) -> Response:
        done = await run(request)
        return request.redirect(to.format(done=done) or request.back, said.format(done=done))

    return post(path, handle)


def act(action: str, fields: str = "") -> Callable[[WebRequest], Awaitable[Any]]:
    """Run an action with the named fields of the form."""
    return lambda request: request.act(action, fields)
