"""Damaged files for readers: real samples of every kind that is read, and small hostile changes to them.

`mutants(seed, count)` is the way in: the same seed gives the same files, so that a failure can be repeated by its seed.
"""

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

SAMPLES = Path(__file__).parent / "samples"
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_HOSTILE = (
    b"<?a?>",
    b"<!--",
    b"<![CDATA[",
    b"&#0;",
    b"&a;",
    b"]]>",
    b"<!DOCTYPE html>",
    b"%PDF-",
    b"PK\x03\x04",
    b"\xff" * 8,
    b"\x00" * 8,
    b"-->",
    b"99999999999",
    b"-1",
    b"\xf0\x9f\x90\xa6",
    b"\xcc\x81" * 40,
    b" colspan=999 rowspan=999 ",
    b"00:00:00,000 --> 99:99:99,999\n",
    b"stream\n",
    b"endstream",
    b"/Count 4000000000",
    b"\\u0000",
    b"{" * 50,
    b"[" * 50,
)


def xlsx(rows: str) -> bytes:
    """A spreadsheet of one sheet, of `<row>` elements."""
    return _zipped(
        {
            "xl/workbook.xml": f'<workbook xmlns="{_SHEET}" xmlns:r="{_RELATION}"><sheets><sheet name="S" r:id="r1"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_RELATIONS}"><Relationship Id="r1" Target="worksheets/s1.xml"/></Relationships>',
            "xl/worksheets/s1.xml": f'<worksheet xmlns="{_SHEET}"><sheetData>{rows}</sheetData></worksheet>',
        }
    )


def docx(body: str) -> bytes:
    """A Word document, of `<w:p>` and `<w:tbl>` elements."""
    return _zipped(
        {"word/document.xml": f'<w:document xmlns:w="{_WORD}"><w:body>{body}</w:body></w:document>'}
    )


def epub(chapter: str, times: int = 1) -> bytes:
    """A book in which one chapter comes `times` times."""
    return _zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container><rootfiles><rootfile full-path="book.opf"/></rootfiles></container>',
            "book.opf": '<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="a" href="a.xhtml"/></manifest>'
            "<spine>" + "<itemref idref='a'/>" * times + "</spine></package>",
            "a.xhtml": chapter,
        }
    )


def pdf(pages: int, line: str = "The heron waits for eels at the weir and does not move.") -> bytes:
    """Pages with lines of text."""
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{' '.join(f'{4 + 2 * n} 0 R' for n in range(pages))}] /Count {pages} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for n in range(pages):
        shown = "BT /F1 10 Tf 50 750 Td 12 TL " + f"({line} {n}) Tj T* " * 40 + "ET"
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * n} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>",
            f"<< /Length {len(shown)} >>\nstream\n{shown}\nendstream",
        ]
    numbered = "".join(f"{n} 0 obj\n{body}\nendobj\n" for n, body in enumerate(objects, 1))
    return f"%PDF-1.4\n{numbered}trailer << /Root 1 0 R >>\n%%EOF\n".encode()


def originals() -> dict[str, bytes]:
    """A sound file of each kind, by name."""
    paragraph = "<p>The heron stood in the shallow water and did not move for an hour, and then it took an eel.</p>"
    entry = "<item><title>Eels</title><link>https://example.com/{0}</link><description>They go to the sea.</description></item>"
    page = (
        f"<!DOCTYPE html><html lang=en><head><title>Herons</title></head><body><article><h1>Herons</h1>{paragraph * 8}"
        "<table><tr><th>Bird<th>Count<tr><td>Heron<td>3</table><ul><li>eel<li>frog</ul></article></body></html>"
    )
    return {
        path.name: path.read_bytes()
        for path in sorted(SAMPLES.iterdir())
        if path.name != "scanned.pdf"
    } | {
        "page.html": page.encode(),
        "feed.rss": f"<?xml version='1.0'?><rss version='2.0'><channel><title>Birds</title>{entry.format(1)}{entry.format(2)}"
        "</channel></rss>".encode(),
        "feed.json": b'{"version": "https://jsonfeed.org/version/1.1", "title": "Birds", "items": [{"id": "1", "title": "Eels", '
        b'"content_text": "They go to the sea.", "attachments": [{"url": "a.mp3", "mime_type": "audio/mpeg"}]}]}',
        "talk.srt": b"1\n00:00:01,000 --> 00:00:04,000\nThe heron waits.\n\n2\n00:00:05,000 --> 00:00:09,000\nIt has time.\n",
        "talk.vtt": b"WEBVTT\n\n00:01.000 --> 00:02.000\n<v Ann>The heron waits.\n",
        "notes.md": b"---\ntitle: Herons\n---\n# Herons\n\nThe heron waits for eels.\n",
        "notes.txt": b"Herons\n======\n\nThe heron waits for eels.\n",
        "book.epub": epub(f"<html><body><h1>One</h1>{paragraph}</body></html>"),
        "text.pdf": pdf(2),
    }


def mutants(seed: int, count: int) -> Iterator[tuple[str, bytes]]:
    """Damaged files, by the name of what they were."""
    random, files = Random(seed), originals()
    for _ in range(count):
        name = random.choice(sorted(files))
        yield name, mutated(files[name], random)


def mutated(data: bytes, random: Random) -> bytes:
    """A file with one to eight changes. Half of the archives are changed in what is packed into them, which reaches further."""
    if data.startswith(b"PK") and random.random() < 0.5:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = {part: archive.read(part) for part in archive.namelist()}
        part = random.choice(sorted(parts))
        return _zipped(parts | {part: _changed(parts[part], random)})
    return _changed(data, random)


def _changed(data: bytes, random: Random) -> bytes:
    for _ in range(random.randint(1, 8)):
        at, length = random.randrange(len(data) + 1), random.choice((1, 4, 40, 400))
        before, piece, after = data[:at], data[at : at + length], data[at + length :]
        match random.randrange(5):
            case 0:
                data = before + after  # lost
            case 1:
                data = before + piece * random.choice((2, 50, 2000)) + after  # repeated
            case 2:
                data = before + random.choice(_HOSTILE) * random.choice((1, 40)) + piece + after
            case 3:
                data = before + random.randbytes(len(piece)) + after  # noise
            case _:
                data = before  # cut off
    return data


def _zipped(parts: dict[str, str] | dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return packed.getvalue()
