"""What comes out of files of every kind."""

import zipfile
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from commonplace.adapters.extract import FileExtractor
from commonplace.errors import IngestFailed
from commonplace.model import Extracted, Mark

pytestmark = pytest.mark.anyio

SAMPLES = Path(__file__).parents[1] / "samples"
ARTICLE = """
<nav><a href="/">Home</a> <a href="/about">About us</a></nav>
<article><h1>Herons at the weir</h1>
<p>The heron stood in the <b>shallow</b> water near <a href="/weir">the old weir</a> and did not move for a quarter of an
hour. Then it flew away towards the mill, and nobody on the path had seen it leave, although it is a large bird.</p>
<h2>What to bring</h2>
<ul><li>A notebook with squared paper</li><li>Two soft pencils</li></ul>
<pre><code>def count(birds):
    return len(birds)</code></pre>
<table><tr><th>Bird</th><th>Count</th></tr><tr><td>Heron</td><td>3</td></tr></table>
<p>On the second morning there were three of them, one on each side of the weir and one on the roof of the mill house.</p>
</article><footer>Copyright, all rights reserved, imprint</footer>"""
HEAD = """<title>Herons | The River Paper</title><meta name="author" content="Ann Bee">
<meta property="article:published_time" content="2024-03-02T08:00:00Z">
<link rel="alternate" type="application/rss+xml" href="/feed.xml"><meta property="og:audio" content="/talk.mp3">"""


@pytest.fixture(scope="module")
async def extractor(anyio_backend: str) -> AsyncIterator[FileExtractor]:
    extractor = FileExtractor()
    yield extractor
    await extractor.close()


@pytest.fixture
def file(tmp_path: Path):
    def write(data: bytes | str, name: str = "file") -> Path:
        path = tmp_path / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    return write


def page(body: str, head: str = "") -> str:
    return f"<!DOCTYPE html><html lang='en-GB'><head>{head}</head><body>{body}</body></html>"


def shown_at(extracted: Extracted, passage: str) -> dict:
    at = extracted.text.index(passage)
    return [mark.locator for mark in extracted.marks if mark.at <= at][-1]


async def test_a_page_gives_its_article_as_markdown(extractor, file) -> None:
    found = await extractor.extract(
        file(page(ARTICLE, HEAD)), "text/html", url="https://river.example/2024/herons"
    )
    assert (found.title, found.author, found.language) == ("Herons at the weir", "Ann Bee", "en")
    assert found.published_at == datetime(2024, 3, 2, 8, tzinfo=UTC)
    for kept in (
        "**shallow** water near [the old weir](https://river.example/weir)",
        "## What to bring",
        "- A notebook with squared paper\n- Two soft pencils",
        "```\ndef count(birds):\n    return len(birds)\n```",
        "| Heron | 3 |",
    ):
        assert kept in found.text
    for dropped in ("About us", "Copyright"):
        assert dropped not in found.text


async def test_a_page_names_its_recordings_and_feeds_best_first(extractor, file) -> None:
    players = '<audio><source src="b.ogg"></audio><a href="//cdn.example/c.MP3?x=1">listen</a><a href="mailto:d.mp3">no</a>'
    found = await extractor.extract(
        file(page(ARTICLE + players, HEAD)), "text/html", url="https://river.example/2024/herons"
    )
    assert found.links == (
        "https://river.example/talk.mp3",
        "https://river.example/2024/b.ogg",
        "https://river.example/feed.xml",
        "https://cdn.example/c.MP3?x=1",
    )


