"""Files of items: the pages that they were read from."""

from starlette.requests import Request
from starlette.responses import Response

from commonplace.interfaces.http.source_files import saved_page
from commonplace.interfaces.rest.routes import NamedRoute


async def _page(request: Request) -> Response:
    return await saved_page(
        request.app.state.services, request.state.caller, request.path_params["item_id"]
    )


ROUTES = [NamedRoute("/api/v1/items/{item_id}/page", _page, methods=["GET"])]
