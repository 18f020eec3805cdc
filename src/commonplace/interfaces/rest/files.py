"""Files of items: the pages that they were read from, and their pictures."""

from starlette.requests import Request
from starlette.responses import Response

from commonplace.interfaces.http.source_files import saved_page, thumbnail
from commonplace.interfaces.rest.routes import NamedRoute


async def _page(request: Request) -> Response:
    return await saved_page(
        request.app.state.services, request.state.caller, request.path_params["item_id"]
    )


async def _thumbnail(request: Request) -> Response:
    return await thumbnail(
        request.app.state.services, request.state.caller, request.path_params["item_id"]
    )


ROUTES = [
    NamedRoute("/api/v1/items/{item_id}/page", _page, methods=["GET"]),
    NamedRoute("/api/v1/items/{item_id}/thumbnail", _thumbnail, methods=["GET"]),
]