@pytest.mark.parametrize(
    ("charset", "meta", "sent"),
    [
        ("utf-8", "", None),
        ("cp1252", "", "iso-8859-1"),
        ("cp1252", "windows-1252", None),
        ("cp1252", "", None),
        ("utf-8", "iso-8859-1", "iso-8859-1"),
        ("koi8-r", "koi8-r", "utf-8"),
        ("utf-16", "", None),
        ("shift_jis", "Shift_JIS", "no-such-charset"),
    ],
)
async def test_wrong_and_missing_charsets(extractor, file, charset, meta, sent) -> None:
    said = {
        "koi8-r": "Серая цапля стояла в мелкой воде у старой плотины.",
        "shift_jis": "古い堰のそばの浅い水の中に一羽の鷺が立っていた。その鳥は長い間動かなかった。",
    }.get(
        charset,
        "Der Fischreiher stand früh am Wehr, müßig und überaus „still“ – ein größeres Tier sah man nie.",
    )
    html = page(
        f"<article><h1>Reiher</h1><p>{said}</p><p>{said}</p><p>{said}</p></article>",
        f"<meta charset='{meta}'>" if meta else "",
    )
    found = await extractor.extract(file(html.encode(charset)), "text/html", charset=sent)
    assert said in found.text


@pytest.mark.parametrize(
    ("html", "reason"),
    [
        ("", "contains no text"),
        (page(""), "contains no text"),
        (page("<nav>Home</nav><footer>Imprint</footer>"), "contains no text"),
        (
            page(
                "<noscript>You need to enable JavaScript to run this app.</noscript><div id=root></div>"
            ),
            "JavaScript",
        ),
        (page('<div id="app"></div><script src="/bundle.js"></script>'), "JavaScript"),
        (page("<h1>Members</h1><p>Please sign in to read this article.</p>"), "login"),
        (
            page(
                "<form><h1>Please log in to continue</h1><input name=u><input type=password></form>"
            ),
            "login",
        ),
        (
            page(
                "<h1>Just a moment...</h1><p>Verifying you are human. This may take a few seconds.</p>"
            ),
            "visitor is human",
        ),
    ],
)
async def test_a_page_with_nothing_to_read_says_why(extractor, file, html, reason) -> None:
    with pytest.raises(IngestFailed, match=reason):
        await extractor.extract(file(html, "page.html"), "text/html", url="https://river.example/")


async def test_characters_that_are_none_are_left_out(extractor, file) -> None:
    odd = ARTICLE.replace("shallow", "shal\x00low&#1;&#xD800;\x0b").replace(
        "weir</h1>", "weir&#0;\x08</h1>"
    )
    found = await extractor.extract(file(page(odd, "<title>a\x00&#2;</title>")), "text/html")
    assert "The heron stood in the" in found.text
    assert not [
        c for c in found.title + found.text if (c < " " and c != "\n") or "\ud800" <= c <= "\udfff"
    ]


async def test_a_short_page_is_read_whole(extractor, file) -> None:
    links = "<nav><a href=/login>Log in</a></nav>"
    found = await extractor.extract(
        file(page(f"{links}<h1>Weir</h1><p>Closed on Mondays.</p>", "<title>Weir</title>")),
        "text/html",
    )
    assert (found.title, found.text) == ("Weir", "# Weir\n\nClosed on Mondays.")


async def test_a_pdf_keeps_its_pages_and_scanned_ones_are_read(extractor) -> None:
    found = await extractor.extract(SAMPLES / "scanned.pdf", "application/pdf")
    assert found.title == "Herons at the weir"
    assert "for an informative quarter of an hour. Then it flew away.\n\nNobody else" in found.text
    assert "The quick brown fox jumps over the lazy dog." in found.text
    assert found.text.startswith("# 1. Herons\n\nThe heron")  # as the outline says
    assert shown_at(found, "The heron") == {"page": 1}
    assert shown_at(found, "lazy dog") == {"page": 2}


async def test_running_heads_of_a_pdf_are_left_out(extractor, file) -> None:
    birds = ["heron", "coot", "grebe", "wren", "swan", "dipper"]
    pages = [
        ["River Paper 2024", f"This is the page of the {bird}.", f"A {bird} was seen.", f"{n}"]
        for n, bird in enumerate(birds)
    ]
    found = await extractor.extract(file(pdf(pages)), "application/pdf")
    assert "page of the dipper" in found.text
    assert "River Paper" not in found.text


