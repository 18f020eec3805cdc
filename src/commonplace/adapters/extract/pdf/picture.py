"""Draw a page of a PDF, for readers who want to see it beside its text."""

import struct
import zlib
from base64 import b64encode
from math import sqrt

from commonplace.adapters.extract.input_file import Source
from commonplace.adapters.extract.pdf.document import open_document
from commonplace.errors import IngestFailed
from commonplace.model import Json

WIDTH = 1_100  # pixels, enough for small print on a screen
MOST_PIXELS = 4_000_000  # of pages that are far from square


def draw(source: Source, page: int) -> Json:
    """Return page `page`, counted from 1, as a PNG in base64."""
    document = open_document(source)
    if not 1 <= page <= len(document):
        raise IngestFailed(f"The PDF has {len(document)} pages.")
    drawn = document[page - 1]
    width, height = (max(each, 1.0) for each in drawn.get_size())
    scale = min(WIDTH / width, sqrt(MOST_PIXELS / (width * height)))
    pixels = drawn.render(scale=scale, rev_byteorder=True, prefer_bgrx=False).to_numpy()
    return {"png": b64encode(_png(pixels[:, :, :3].tobytes(), *pixels.shape[1::-1])).decode()}


def _png(rgb: bytes, width: int, height: int) -> bytes:
    """Encode rows of RGB without Pillow, which is in an extra."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        check = zlib.crc32(kind + body)
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", check)

    row = 3 * width
    lines = b"".join(b"\0" + rgb[at : at + row] for at in range(0, row * height, row))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", header),
            chunk(b"IDAT", zlib.compress(lines, 6)),
            chunk(b"IEND", b""),
        )
    )
