"""A zip file and those within it, as one list of files."""

import zipfile
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path, PurePosixPath

from commonplace.adapters.extract.input_file import Caps
from commonplace.adapters.extract.zip_xml import DAMAGE
from commonplace.errors import IngestFailed
from commonplace.model import Saved

_MOST_FILES, _DEEPEST = 50_000, 2
_UNPACKED = 10  # times as many bytes as of an Office file
_LARGEST_FILE = 200_000_000


class Archive:
    """Sizes are checked before anything is unpacked."""

    def __init__(self, path: Path, caps: Caps) -> None:
        self.files: dict[str, tuple[zipfile.ZipFile, zipfile.ZipInfo]] = {}
        self.lost: list[Saved] = []
        self._left = caps.unpacked_megabytes * 1_000_000 * _UNPACKED
        try:
            self._list(zipfile.ZipFile(path), "", 0)
        except DAMAGE:
            raise IngestFailed("The zip file is damaged and cannot be opened.") from None

    def _list(self, archive: zipfile.ZipFile, within: str, depth: int) -> None:
        infos = archive.infolist()
        if len(self.files) + len(infos) > _MOST_FILES:
            raise IngestFailed(f"The zip file contains more than {_MOST_FILES:,} files.")
        for info in infos:
            self._left -= info.file_size
            if self._left < 0 or info.file_size > _LARGEST_FILE:
                raise IngestFailed("The zip file is too large when unpacked. Import it in parts.")
            parts = PurePosixPath(info.filename.replace("\\", "/")).parts
            if info.is_dir() or any(p.startswith((".", "__MACOSX")) and p != ".." for p in parts):
                continue
            if not parts or ".." in parts or parts[0] == "/":
                self.lost.append(Saved(info.filename[:300], lost="Its path leads out of the zip."))
            elif info.filename.lower().endswith(".zip") and depth < _DEEPEST:
                self._list(zipfile.ZipFile(BytesIO(archive.read(info))), within, depth + 1)
            else:
                self.files.setdefault(within + "/".join(parts), (archive, info))

    def read(self, path: str) -> bytes:
        archive, info = self.files[path]
        try:
            return archive.read(info)
        except RuntimeError:
            raise IngestFailed("The zip file is encrypted. Unpack it first.") from None
        except DAMAGE:
            raise IngestFailed(f"{path} in the zip file is damaged.") from None

    def at(self, path: str) -> datetime | None:
        """Return when the file was changed, as the zip file says, without a time zone."""
        try:
            found = datetime(*self.files[path][1].date_time, tzinfo=UTC)
        except ValueError:
            return None
        return found if found.year > 1980 else None  # the first year stands for none
