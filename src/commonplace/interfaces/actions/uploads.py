"""Actions on uploads: request an address, and finish when its bytes have arrived."""

import mimetypes
import re
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, model_validator

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
    aliases: ClassVar = {"mime": "content_type"}

    filename: Annotated[
        Name | None, about("With its ending; `upload` if left out", examples=["report.pdf"])
    ] = None
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

    @model_validator(mode="before")
    @classmethod
    def _name_file(cls, values: Any) -> Any:
        if not isinstance(values, dict) or values.get("filename") is not None:
            return values
        return values | {"filename": f"upload{_ending(str(values.get('content_type', '')))}"}


class FinishUpload(Input):
    upload_id: Annotated[Id, about("As the first step returned it")]
    path: Annotated[
        Id | None, about("In the place of `upload_id`, as the first step returned it")
    ] = None
    mime: Annotated[str | None, chars(0, 200, "As in the first step")] = None
    size: Annotated[int | None, number(0, 2**40, "As in the first step"), WHOLE] = None
    title: Annotated[Title | None, about("Otherwise the file's own, or its name")] = None
    in_kb: InKb = True

    @model_validator(mode="before")
    @classmethod
    def _read_path(cls, values: Any) -> Any:
        path = values.get("path") if isinstance(values, dict) else None
        if not isinstance(path, str) or values.get("upload_id") is not None:
            return values
        return values | {"upload_id": path.removeprefix(_FOLDER)}


_FOLDER = "uploads/"


def _ending(media_type: str) -> str:
    return mimetypes.guess_extension(media_type.partition(";")[0].strip().lower()) or ""


def _kind(media_type: str) -> str:
    family = media_type.partition("/")[0].lower()
    return family if family in ("audio", "video", "image") else "document"


def _of_type(read: Callable[[str], str]) -> Field:
    return Field(str, lambda made, call: read(made[0].content_type))


UPLOAD = Shape(  # of the upload, and the address for its bytes
    "Upload",
    None,
    upload_id=Field(str, lambda made, call: made[0].id),
    url=said(str, 1),
    expires_at=Field(datetime, lambda made, call: moment(made[0].expires_at)),
    path=Field(str, lambda made, call: _FOLDER + made[0].id, "For finalize"),
    signed_url=said(str, 1, "The same as `url`"),
    mime=_of_type(str),
    kind=_of_type(_kind),
    extension=_of_type(lambda media_type: _ending(media_type).removeprefix(".")),
    max_bytes=Field(int, lambda made, call: call.settings.upload_max_mb * 1_000_000),
    finalize_endpoint=_of_type(
        lambda media_type: (
            RECORDING if _kind(media_type) in ("audio", "video") else RECORDING + "-document"
        )
    ),
)
RECORDING = "/api/v1/uploads/finalize"


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
        address="url signed_url",
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