async def test_a_pdf_without_text_says_so(extractor, file) -> None:
    with pytest.raises(IngestFailed, match="no text"):
        await extractor.extract(file(pdf([[], []])), "application/pdf")


async def test_an_encrypted_pdf_says_so(extractor) -> None:
    with pytest.raises(IngestFailed, match="encrypted"):
        await extractor.extract(SAMPLES / "encrypted.pdf", "application/pdf")


@pytest.mark.parametrize("kind", ["png", "jpeg", "webp", "tiff", "gif", "bmp"])
async def test_images_are_read(extractor, tmp_path, kind) -> None:
    path = tmp_path / f"sign.{kind}"
    written("Closed on Mondays").save(path)
    found = await extractor.extract(path, "")
    assert (found.title, found.text) == ("sign", "Closed on Mondays")


async def test_the_pages_of_a_tiff_are_marked(extractor, tmp_path) -> None:
    written("First page").save(
        tmp_path / "fax.tiff", save_all=True, append_images=[written("Second page")]
    )
    found = await extractor.extract(tmp_path / "fax.tiff", "image/tiff")
    assert shown_at(found, "First") == {"page": 1}
    assert shown_at(found, "Second") == {"page": 2}


async def test_an_image_without_text_says_so(extractor, tmp_path) -> None:
    Image.new("RGB", (600, 400), "#7799bb").save(tmp_path / "sky.png")
    with pytest.raises(IngestFailed, match=r"No text that OCR can read .* Latin scripts, Chinese"):
        await extractor.extract(tmp_path / "sky.png", "image/png")


async def test_a_grainy_scan_is_read(extractor, tmp_path) -> None:
    grain = np.random.default_rng(5).normal(0, 40, (140, 640))
    clean = np.asarray(written("Closed on Mondays").convert("L"), float) * 0.8 + 38
    Image.fromarray(np.clip(clean + grain, 0, 255).astype("uint8")).save(tmp_path / "scan.png")
    found = await extractor.extract(tmp_path / "scan.png", "image/png")
    assert found.text == "Closed on Mondays"


async def test_japanese_is_read(extractor) -> None:
    found = await extractor.extract(SAMPLES / "japanese.png", "")
    assert found.text == "委員会は火曜日の午前九時半に開かれました。まず屋根を修理します。"


async def test_a_script_without_a_model_is_refused(extractor) -> None:
    with pytest.raises(IngestFailed, match="No text that OCR can read"):
        await extractor.extract(SAMPLES / "russian.png", "")


def laid_out(width: int, height: int, words: list[tuple[int, int, str]]) -> Image.Image:
    image = Image.new("RGB", (width, height), "white")
    for left, top, line in words:
        ImageDraw.Draw(image).text((left, top), line, font=ImageFont.load_default(28), fill="black")
    return image


async def test_columns_of_a_scan_are_read_one_after_another(extractor, tmp_path) -> None:
    left = ["The heron waited at", "the weir for a quarter", "of an hour, then it left."]
    right = ["Nobody else had seen", "the bird that morning,", "and the mill was shut."]
    laid_out(
        900,
        300,
        [(40, 40, "News of the river and of the mill, for all who live there")]
        + [(40, 140 + 40 * n, line) for n, line in enumerate(left)]
        + [(480, 140 + 40 * n, line) for n, line in enumerate(right)],
    ).save(tmp_path / "paper.png")
    found = await extractor.extract(tmp_path / "paper.png", "")
    assert found.text.split("\n\n") == [
        "News of the river and of the mill, for all who live there",
        " ".join(left),
        " ".join(right),
    ]


