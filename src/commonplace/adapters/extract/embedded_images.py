"""Text in the images of documents, recognized within limits of number, size and time."""

import re
import time
from hashlib import sha256
from importlib.util import find_spec
from io import BytesIO

from commonplace.adapters.extract import process_limits
from commonplace.adapters.extract.input_file import Caps
from commonplace.errors import IngestFailed, extra

_NARROWEST, _SMALLEST = 40, 20_000  # pixels; smaller images are icons
_SHARE = 0.5  # of the time that a file has, after which its other images are left unread
_FILE_NAME = re.compile(r"\.(?:png|jpe?g|gif|bmp|tiff?|webp|emf|wmf|svg)$", re.I)


class EmbeddedImages:
    def __init__(self, caps: Caps) -> None:
        self._caps = caps
        self._seen: set[bytes] = set()
        self._began: tuple[float, float] | None = None
        self._can_read = find_spec("rapidocr") is not None and find_spec("tesserocr") is not None

    def text(self, data: bytes) -> str:
        """Return the text in an image; "" for one that has none, or that was read before."""
        name = sha256(data).digest()
        is_new = name not in self._seen and len(self._seen) < self._caps.scanned_pages
        self._seen.add(name)
        return self._recognize(data) if is_new and self._can_read and self._has_time() else ""

    def require(self, found: str) -> None:
        """Raise IngestFailed if there is no text, and images that nothing here can read."""
        if not found and self._seen and not self._can_read:
            with extra("ocr", "Text in images", IngestFailed):
                raise ModuleNotFoundError

    def _recognize(self, data: bytes) -> str:
        from PIL import Image, ImageOps

        Image.MAX_IMAGE_PIXELS = None  # our own limit follows
        formats = ("PNG", "JPEG", "WEBP", "TIFF", "GIF", "BMP")
        try:
            with Image.open(BytesIO(data), formats=formats) as image:
                pixels = image.width * image.height
                if min(image.size) < _NARROWEST or not _SMALLEST <= pixels <= self._caps.pixels:
                    return ""
                upright = ImageOps.exif_transpose(image)
        except (OSError, SyntaxError, ValueError, EOFError):  # of Pillow's decoders
            return ""
        from commonplace.adapters.extract import image_ocr  # takes a second

        return image_ocr.text_in(upright)

    def _has_time(self) -> bool:
        if self._began is None:
            process_limits.limit_cpu(self._caps.ocr_cpu_seconds)
            self._began = time.process_time(), time.monotonic()
        worked, waited = (
            now - then
            for now, then in zip((time.process_time(), time.monotonic()), self._began, strict=True)
        )
        return worked < _SHARE * self._caps.ocr_cpu_seconds and waited < _SHARE * self._caps.seconds


def alt_text(stated: str | None) -> str:
    """Return what a document says that an image shows, unless that is only a file's name."""
    words = " ".join((stated or "").split())
    return "" if _FILE_NAME.search(words) else words
