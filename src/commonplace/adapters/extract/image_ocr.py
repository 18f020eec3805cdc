"""Images: their text, recognized by RapidOCR, which reads Latin scripts, Chinese and Japanese.

Its models are part of its package. Other scripts are recognized by Tesseract, where one of its
models for them is installed.
"""

import os
from collections.abc import Iterator, Sequence
from functools import cache
from math import inf
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import rapidocr
import tesserocr
from PIL import Image, ImageFilter, ImageOps, ImageSequence
from rapidocr.utils.output import RapidOCROutput

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

# The mean confidence below which the "text" is texture or a script that the models do not know
# (benchmarks/quality/scans.py): noisy Latin pages get .97, Cyrillic and Greek at most .88.
_SURE = 0.9
_SURE_TESSERACT = 55  # percent
_SMALL, _LARGE = 1000, 4000  # pixels of the longer side, between which recognition works best
_MODELS = Path(rapidocr.__file__).parent / "models"
_DEBIAN = Path("/usr/share/tesseract-ocr/5/tessdata")


class Line(NamedTuple):
    box: Sequence[float]  # left, top, right, bottom
    text: str

    @property
    def height(self) -> float:
        return self.box[3] - self.box[1]

    @property
    def middle(self) -> float:
        return (self.box[1] + self.box[3]) / 2


def read(source: Source, caps: Caps) -> Extracted:
    process_limits.limit_cpu(caps.ocr_cpu_seconds)
    known = ["Latin scripts", "Chinese", "Japanese", *_other_languages()]
    texts = take_until_full(
        ((page, text_in(frame)) for page, frame in enumerate(_frames(source, caps), 1)),
        "No text that OCR can read was found in the image. "
        f"It reads {', '.join(known)}; install Tesseract's models for other scripts.",
    )
    return (
        join_pages(source.title, texts) if len(texts) > 1 else Extracted(source.title, texts[0][1])
    )


def text_in(image: Image.Image) -> str:
    """Return the paragraphs in an image; "" if it has none."""
    return "\n\n".join(filter(None, map(_text_in_band, _bands(image))))


def _bands(image: Image.Image) -> Iterator[Image.Image]:
    """Cut tall screenshots into parts whose letters stay large enough, between rows of text."""
    top, most = 0, int(image.width * 1.6)
    while image.height - top > most:
        low = top + most * 3 // 4
        grey = np.asarray(image.crop((0, low, image.width, top + most)).convert("L"), np.float32)
        cut = low + int(np.ptp(grey, axis=1).argmin())
        yield image.crop((0, top, image.width, cut))
        top = cut
    yield image.crop((0, top, image.width, image.height)) if top else image


def _text_in_band(image: Image.Image) -> str:
    prepared = _prepare(image)
    found = cast("RapidOCROutput", _engine()(np.asarray(prepared.convert("RGB"))))
    if found.txts and found.boxes is not None and found.scores:
        lines = [
            Line((*box.min(axis=0), *box.max(axis=0)), text)
            for box, text in zip(found.boxes, found.txts, strict=True)
        ]
        lengths = [len(text) for text in found.txts]
        if np.average(found.scores, weights=lengths) >= _SURE and _enough("".join(found.txts)):
            return clean_text("\n\n".join(map(_joined, _blocks(lines))))
    return _by_tesseract(prepared) if _other_languages() else ""


def _enough(text: str) -> bool:
    return sum(map(str.isalnum, text)) >= 2


def _joined(block: list[Line]) -> str:
    return "\n\n".join(paragraphs.split_paragraphs([line.text for line in block]))


def _blocks(lines: list[Line]) -> list[list[Line]]:
    """Return the lines of each column or paragraph, in reading order (recursive XY cut)."""
    height = float(np.median([line.height for line in lines]))
    columns = _split(lines, 0, 2, 1.2 * height)
    # Columns of short entries are a table, which is read row by row.
    if not all(
        np.median([line.box[2] - line.box[0] for line in each]) > 8 * height for each in columns
    ):
        columns = [lines]
    parts = columns if len(columns) > 1 else _split(lines, 1, 3, 0.9 * height)
    if len(parts) == 1:
        rows = _rows(lines, height)
        return [[row] for row in rows] if len(lines) >= 2 * len(rows) else [rows]
    return [block for part in parts for block in _blocks(part)]


def _split(lines: list[Line], start: int, end: int, least: float) -> list[list[Line]]:
    """Split lines at gaps of at least this size along an axis."""
    parts: list[list[Line]] = []
    reached = -inf
    for line in sorted(lines, key=lambda line: line.box[start]):
        if line.box[start] - reached > least:
            parts.append([])
        parts[-1].append(line)
        reached = max(reached, line.box[end])
    return parts


def _rows(lines: list[Line], height: float) -> list[Line]:
    """Join the pieces of one row, and order the rows."""
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda line: line.middle):
        if not rows or line.middle - rows[-1][0].middle > height / 2:
            rows.append([])
        rows[-1].append(line)
    return [
        row[0]._replace(text=" ".join(one.text for one in sorted(row, key=lambda one: one.box[0])))
        for row in rows
    ]


def _by_tesseract(image: Image.Image) -> str:
    # The filter removes the grain of poor scans, but also the thin lines of small letters.
    return _recognize(image) or _recognize(image.filter(ImageFilter.MedianFilter(3)))


def _recognize(image: Image.Image) -> str:
    engine = _tesseract()
    engine.SetImage(image)
    read = engine.GetUTF8Text()
    sure = engine.MeanTextConf()
    engine.Clear()
    if sure < _SURE_TESSERACT or not _enough(read):
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
def _engine() -> rapidocr.RapidOCR:
    # Models are named by path: by language, the package would look for them on the network.
    return rapidocr.RapidOCR(
        params={
            "Global.use_cls": False,
            "Global.log_level": "error",
            "Det.model_path": str(next(_MODELS.glob("*_det_*.onnx"))),
            "Rec.model_path": str(next(_MODELS.glob("*_rec_*.onnx"))),
            # Within the reader's memory: text is found in a small image, and read from the large.
            "Global.max_side_len": _LARGE,
            "Det.limit_type": "max",
            "Det.limit_side_len": 960,
            "Rec.rec_batch_num": 1,
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        }
    )


def _models() -> str:
    return os.environ.get("TESSDATA_PREFIX") or str(_DEBIAN)


@cache
def _other_languages() -> list[str]:
    """Return the languages of Tesseract's models here; empty without any."""
    if not Path(_models()).is_dir():
        return []
    _, installed = tesserocr.get_languages(_models())
    return sorted(set(installed) - {"eng", "osd"})  # osd: only for the orientation


@cache
def _tesseract() -> tesserocr.PyTessBaseAPI:
    tesserocr.set_leptonica_log_level(tesserocr.LeptLogLevel.NONE)
    engine = tesserocr.PyTessBaseAPI(path=_models(), lang="+".join(_other_languages()))
    engine.SetVariable("debug_file", "/dev/null")
    return engine
