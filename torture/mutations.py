"""Real files, and small damage to them: bytes, numbers, tags, and the parts of packed files."""

import io
import re
import zipfile
from pathlib import Path
from random import Random

from PIL import Image

SAMPLES = Path(__file__).parents[1] / "tests" / "samples"
MOST_BYTES = 4_000_000
NUMBERS = (b"0", b"-1", b"255", b"65535", b"2147483647", b"4294967295", b"9999999999999999999999")
SPICE = (
    b"\0",
    b"\xff" * 8,
    b"<b>" * 500,
    b"</p>",
    b"<?a?>" * 40,
    b"<!--",
    b"]]>",
    b"&a;" * 20,
    b"[" * 2000,
    b"=" * 2000,
    b"`" * 999,
    b"# " * 300,
    "a\u0301\u0323".encode() * 300,
    b"\r\n\r\n" * 200,
    b"| a " * 800,
    b"eyJJJJ-" * 200,
    b" " * 5000,
    b"-->" * 50,
    b"{" * 1500,
    b"<w:tbl><w:tr><w:tc>" * 60,
    b"\xed\xa0\x80",
)


def corpus() -> dict[str, bytes]:
    """Files by name: those of the tests, and one of each text format."""
    image = io.BytesIO()
    Image.new("RGB", (120, 60), "white").save(image, "PNG")
    page = (
        "<!doctype html><html><head><title>Herons</title></head><body><article><h1>Herons</h1>"
        + "<p>The heron stands in the river and waits for fish, for hours.</p>" * 30
        + "<table><tr><td>1</td><td>2</td></tr></table><ul><li>one<ul><li>two</li></ul></li></ul>"
        + "</article></body></html>"
    )
    feed = (
        "<?xml version='1.0'?><rss version='2.0'><channel><title>Birds</title>"
        + "<item><title>Heron</title><description>It waits for fish.</description></item>" * 10
        + "</channel></rss>"
    )
    made = {
        "herons.html": page.encode(),
        "birds.rss": feed.encode(),
        "page.png": image.getvalue(),
        "book.epub": _epub(page),
        "notes.md": b"# Herons\n\n## Rivers\n\n- they wait\n- [fish](http://127.0.0.1/)\n\n"
        b"| a | b |\n|---|---|\n| 1 | 2 |\n" * 20,
        "talk.srt": b"1\n00:00:01,000 --> 00:00:04,000\nThe heron waits.\n\n" * 30,
        "talk.vtt": b"WEBVTT\n\n00:01.000 --> 00:04.000\nThe heron waits.\n\n"
        + b"00:05.000 --> 00:08.000\nIt flies.\n\n" * 30,
        "birds.csv": b"name,length\nheron,98\nstork,110\n" * 50,
        "birds.json": b'{"birds": [{"name": "heron", "length": 98}]}',
        "old.rtf": rb"{\rtf1\ansi The heron waits.\par It flies.}",
        "plain.txt": "Der Reiher wartet. Вода. 水。\n".encode() * 100,
    }
    return made | {path.name: path.read_bytes() for path in sorted(SAMPLES.iterdir())}


def _epub(page: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr(
            "META-INF/container.xml",
            "<container><rootfiles><rootfile full-path='b.opf'/></rootfiles></container>",
        )
        archive.writestr(
            "b.opf",
            "<package xmlns='http://www.idpf.org/2007/opf'><metadata/><manifest>"
            "<item id='a' href='a.xhtml' media-type='application/xhtml+xml'/></manifest>"
            "<spine><itemref idref='a'/></spine></package>",
        )
        archive.writestr("a.xhtml", page)
    return out.getvalue()


def mutate(random: Random, content: bytes) -> bytes:
    """Return the file with a few things wrong; packed files are mostly damaged inside."""
    if content[:4] == b"PK\x03\x04" and random.random() < 0.7:
        content = _mutate_member(random, content)
    else:
        for _ in range(random.randint(1, 6)):
            content = random.choice(_STEPS)(random, content)
    return content[:MOST_BYTES]


def _mutate_member(random: Random, content: bytes) -> bytes:
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as source,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target,
    ):
        names = source.namelist()
        chosen = random.choice(
            [name for name in names if name.endswith((".xml", ".xhtml", ".rels", ".opf"))] or names
        )
        for name in names:
            data = source.read(name)
            for _ in range(random.randint(1, 4) if name == chosen else 0):
                data = random.choice(_STEPS)(random, data)
            target.writestr(name, data[:MOST_BYTES])
    return out.getvalue()


def _flip(random: Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(random.randint(1, 20)):
        if changed:
            changed[random.randrange(len(changed))] = random.randrange(256)
    return bytes(changed)


def _cut(random: Random, data: bytes) -> bytes:
    start, end = sorted(random.randrange(len(data) + 1) for _ in range(2))
    return data[:start] + data[end:]


def _end(random: Random, data: bytes) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def _repeat(random: Random, data: bytes) -> bytes:
    start = random.randrange(len(data) + 1)
    piece = data[start : start + random.choice((10, 100, 1000))]
    times = min(random.choice((2, 50, 5000)), 1 + 500_000 // (len(piece) + 1))
    return data[:start] + piece * times + data[start:]


def _insert(random: Random, data: bytes) -> bytes:
    start = random.randrange(len(data) + 1)
    return data[:start] + random.choice(SPICE) * random.choice((1, 1, 20)) + data[start:]


def _renumber(random: Random, data: bytes) -> bytes:
    found = list(re.finditer(rb"[0-9]{1,9}", data[:1_000_000]))
    if not found:
        return data
    match = random.choice(found)
    return data[: match.start()] + random.choice(NUMBERS) + data[match.end() :]


_STEPS = (_flip, _cut, _end, _repeat, _insert, _renumber)
