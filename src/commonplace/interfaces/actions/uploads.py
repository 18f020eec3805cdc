"""Actions on uploads: request an address, and finish when its bytes have arrived."""

import re
from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator

from commonplace.interfaces.actions.action import Action
from commonplace.interfaces.actions.fields import (
    WHOLE,
    Id,
    InKb,
    Input,
    Name,
    Title,
    about,
    chars,
    number,
)
from commonplace.interfaces.actions.items import ADDED
from commonplace.interfaces.actions.shapes import Field, Shape, said
from commonplace.model import moment

_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+ *(;.*)?", re.ASCII)
_PATTERN = r"^[A-Za-z0-9_.+-]+/[A-Za-z0-9_.+-]+ *(;.*)?$"


def _media_type(given: str) -> str:
    if not _MEDIA_TYPE.fullmatch(given):
        raise ValueError("must be a media type such as application/pdf or audio/mpeg")
    return given


class NewUpload(Input):
    filename: Annotated[Name, about("With its ending", examples=["report.pdf"])]
    content_type: Annotated[
        str,
        AfterValidator(_media_type),
        chars(
            3,
            200,
            "What the file is; its first bytes are checked against this",
            json_schema_extra={"pattern": _PATTERN},
            examples=["application/pdf"],
        ),
    ]
    size: Annotated[int, number(1, 2**40, "In bytes, exactly", examples=[48_213]), WHOLE]


class FinishUpload(Input):
    upload_id: Annotated[Id, about("As the first step returned it")]
    title: Annotated[Title | None, about("Otherwise the file's own, or its name")] = None
    in_kb: InKb = True


UPLOAD = Shape(  # of the upload, and the address for its bytes
    "Upload",
    None,
    upload_id=Field(str, lambda made, call: made[0].id),
    url=said(str, 1),
    expires_at=Field(datetime, lambda made, call: moment(made[0].expires_at)),
)


def _finish(name: str, path: str, noun: str, description: str, document: bool) -> Action:
    return Action(
        name,
        f"Finish the upload of a {noun}",
        FinishUpload,
        "uploads.finish",
        ADDED,
        f"POST /api/v1/uploads/{path}",
        description=description,
        status=201,
        also={200: "The library had it already: the item that is there"},
        status_of=lambda added: 201 if added.created else 200,
        given={"document": document},
    )


ACTIONS = (
    Action(
        "create_upload",
        "Create an upload and get a signed URL",
        NewUpload,
        "uploads.announce",
        UPLOAD,
        "POST /api/v1/uploads/signed-url",
        description="Step 1 of 3. PUT the bytes to `url` before `expires_at`; no token is needed. "
        "To resume, send `Content-Range: bytes FROM-TO/SIZE`; an empty PUT with `Content-Range: "
        "bytes */SIZE` returns how many bytes have arrived.",
        status=201,
        address="url",
    ),
    _finish(
        "finalize_recording",
        "finalize",
        "recording",
        "Step 3 for audio and video: the item is `transcribing` until the transcript is ready.",
        document=False,
    ),
    _finish(
        "finalize_document",
        "finalize-document",
        "document",
        "Step 3 for PDF, images, Office files, HTML, Markdown and text: read within the call, "
        "then `ready`.",
        document=True,
    ),
)