async def test_tables_of_a_scan_are_read_row_by_row(extractor, tmp_path) -> None:
    rows = [("Roof", "12450"), ("Heating", "8300"), ("Paint", "940")]
    laid_out(
        900,
        260,
        [(40, 40 + 60 * n, name) for n, (name, _) in enumerate(rows)]
        + [(600, 40 + 60 * n, sum) for n, (_, sum) in enumerate(rows)],
    ).save(tmp_path / "bill.png")
    found = await extractor.extract(tmp_path / "bill.png", "")
    assert found.text.split("\n\n") == [" ".join(row) for row in rows]


async def test_a_tall_screenshot_is_read_whole(extractor, tmp_path) -> None:
    laid_out(
        500, 9000, [(30, 30 + 60 * n, f"Message number {n} of the day") for n in range(149)]
    ).save(tmp_path / "long.png")
    found = await extractor.extract(tmp_path / "long.png", "")
    assert [f"number {n} of" in found.text for n in range(149)] == [True] * 149


async def test_word_documents(extractor) -> None:
    found = await extractor.extract(SAMPLES / "notes.docx", "")
    assert (found.title, found.author) == ("Field notes", "Ann Bee")
    assert found.text == (
        "# Field notes\n\nThe heron stood in the shallow water and did not move.\n\n# Equipment\n\n"
        "- A notebook\n- Two pencils\n\n1. Walk to the weir\n2. Wait\n\n"
        "| Bird | Count |\n|---|---|\n| Heron | 3 |\n\nAfter the **table**."
    )


async def test_presentations(extractor) -> None:
    found = await extractor.extract(SAMPLES / "levels.pptx", "")
    assert found.title == "Water levels"
    assert "It rose in March.\n\nIt fell in May." in found.text
    assert "Notes: Mention the weir." in found.text
    assert shown_at(found, "| Heron | 3 |") == {"page": 2}


async def test_spreadsheets(extractor) -> None:
    found = await extractor.extract(SAMPLES / "birds.xlsx", "")
    assert (
        found.text
        == "## Birds\n\n| Bird | Count |  |\n|---|---|---|\n| Heron | 3 |\n|  |  | TRUE |"
    )


async def test_books(extractor, tmp_path) -> None:
    opf = """<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>River
    book</dc:title><dc:creator>Ann Bee</dc:creator><dc:language>en-GB</dc:language></metadata><manifest><item id="b" href="b%20b.xhtml"/>
    <item id="a" href="a.xhtml"/></manifest><spine><itemref idref="a"/><itemref idref="b"/></spine></package>"""
    with zipfile.ZipFile(tmp_path / "river.epub", "w") as book:
        book.writestr("mimetype", "application/epub+zip")
        book.writestr(
            "META-INF/container.xml",
            '<container><rootfiles><rootfile full-path="in/book.opf"/></rootfiles></container>',
        )
        book.writestr("in/book.opf", opf)
        book.writestr(
            "in/a.xhtml",
            "<?xml version='1.0' encoding='utf-8'?><html><body><h1>One</h1><p>It r\u00f6se.</p></body></html>",
        )
        book.writestr(
            "in/b b.xhtml",
            "<html><body><h1>Two</h1><ul><li>It fell.<ul><li>Twice.</li></ul></li></ul></body></html>",
        )
    found = await extractor.extract(tmp_path / "river.epub", "")
    assert (found.title, found.author, found.language) == ("River book", "Ann Bee", "en")
    assert found.text == "# One\n\nIt röse.\n\n# Two\n\n- It fell.\n  - Twice."


@pytest.mark.parametrize(
    ("data", "name", "heading"),
    [
        ("# Field notes #\n\nText.", "a.md", "Field notes"),
        ("Just a line.", "my_file.txt", "my file"),
        ("# a comment\nx: 1", "conf.yaml", "conf"),
        ('{"a": [1, 2]}', "data.json", "data"),
        ("a,b\n1,2", "data.csv", "data"),
    ],
)
async def test_texts_are_read_as_they_are(extractor, file, data, name, heading) -> None:
    found = await extractor.extract(file(data, name), "", name=name)
    assert (found.title, found.text) == (heading, data)


