"""Keys that this server signs with. They lie in the data folder that all servers share, and not in
the database: a backup holds no credential that works."""

import secrets
from contextlib import suppress
from pathlib import Path

from commonplace.errors import StorageFailed
from commonplace.model import new_id


def signing_key(data_dir: Path, purpose: str) -> bytes:
    """Read a key, or create it."""
    file = data_dir / f"{purpose}.key"
    try:
        if not file.exists():
            _write(file)
        return file.read_bytes()
    except OSError as error:
        raise StorageFailed(
            f"The key that signs {purpose}s cannot be written: {error.strerror}."
        ) from error


def _write(file: Path) -> None:
    file.parent.mkdir(0o700, parents=True, exist_ok=True)  # with Postgres, nothing else makes it
    draft = file.with_name(f".{file.name}.{new_id()}")
    draft.touch(0o600)
    try:
        draft.write_bytes(secrets.token_bytes(32))
        with suppress(FileExistsError):  # another process was first
            file.hardlink_to(draft)
    finally:
        draft.unlink()
