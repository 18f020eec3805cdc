"""Checks of uploads: the signed links that they are sent to, and whether a file has the declared
type."""

import asyncio
import hashlib
import hmac
from dataclasses import dataclass

from commonplace.core.ingest.sources import SPEECH
from commonplace.core.people.signing_key import signing_key
from commonplace.errors import Invalid, Unauthorized
from commonplace.model import Upload, now
from commonplace.settings import Settings
from commonplace.store import Store


@dataclass(eq=False)
class UploadLinks:
    _store: Store
    _settings: Settings

    async def sign(self, upload: Upload) -> str:
        """Return the path that takes the upload's bytes until it expires."""
        expires = str(int(upload.expires_at.timestamp()))
        signature = _sign(await asyncio.to_thread(self._key), upload.id, expires)
        return f"/api/v1/uploads/{upload.id}/content?expires={expires}&signature={signature}"

    async def check(self, upload_id: str, expires: str, signature: str) -> Upload:
        """Return the upload that a signed link belongs to. Raises Unauthorized for any other."""
        if not hmac.compare_digest(
            _sign(await asyncio.to_thread(self._key), upload_id, expires).encode(),
            signature.encode("utf-8", "replace"),
        ):
            raise Unauthorized(
                "The upload link is not valid. Request one with POST /api/v1/uploads/signed-url."
            )
        if int(expires) < now().timestamp():
            raise Unauthorized(
                "The upload link has expired. "
                "Request a new one with POST /api/v1/uploads/signed-url."
            )
        return await self._store.uploads.get(upload_id)

    def _key(self) -> bytes:
        return signing_key(self._settings.data_dir, "upload")


def _sign(key: bytes, upload_id: str, expires: str) -> str:
    return hmac.new(
        key, f"{upload_id}:{expires}".encode("utf-8", "replace"), hashlib.sha256
    ).hexdigest()


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
