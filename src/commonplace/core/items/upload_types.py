"""Check that an uploaded file is of the type that its sender declared."""

from commonplace.core.ingest.sources import SPEECH
from commonplace.errors import Invalid

DOCUMENT, RECORDING = "/api/v1/uploads/finalize-document", "/api/v1/uploads/finalize"
_ALSO = {
    "image/jpg": "image/jpeg",
    "image/x-ms-bmp": "image/bmp",
    "image/x-bmp": "image/bmp",
    "image/heic": "image/heif",
    "application/x-pdf": "application/pdf",
    "": "application/octet-stream",
    "binary/octet-stream": "application/octet-stream",
}


def refuse_wrong_type(kind: str, declared: str, document: bool) -> None:
    said = declared.partition(";")[0].strip().lower()
    if _family(said) not in ("application/octet-stream", _family(kind)):
        found = "of an unknown type" if kind == "application/octet-stream" else f"those of {kind}"
        raise Invalid(f"The file was announced as {said}, but its first bytes are {found}.")
    if document == kind.startswith(SPEECH):
        right, what = (RECORDING, "recording") if document else (DOCUMENT, "document")
        raise Invalid(f"The file is a {what} ({kind}): finish it with POST {right}.")


def _family(kind: str) -> str:
    """Return the family of a media type. Containers say little about recordings, first bytes little
    about texts."""
    if kind.startswith(SPEECH) or kind == "application/ogg":
        return "recording"
    if kind.startswith("text/") or kind.endswith(("json", "xml", "x-subrip", "yaml")):
        return "text"
    return _ALSO.get(kind, kind)
