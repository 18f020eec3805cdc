"""Signed links that uploads are sent to: made here, checked here, and nowhere else."""

import asyncio
import hashlib
import hmac
import secrets
from contextlib import suppress
from pathlib import Path

from commonplace.errors import StorageFailed, Unauthorized
from commonplace.model import Upload, new_id, now
from commonplace.settings import Settings
from commonplace.store import Store


class UploadLinks:
    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._key_file = settings.data_dir / "upload.key"

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
        """Read the signing key, or create it. It lies in the data folder that all servers share."""
        try:
            if not self._key_file.exists():
                _write_key(self._key_file)
            return self._key_file.read_bytes()
        except OSError as error:
            raise StorageFailed(
                f"The key that signs upload links cannot be written: {error.strerror}."
            ) from error


def _write_key(file: Path) -> None:
    draft = file.with_name(f".upload.key.{new_id()}")
    draft.touch(0o600)
    try:
        draft.write_bytes(secrets.token_bytes(32))
        with suppress(FileExistsError):  # another process was first
            file.hardlink_to(draft)
    finally:
        draft.unlink()


def _sign(key: bytes, upload_id: str, expires: str) -> str:
    return hmac.new(
        key, f"{upload_id}:{expires}".encode("utf-8", "replace"), hashlib.sha256
    ).hexdigest()
