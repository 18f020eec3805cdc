"""The bytes of an upload, sent to the address that its first step returned."""

import re

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from commonplace.core.items.uploads import Part
from commonplace.errors import Invalid
from commonplace.interfaces.http.gate import Json
from commonplace.interfaces.rest.routes import NamedRoute

_RANGE = re.compile(r"bytes (?:(\d{1,15})-(\d{1,15})|\*)/(\d{1,15})")


async def _receive(request: Request) -> Response:
    """Take bytes. Not in the schema: with an object store the address is the store's."""
    uploads, asked = request.app.state.services.uploads, request.query_params
    upload_id = request.path_params["upload_id"]
    part = _part(request.headers.get("content-range"))
    try:
        received = await uploads.receive(
            upload_id, asked.get("expires", ""), asked.get("signature", ""), part, request.stream()
        )
    except ClientDisconnect:
        raise Invalid("The connection was lost before all bytes arrived.") from None
    return Json({"upload_id": upload_id, "received": received})


def _part(header: str | None) -> Part:
    if header is None:
        return Part()
    match = _RANGE.fullmatch(header.strip())
    if match is None:
        raise Invalid(
            "Content-Range must read `bytes FROM-TO/SIZE`, or `bytes */SIZE` to ask how many bytes "
            "are there."
        )
    if match[1] is None:
        return Part(None, int(match[3]))
    start, end, total = map(int, match.groups())
    if not start <= end < total:
        raise Invalid(
            f"Content-Range says from {start} to {end} of {total} bytes, which cannot be."
        )
    return Part(start, total)


ROUTES = [NamedRoute("/api/v1/uploads/{upload_id}/content", _receive, methods=["PUT"])]