async def test_front_matter_is_read_in_files_and_stays_in_pages(extractor, file) -> None:
    data = "---\ntitle: 'Field notes'\ntags: owl, heron\nmood: calm\n---\n\n# Other\n\nText."
    found = await extractor.extract(file(data, "a.md"), "", name="a.md")
    assert (found.title, found.text) == ("Field notes", "# Other\n\nText.")
    assert (found.tags, found.front_matter) == (("owl", "heron"), {"mood": "calm"})
    page = await extractor.extract(file(data, "a.md"), "", url="http://example.org/a.md")
    assert (page.title, page.text, page.tags) == ("Field notes", data, ())


async def test_an_empty_file_says_so(extractor, file) -> None:
    with pytest.raises(IngestFailed, match="empty"):
        await extractor.extract(file(" \n\n", "a.txt"), "text/plain")


async def test_subtitles_keep_their_times(extractor, file) -> None:
    vtt = (
        "WEBVTT\n\nSTYLE\n::cue { color: red }\n\n00:01.000 --> 00:03.000\n<v Ann>Good <i>morning</i>.\n\n"
        "00:03.000 --> 00:05.000 align:start\nGood <c>old</c> weir &amp; mill.\n\n1:02:03.500 --> 1:02:05.000\nThe end.\n"
    )
    found = await extractor.extract(file(vtt, "talk.vtt"), "text/vtt")
    assert found.text == "Ann: Good morning. Good old weir & mill.\n\nThe end."
    assert found.marks == (Mark(0, {"seconds": 1.0}), Mark(42, {"seconds": 3723.5}))


async def test_subtitles_without_any_say_so(extractor, file) -> None:
    with pytest.raises(IngestFailed, match="no subtitles"):
        await extractor.extract(file("WEBVTT\n\nNOTE nothing yet\n"), "text/vtt")


async def test_rolling_captions_are_said_once(extractor, file) -> None:
    srt = (
        "1\n00:00:01,000 --> 00:00:02,000\nthe heron\n\n2\n00:00:02,000 --> 00:00:03,000\n\n"
        "3\n00:00:02,000 --> 00:00:04,000\nthe heron\nstood still\n\n4\n00:00:04,000 --> 00:00:05,000\nstood still\nand left\n"
    )
    found = await extractor.extract(file(srt, "talk.srt"), "")
    assert found.text == "the heron stood still and left"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\x00" * 100, "old Office document"),
        (b"ID3\x04" + b"\x00" * 50, "recording"),
        (b"\x7fELF\x02\x01" + b"\x00" * 50, "application/octet-stream"),
        (b"{\\rtf1 hello}", "RTF"),
    ],
)
async def test_other_kinds_are_refused_by_name(extractor, file, data, reason) -> None:
    with pytest.raises(IngestFailed, match=reason):
        await extractor.extract(file(data), "application/pdf")


def written(words: str) -> Image.Image:
    image = Image.new("RGB", (640, 140), "white")
    ImageDraw.Draw(image).text((40, 40), words, font=ImageFont.load_default(40), fill="black")
    return image


def pdf(pages: list[list[str]]) -> bytes:
    """A PDF with these lines on its pages."""
    kids = " ".join(f"{10 + 2 * n} 0 R" for n in range(len(pages)))
    objects = {
        1: "<< /Type /Catalog /Pages 2 0 R >>",
        2: f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        3: "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    }
    for n, lines in enumerate(pages):
        drawn = (
            "BT /F1 12 Tf 72 720 Td 18 TL " + " ".join(f"({line}) Tj T*" for line in lines) + " ET"
        )
        objects[10 + 2 * n] = (
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {11 + 2 * n} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>"
        )
        objects[11 + 2 * n] = f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream"
    body = "".join(f"{number} 0 obj\n{value}\nendobj\n" for number, value in objects.items())
    return f"%PDF-1.4\n{body}trailer << /Root 1 0 R >>\n%%EOF\n".encode()
