"""What is kept of pages, Office files, e-books and PDFs, in the working tree and in an older revision.

    python benchmarks/sources.py --pages FOLDER --before 22f4ccaa --write docs/lab/sources.md

FOLDER holds one folder a page with source.html and expected.html, as Readability's test pages. The other files are made
here of texts that we did not write: the descriptions in Markdown of installed packages. pandoc writes them as docx,
pptx, epub and HTML, Chromium prints the HTML as PDF; what pandoc's HTML holds is what is looked for in each. The sheet
is written by openpyxl. pandoc has to be on the PATH, Chromium where the tests have it.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections import defaultdict
from datetime import date, datetime, time as clock, timedelta
from importlib.metadata import distributions
from pathlib import Path
from tempfile import TemporaryDirectory

from lxml import html

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
WANTED = {"links": 0.9, "quotes": 0.9, "list items": 0.85, "table cells": 0.9, "headings": 0.9}
WANTED |= {"image texts": 0.7, "code blocks": 0.85}
MOST_TEXTS = 60
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(<?([^)\s>]*)")
LINK_OR_IMAGE = re.compile(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?:[^()]|\([^)]*\))*\)")
TYPES = {
    "pages": "text/html",
    "pdf": "application/pdf",
    "epub": "application/epub+zip",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
CELLS = {
    "date": (date(2024, 3, 2), "yyyy-mm-dd", "2024-03-02"),
    "time": (clock(4, 12), "hh:mm", "04:12"),
    "share": (0.257, "0.0%", "25.7%"),
    "money": (1234.5, "#,##0.00", "1,234.50"),
    "moment": (datetime(2024, 3, 2, 4, 12), "yyyy-mm-dd hh:mm", "2024-03-02 04:12"),
    "hours": (timedelta(hours=30, minutes=5), "[h]:mm", "30:05"),
}


def norm(text: str | None) -> str:
    return re.sub(r"[\W_]+", "", text or "").casefold()


def expected(path: Path) -> dict[str, list[tuple[str, str]]]:
    tree = html.fromstring(path.read_text(encoding="utf-8", errors="replace") or "<p/>")

    def words(tags: tuple[str, ...], most: int, fewest: int = 1) -> list[tuple[str, str]]:
        found = (norm(node.text_content()) for node in tree.iter(*tags))
        return [(text[:most], "") for text in found if len(text) >= fewest]

    def own(item: html.HtmlElement) -> str:
        inner = (
            ("" if child.tag in ("ul", "ol") else child.text_content()) + (child.tail or "")
            for child in item
        )
        return norm((item.text or "") + "".join(inner))[:25]

    tables = [
        table
        for table in tree.iter("table")
        if any(len(list(row.iter("td", "th"))) > 1 for row in table.iter("tr"))
    ]
    cells = (norm(cell.text_content())[:30] for table in tables for cell in table.iter("td", "th"))
    return {
        "links": [
            (norm(link.text_content())[:60], link.get("href"))
            for link in tree.iter("a")
            if (link.get("href") or "").startswith("http") and norm(link.text_content())
        ],
        "quotes": words(("blockquote",), 40, 20),
        "list items": [(text, "") for text in map(own, tree.iter("li")) if len(text) > 3],
        "table cells": [(cell, "") for cell in cells if cell],
        "code blocks": words(("pre",), 60, 6),
        "headings": words(HEADINGS, 60),
        "image texts": [
            (norm(image.get("alt"))[:60], "")
            for image in tree.iter("img")
            if len(norm(image.get("alt"))) > 5
        ],
        "paragraphs": words(("p",), 60, 40),
    }


def kept(markdown: str, want: dict[str, list[tuple[str, str]]]) -> dict[str, tuple[int, int]]:
    links = LINK.findall(markdown)
    texts, addresses = {norm(text) for text, _ in links}, {address for _, address in links}
    plain = LINK_OR_IMAGE.sub(r"\1", markdown)

    def lines(pattern: str) -> str:
        begin = re.compile(pattern)
        return norm(
            "\n".join(begin.sub("", line) for line in plain.split("\n") if begin.match(line))
        )

    places = {
        "quotes": lines(r"\s*>"),
        "list items": lines(r"\s*(?:[-*+]|\d+[.)])\s"),
        "table cells": lines(r"\s*\|"),
        "code blocks": norm("\n".join(re.findall(r"```.*?\n(.*?)```", plain, re.S))),
        "headings": lines(r"\s*#+\s"),
    }
    everything = norm(plain)
    counts = {}
    for kind, wanted in want.items():
        if kind == "links":
            found = sum(text in texts or address in addresses for text, address in wanted)
        else:
            found = sum(text in places.get(kind, everything) for text, _ in wanted)
        counts[kind] = (found, len(wanted))
    return counts


def write_files(folder: Path) -> None:
    """Write the texts in every format, and what is expected of them."""
    texts = sorted(
        (str(found.metadata["Name"]), str(found.metadata.get_payload()))
        for found in distributions()
        if "markdown" in str(found.metadata.get("Description-Content-Type"))
    )
    picked = [text for text in texts if 2000 < len(text[1]) < 60_000][:MOST_TEXTS]
    for name, text in picked:
        source = folder / f"{name}.md"
        source.write_text(re.sub(r"!(?=\[)|<img[^>]*>", "", text), "utf-8")
        for kind in ("html", "docx", "pptx", "epub"):
            target = folder / f"{name}.{kind}"
            asked = ["pandoc", "-f", "gfm", "-s", "--metadata", f"title={name}", "--quiet"]
            subprocess.run([*asked, "-o", target, source], check=True)
    print_pdfs(folder)
    write_sheet(folder / "cells.xlsx")


def print_pdfs(folder: Path) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path="/usr/bin/chromium-headless-shell")
        page = browser.new_page(java_script_enabled=False, offline=True)
        for source in sorted(folder.glob("*.html")):
            page.goto(source.as_uri())
            page.pdf(path=source.with_suffix(".pdf"), format="A4")
        browser.close()


def write_sheet(path: Path) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    for name, (value, shown_as, _) in CELLS.items():
        book.active.append([name, value])
        book.active.cell(book.active.max_row, 2).number_format = shown_as
    book.active.append(["site", "heron"])
    book.active.cell(book.active.max_row, 2).hyperlink = "https://heron.example/"
    book.save(path)


def read(folder: Path, pages: Path) -> None:
    """Read all files with the package on the path; print one line of JSON a file."""
    from commonplace.adapters.extract import Caps, formats
    from commonplace.adapters.extract.input_file import Source
    from commonplace.errors import IngestFailed

    files = [("pages", path) for path in sorted(pages.glob("*/source.html"))]
    files += [(kind, path) for kind in TYPES for path in sorted(folder.glob(f"*.{kind}"))]
    for kind in TYPES:  # imports are not what is measured
        first = next((path for each, path in files if each == kind), None)
        for each, path in [(kind, first)] * (first is not None) + [
            f for f in files if f[0] == kind
        ]:
            began = time.process_time()
            try:
                found = formats.read(Source(path, TYPES[each], url="https://a.example/b/"), Caps())
                text, about = found.text, [found.author, str(found.published_at)]
            except IngestFailed as failed:
                text, about = "", [failed.message]
            spent = time.process_time() - began
            said = {"kind": each, "path": str(path), "text": text, "about": about, "cpu": spent}
            print(json.dumps(said))


def measured(tree: Path, folder: Path, pages: Path) -> dict[str, dict[str, str]]:
    """Return what a revision keeps, by kind of file and of structure."""
    asked = [sys.executable, __file__, "--read", folder, "--pages", pages]
    done = subprocess.run(
        asked, env=os.environ | {"PYTHONPATH": str(tree / "src")}, capture_output=True, check=True
    )
    rows = {row["path"]: row for row in map(json.loads, done.stdout.splitlines())}
    totals: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    spent: dict[str, list[float]] = defaultdict(list)
    for row in rows.values():
        kind, path = row["kind"], Path(row["path"])
        spent[kind].append(1000 * row["cpu"])
        if kind == "xlsx":
            shown = [text for _, _, text in CELLS.values()] + ["https://heron.example/"]
            totals[kind]["values as shown"] = [
                sum(text in row["text"] for text in shown),
                len(shown),
            ]
            continue
        truth = path.with_name("expected.html") if kind == "pages" else path.with_suffix(".html")
        if truth.exists():
            for what, (found, all_) in kept(row["text"], expected(truth)).items():
                totals[kind][what][0] += found
                totals[kind][what][1] += all_
    return {
        kind: {what: f"{a / b:.2f} of {b}" for what, (a, b) in totals[kind].items() if b}
        | {"cpu-ms a file": f"{sum(times) / len(times):.0f} of {len(times)}"}
        for kind, times in spent.items()
    }


def table(before: dict[str, dict[str, str]], after: dict[str, dict[str, str]], name: str) -> str:
    rows = [
        f"| kind | what | before ({name}) | now | wanted (pages) | of |",
        "|---|---|---|---|---|---|",
    ]
    for kind in after:
        for what, said in after[kind].items():
            now, _, all_ = said.partition(" of ")
            then = before.get(kind, {}).get(what, "-").partition(" of ")[0]
            wanted = (
                WANTED.get(what, "45" if what.startswith("cpu") else "") if kind == "pages" else ""
            )
            rows.append(f"| {kind} | {what} | {then} | {now} | {wanted} | {all_} |")
    return "\n".join(rows)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pages", type=Path, required=True)
    options.add_argument("--before", default="22f4ccaa", help="the older revision")
    options.add_argument("--write", type=Path, help="the page whose table is replaced")
    options.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.read:
        read(chosen.read, chosen.pages)
        return
    here = Path(__file__).resolve().parents[1]
    with TemporaryDirectory() as made:
        folder, old = Path(made, "files"), Path(made, "before")
        folder.mkdir()
        write_files(folder)
        git = ["git", "-C", here, "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", old, chosen.before], check=True)
        try:
            before = measured(old, folder, chosen.pages)
        finally:
            subprocess.run([*git, "remove", "--force", old], check=True)
        text = table(before, measured(here, folder, chosen.pages), chosen.before)
    print(text)
    if chosen.write:
        page = chosen.write.read_text("utf-8")
        start, end = "<!-- table -->\n", "\n<!-- end of table -->"
        head, _, rest = page.partition(start)
        chosen.write.write_text(head + start + text + end + rest.partition(end)[2], "utf-8")


if __name__ == "__main__":
    main()
