"""Uploads in three steps: request an address, PUT the bytes to it, finalize."""

import re
from typing import Annotated, Any

from fastapi import Body, Request, Response
from pydantic import AfterValidator, BeforeValidator, Field
from starlette.requests import ClientDisconnect
from typing_extensions import TypedDict

from commonplace.core.items.uploads import Part
from commonplace.errors import Invalid
from commonplace.interfaces.actions import items as item_shapes
from commonplace.interfaces.actions.items import Input, Name, Title, whole_number
from commonplace.interfaces.rest.routes import ApiRequest, api_router

router = api_router("uploads")
_RANGE = re.compile(r"bytes (?:(\d{1,15})-(\d{1,15})|\*)/(\d{1,15})")
_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+ *(;.*)?", re.ASCII)


def _media_type(text: str) -> str:
    if not _MEDIA_TYPE.fullmatch(text):
        raise ValueError("must be a media type such as application/pdf or audio/mpeg")
    return text


class UploadRequest(Input):
    filename: Annotated[Name, Field(description="With its ending", examples=["report.pdf"])]
    content_type: Annotated[
        str,
        AfterValidator(_media_type),
        Field(
            min_length=3,
            max_length=200,
            json_schema_extra={"pattern": r"^[A-Za-z0-9_.+-]+/[A-Za-z0-9_.+-]+ *(;.*)?$"},
            examples=["application/pdf"],
            description="What the file is; its first bytes are checked against this",
        ),
    ]
    size: Annotated[
        int,
        BeforeValidator(whole_number),
        Field(ge=1, le=2**40, description="In bytes, exactly", examples=[48_213]),
    ]


class SignedUrl(TypedDict):
    upload_id: str
    url: str
    expires_at: item_shapes.Moment


@router.post(
    "/uploads/signed-url",
    status_code=201,
    summary="Create an upload and get a signed URL",
)
async def signed_url(api: ApiRequest, body: UploadRequest, request: Request) -> SignedUrl:
    """Step 1 of 3. PUT the bytes to `url` before `expires_at`; no token is needed. To resume, send
    `Content-Range: bytes FROM-TO/SIZE`; an empty PUT with `Content-Range: bytes */SIZE` returns how
    many bytes have arrived."""
    upload, url = await api.services.uploads.announce(
        api.caller, body.filename, body.content_type, body.size
    )
    if url.startswith("/"):
        url = (api.services.settings.public_url or str(request.base_url)).rstrip("/") + url
    return {"upload_id": upload.id, "url": url, "expires_at": item_shapes.moment(upload.expires_at)}


class ReceivedBytes(TypedDict):
    upload_id: str
    received: int


# Not in the schema: with an object store the address is the store's, and nobody should build one
# by hand.
@router.put("/uploads/{upload_id}/content", include_in_schema=False)
async def receive(
    upload_id: str, request: Request, expires: str = "", signature: str = ""
) -> ReceivedBytes:
    uploads = request.app.state.services.uploads
    part = _part(request.headers.get("content-range"))
    try:
        received = await uploads.receive(upload_id, expires, signature, part, request.stream())
    except ClientDisconnect:
        raise Invalid("The connection was lost before all bytes had come.") from None
    return {"upload_id": upload_id, "received": received}


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


UploadId = Annotated[str, Field(min_length=1, max_length=200)]


class FinalizeRequest(Input):
    upload_id: UploadId
    title: Annotated[Title | None, Field(description="Otherwise the file's own, or its name")] = (
        None
    )
    in_kb: Annotated[bool, Field(description="Whether it is searchable")] = True


_AGAIN: dict[int | str, dict[str, Any]] = {
    200: {
        "model": item_shapes.AddResult,
        "description": "The library had it already: the item that is there",
    }
}


@router.post(
    "/uploads/finalize",
    status_code=201,
    summary="Finish the upload of a recording",
    responses=_AGAIN,
)
async def finalize(
    api: ApiRequest, body: Annotated[FinalizeRequest, Body()], response: Response
) -> item_shapes.AddResult:
    """Step 3 for audio and video: the item is `transcribing` until the transcript is ready."""
    return await _finish(api, body, response, document=False)


@router.post(
    "/uploads/finalize-document",
    status_code=201,
    summary="Finish the upload of a document",
    responses=_AGAIN,
)
async def finalize_document(
    api: ApiRequest, body: Annotated[FinalizeRequest, Body()], response: Response
) -> item_shapes.AddResult:
    """Step 3 for PDF, images, Office files, HTML, Markdown and text: read within the call, then
    `ready`."""
    return await _finish(api, body, response, document=True)


async def _finish(
    api: ApiRequest, body: FinalizeRequest, response: Response, *, document: bool
) -> item_shapes.AddResult:
    added = await api.services.uploads.finish(
        api.caller, body.upload_id, document=document, title=body.title or "", in_kb=body.in_kb
    )
    response.status_code = 201 if added.created else 200
    return item_shapes.add_result(added)
