"""Files that belong to an item's text, for browsers: never shown as pages of ours."""

import asyncio

from starlette.responses import Response

from commonplace.core.items.source_files import unpack
from commonplace.core.services import Services
from commonplace.errors import NotFound
from commonplace.model import Caller, FileRole

# No script, no form, no request: what a page loads from elsewhere stays away.
_SANDBOX = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "font-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "private, no-cache",
}


# Its address changes with the picture.
_PICTURE = {
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "private, max-age=31536000, immutable",
}


async def thumbnail(services: Services, caller: Caller, item_id: str) -> Response:
    """Return the small picture of an item."""
    file = await services.files.picture(caller, item_id)
    body = await services.files.read(file)
    return Response(body, headers=_PICTURE, media_type="image/webp")


async def kept_image(services: Services, caller: Caller, item_id: str, image_id: str) -> Response:
    """Return an image that an item's text shows."""
    for file in await services.files.images(caller, item_id):
        if file.id == image_id:
            body = await services.files.read(file)
            return Response(body, headers=_PICTURE, media_type="image/webp")
    raise NotFound("The item has no such image.")


async def saved_page(services: Services, caller: Caller, item_id: str) -> Response:
    """Return the page that an item's text was read from."""
    file = await services.files.find(caller, item_id, FileRole.PAGE)
    if file is None:
        raise NotFound("The page as it was fetched was not kept.")
    body = await asyncio.to_thread(unpack, await services.files.read(file))
    headers = _SANDBOX | {"Content-Type": file.media_type}
    return Response(body, headers=headers)
