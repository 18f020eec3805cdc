"""Small pictures of files: of an image, the first page of a PDF, the cover of a book or recording,
a still of a video. Decoded and written anew, so that nothing of a hostile file is passed on."""

from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import IO

from lxml import etree
from PIL import Image, ImageOps

from commonplace.adapters.extract import media_type
from commonplace.adapters.extract.input_file import Caps, Source
from commonplace.adapters.extract.zip_xml import Package, resolve

_OPF = "{http://www.idpf.org/2007/opf}"
_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "AVIF")
_QUALITY = 75
_STILL = 0.1  # the share of a video before its still: the first frame is often black


def draw(source: Source, caps: Caps, edge: int, least: int) -> str | None:
    """Return a picture of at most `edge` pixels as WebP in base64; None if the file has none, or
    one whose sides are shorter than `least`."""
    kind = media_type.sniff(source.path, source.media_type, source.file_name)
    find = _FINDERS.get(kind) or _FINDERS.get(kind.partition("/")[0])
    image = find(source, caps, edge) if find else None
    if image is None or min(image.size) < least:
        return None
    image = ImageOps.exif_transpose(image)
    image.thumbnail((edge, edge))
    if min(image.size) < 1:
        return None
    if image.has_transparency_data:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    out = BytesIO()
    image.convert("RGB").save(out, "WEBP", quality=_QUALITY)
    return b64encode(out.getvalue()).decode()


def _open(file: Path | IO[bytes], caps: Caps, edge: int) -> Image.Image | None:
    """Open an image whose size, which is known before it is decoded, is within the limit."""
    Image.MAX_IMAGE_PIXELS = None  # our own limit is lower
    image = Image.open(file, formats=_FORMATS)
    if image.width * image.height > caps.pixels:
        return None
    image.draft("RGB", (2 * edge, 2 * edge))
    return image


def _image(source: Source, caps: Caps, edge: int) -> Image.Image | None:
    return _open(source.path, caps, edge)


def _first_page(source: Source, caps: Caps, edge: int) -> Image.Image | None:
    import pypdfium2

    with pypdfium2.PdfDocument(source.path) as document:
        page = document[0]
        bitmap = page.render(scale=edge / max(*page.get_size(), 1))
        image: Image.Image = bitmap.to_pil().copy()
    return image


def _book_cover(source: Source, caps: Caps, edge: int) -> Image.Image | None:
    with Package(source, caps) as package:
        container = package.read_xml("META-INF/container.xml")
        listing = next(filter(None, (each.get("full-path") for each in container.iter())), "")
        name = _cover_of(package.read_xml(listing))
        return (
            _open(BytesIO(package.read_part(resolve(listing, name))), caps, edge) if name else None
        )


def _cover_of(book: etree._Element) -> str | None:
    """Return the path of a book's cover, as EPUB 3 and EPUB 2 name it."""
    items = list(book.iter(_OPF + "item"))
    named = {
        meta.get("content") for meta in book.iter(_OPF + "meta") if meta.get("name") == "cover"
    }
    for item in items:
        if "cover-image" in (item.get("properties") or "").split() or item.get("id") in named:
            return str(item.get("href"))
    return None


def _frame(source: Source, caps: Caps, edge: int) -> Image.Image | None:
    """Return a still of a video, or the cover of a recording."""
    import av

    with av.open(str(source.path)) as container:
        if not container.streams.video:
            return None
        stream = container.streams.video[0]
        if stream.codec_context.width * stream.codec_context.height > caps.pixels:
            return None
        if container.duration:
            with suppress(av.FFmpegError):
                container.seek(int(container.duration * _STILL))
        frame = next(container.decode(stream), None)
        return Image.fromarray(frame.to_ndarray(format="rgb24")) if frame else None


_Find = Callable[[Source, Caps, int], Image.Image | None]
_FINDERS: dict[str, _Find] = {
    "image": _image,
    "application/pdf": _first_page,
    media_type.EPUB: _book_cover,
    "audio": _frame,
    "video": _frame,
}
