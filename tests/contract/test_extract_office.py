"""What is kept of Office documents and books: their structure, dates, formulas, and the text in their images."""

import datetime as dt
import io
import re
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path

import openpyxl
import pptx
import pytest
from openpyxl.comments import Comment
from PIL import Image, ImageDraw, ImageFont
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from commonplace.adapters.extract import FileExtractor
from commonplace.errors import IngestFailed

pytestmark = pytest.mark.anyio

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
M = "http://schemas.openxmlformats.org/officeDocument/2006/math"
R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
CORE = """<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties"
xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/"><dc:title>Field notes</dc:title>
<dc:creator>Ann Bee</dc:creator><dcterms:created>2024-03-02T08:00:00Z</dcterms:created></cp:coreProperties>"""
TYPES = """<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
<Default Extension="png" ContentType="image/png"/><Override PartName="/{main}" ContentType=
"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>"""
FORMULA = (
    "<m:oMath><m:r><m:t>h=</m:t></m:r><m:f><m:num><m:sSup><m:e><m:r><m:t>v</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r>"
    "</m:sup></m:sSup></m:num><m:den><m:r><m:t>2α</m:t></m:r></m:den></m:f><m:nary><m:naryPr><m:chr m:val='∑'/></m:naryPr>"
    "<m:sub><m:r><m:t>i=1</m:t></m:r></m:sub><m:sup><m:r><m:t>n</m:t></m:r></m:sup><m:e><m:rad><m:deg/><m:e><m:r><m:t>𝑥</m:t>"
    "</m:r></m:e></m:rad></m:e></m:nary></m:oMath>"
)


@pytest.fixture(scope="module")
async def extractor(anyio_backend: str) -> AsyncIterator[FileExtractor]:
    extractor = FileExtractor()
    yield extractor
    await extractor.close()


def paragraph(text: str, style: str = "", more: str = "") -> str:
    named = f'<w:pStyle w:val="{style}"/>' if style else ""
    runs = text if text.startswith("<") else f"<w:r><w:t xml:space='preserve'>{text}</w:t></w:r>"
    return f"<w:p><w:pPr>{named}{more}</w:pPr>{runs}</w:p>"


def item(text: str, number: int, level: int = 0) -> str:
    numbered = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>'
    return paragraph(text, more=numbered)


def docx(path: Path, body: str, main: str = "word/document.xml") -> Path:
    """Write a Word document with lists 1 (bullets) and 2 (numbers), styles, a footnote and a picture."""
    names = ("Title", "heading 1", "Quote", "Source Code", "toc 1")
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="{name.replace(" ", "")}"><w:name w:val="{name}"/></w:style>'
        for name in names
    )
    levels = "".join(
        f'<w:abstractNum w:abstractNumId="{n}">'
        + "".join(
            f'<w:lvl w:ilvl="{level}"><w:numFmt w:val="{kind}"/></w:lvl>' for level in range(3)
        )
        + "</w:abstractNum>"
        for n, kind in ((1, "bullet"), (2, "decimal"))
    )
    numbers = "".join(
        f'<w:num w:numId="{n}"><w:abstractNumId w:val="{n}"/></w:num>' for n in (1, 2)
    )
    folder, _, name = main.rpartition("/")
    related = {"styles": "styles.xml", "numbering": "numbering.xml", "footnotes": "footnotes.xml"}
    links = "".join(
        f'<Relationship Id="{kind}" Type="{R}/{kind}" Target="{target}"/>'
        for kind, target in related.items()
    )
    links += f'<Relationship Id="mill" Type="{R}/hyperlink" Target="https://mill.example/a" TargetMode="External"/>'
    links += f'<Relationship Id="pic" Type="{R}/image" Target="media/a.png"/>'
    root = f'<Relationship Id="r1" Type="{R}/officeDocument" Target="{main}"/>'
    note = '<w:footnote w:id="2"><w:p><w:r><w:t>A note.</w:t></w:r></w:p></w:footnote>'
    contents = {
        "[Content_Types].xml": TYPES.format(main=main),
        "_rels/.rels": f'<Relationships xmlns="{RELATIONS}">{root}</Relationships>',
        "docProps/core.xml": CORE,
        main: f'<w:document xmlns:w="{W}" xmlns:m="{M}" xmlns:r="{R}" {DRAWING}><w:body>{body}</w:body></w:document>',
        f"{folder}/_rels/{name}.rels": f'<Relationships xmlns="{RELATIONS}">{links}</Relationships>',
        f"{folder}/styles.xml": f'<w:styles xmlns:w="{W}">{styles}</w:styles>',
        f"{folder}/numbering.xml": f'<w:numbering xmlns:w="{W}">{levels}{numbers}</w:numbering>',
        f"{folder}/footnotes.xml": f'<w:footnotes xmlns:w="{W}">{note}</w:footnotes>',
        f"{folder}/media/a.png": sign("Closed on Mondays"),
    }
    with zipfile.ZipFile(path, "w") as archive:
        for part, content in contents.items():
            archive.writestr(part, content)
    return path


DRAWING = (
    'xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:pic="http://schemas.openxmlformats.org/drawingml/2006/picture"'
)
PICTURE = (
    "<w:r><w:drawing><wp:inline><wp:docPr id='1' name='a' descr='{0}'/><a:graphic><a:graphicData><pic:pic><pic:blipFill>"
    "<a:blip r:embed='pic'/></pic:blipFill></pic:pic></a:graphicData></a:graphic></wp:inline></w:drawing></w:r>"
)


def sign(words: str) -> bytes:
    image = Image.new("RGB", (640, 140), "white")
    ImageDraw.Draw(image).text((40, 40), words, font=ImageFont.load_default(40), fill="black")
    packed = io.BytesIO()
    image.save(packed, "png")
    return packed.getvalue()


def strict(path: Path) -> Path:
    """Rewrite a file as "Strict Open XML"."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    other = re.compile(
        rb"http://schemas\.openxmlformats\.org/(\w+ml|drawingml|officeDocument)/2006/"
    )
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, other.sub(rb"http://purl.oclc.org/ooxml/\1/", content))
    return path


# -- Word


async def test_word_documents_keep_their_structure(extractor, tmp_path) -> None:
    link = '<w:hyperlink r:id="mill"><w:r><w:t>the mill</w:t></w:r></w:hyperlink>'
    styled = "<w:r><w:rPr><w:b/></w:rPr><w:t>bold</w:t></w:r><w:r><w:rPr><w:i/></w:rPr><w:t>flat</w:t></w:r>"
    body = (
        paragraph("1 Birds 7", "toc1")
        + paragraph("Birds", "heading1")
        + paragraph(f"<w:r><w:t>It rose.</w:t></w:r><w:r><w:footnoteReference w:id='2'/></w:r>{link}{styled}")
        + paragraph("The heron waits.", "Quote")
        + item("First", 2) + item("Inner", 1, 1) + item("Second", 2)
        + item("☐ Walk", 1) + item("☒ Wait", 1)
        + paragraph("<w:r><w:t>a = 1</w:t><w:br/><w:t>b = 2</w:t></w:r>", "SourceCode")
        + paragraph(FORMULA)
        + paragraph(PICTURE.format("A sign"))
    )  # fmt: skip
    found = await extractor.extract(docx(tmp_path / "a.docx", body), "")
    assert (found.title, found.author) == ("Field notes", "Ann Bee")
    assert found.published_at == dt.datetime(2024, 3, 2, 8, tzinfo=dt.UTC)
    assert found.text == (
        "# Birds\n\nIt rose.[^1][the mill](https://mill.example/a)**bold***flat*\n\n> The heron waits.\n\n"
        "1. First\n   - Inner\n2. Second\n\n- [ ] Walk\n- [x] Wait\n\n```\na = 1\nb = 2\n```\n\n"
        r"$h= \frac{v^{2}}{2\alpha} \sum_{i=1}^{n} \sqrt{x}$"
        "\n\nA sign\n\nClosed on Mondays\n\n[^1]: A note."
    )


async def test_a_note_that_is_missing_is_left_out(extractor, tmp_path) -> None:
    missing = "<w:r><w:t>It rose.</w:t></w:r><w:r><w:footnoteReference w:id='9'/></w:r>"
    found = await extractor.extract(docx(tmp_path / "a.docx", paragraph(missing)), "")
    assert found.text == "It rose."


async def test_runs_that_look_alike_are_joined(extractor, tmp_path) -> None:
    runs = "".join(
        f"<w:r w:rsidR='{n}'><w:rPr><w:sz w:val='20'/><w:b/></w:rPr><w:t>{word}</w:t></w:r>"
        for n, word in enumerate(("her", "on"))
    )
    found = await extractor.extract(docx(tmp_path / "a.docx", paragraph(runs)), "")
    assert found.text == "**heron**"


async def test_strict_documents_and_other_names_of_the_main_part(extractor, tmp_path) -> None:
    path = strict(docx(tmp_path / "a.docx", paragraph("Birds", "heading1"), main="doc/main7.xml"))
    assert (await extractor.extract(path, "")).text == "# Birds"


# -- spreadsheets


async def test_cells_are_read_as_they_are_shown(extractor, tmp_path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Budget"
    sheet.append(["Day", "Time", "Share", "Sum", "Site", "Took"])
    sheet.append(
        [dt.date(2024, 3, 2), dt.time(4, 12), 0.257, 0.1 + 0.2, "mill", dt.timedelta(hours=26)]
    )
    sheet.append([dt.datetime(2024, 3, 2, 14, 5), None, 0.5, 12, True])
    sheet["C2"].number_format, sheet["C3"].number_format = "0.0%", '0 "%"'
    sheet["E2"].hyperlink = "https://mill.example/"
    sheet["D2"].comment = Comment("Too much", "Ann")
    hidden = book.create_sheet("Old")
    hidden.append(["heron"])
    hidden.sheet_state = "hidden"
    book.properties.creator = "Ann Bee"
    book.properties.created = dt.datetime(2024, 3, 2)
    book.save(tmp_path / "a.xlsx")
    text = (
        "## Budget\n\n| Day | Time | Share | Sum | Site | Took |\n|---|---|---|---|---|---|\n"
        "| 2024-03-02 | 04:12 | 25.7% | 0.3 | [mill](https://mill.example/) | 26:00 |\n"
        "| 2024-03-02 14:05 |  | 0.5 | 12 | TRUE |\n\nComment on D2 (Ann): Too much\n\n"
        "## Old (hidden)\n\n| heron |\n|---|"
    )  # fmt: skip
    for path in (tmp_path / "a.xlsx", strict(tmp_path / "a.xlsx")):
        found = await extractor.extract(path, "")
        assert (found.text, found.author) == (text, "Ann Bee")
        assert found.published_at == dt.datetime(2024, 3, 2, tzinfo=dt.UTC)


# -- presentations


async def test_slides_keep_lists_charts_images_and_notes(extractor, tmp_path) -> None:
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "Water levels"
    frame = slide.placeholders[1].text_frame
    frame.text = "It rose"
    deeper = frame.add_paragraph()
    deeper.text, deeper.level = "in March", 1
    run = frame.add_paragraph().add_run()
    run.text, run.hyperlink.address = "mill", "https://mill.example/"
    data = CategoryChartData()
    data.categories = ["March", "May"]
    data.add_series("Level", (1.5, 0.5))
    slide.shapes.add_chart(XL_CHART_TYPE.LINE, 0, 0, Inches(2), Inches(2), data)
    group = slide.shapes.add_group_shape()
    group.shapes.add_textbox(0, 0, Inches(1), Inches(1)).text_frame.text = "In a group"
    picture = slide.shapes.add_picture(io.BytesIO(sign("Closed on Mondays")), 0, 0)
    picture._element.nvPicPr.cNvPr.set("descr", "A sign")
    slide.notes_slide.notes_text_frame.text = "Mention the weir."
    deck.save(tmp_path / "a.pptx")
    text = (
        "## Water levels\n\n- It rose\n  - in March\n- [mill](https://mill.example/)\n\n"
        "|  | Level |\n|---|---|\n| March | 1.5 |\n| May | 0.5 |\n\nIn a group\n\nA sign\n\nClosed on Mondays\n\n"
        "Notes: Mention the weir."
    )
    for path in (tmp_path / "a.pptx", strict(tmp_path / "a.pptx")):
        found = await extractor.extract(path, "")
        assert (found.title, found.text) == ("Water levels", text)


# -- books


async def test_notes_of_books_may_be_in_another_chapter(extractor, tmp_path) -> None:
    one = (
        '<h1>One</h1><p>It rose.<a id="r1" href="n.xhtml#n1"><sup>1</sup></a> <a href="https://x.example/">web</a></p>'
        "<blockquote><p>Said.</p></blockquote><p><m:math><m:msup><m:mi>x</m:mi><m:mn>2</m:mn></m:msup></m:math></p>"
    )
    notes = '<h1>Notes</h1><p id="n1"><a href="a.xhtml#r1">1.</a> In March.</p>'
    with zipfile.ZipFile(tmp_path / "a.epub", "w") as book:
        book.writestr("mimetype", "application/epub+zip")
        book.writestr(
            "META-INF/container.xml",
            '<container><rootfiles><rootfile full-path="in/b.opf"/></rootfiles></container>',
        )
        book.writestr(
            "in/b.opf",
            '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
            "<dc:title>River</dc:title><dc:creator>Ann Bee</dc:creator><dc:creator>Bo Cee</dc:creator><dc:date>1912</dc:date>"
            '</metadata><manifest><item id="a" href="a.xhtml"/><item id="n" href="n.xhtml"/></manifest>'
            '<spine><itemref idref="a"/><itemref idref="n"/></spine></package>',
        )
        book.writestr("in/a.xhtml", f"<html><body>{one}</body></html>")
        book.writestr("in/n.xhtml", f"<html><body>{notes}</body></html>")
    found = await extractor.extract(tmp_path / "a.epub", "")
    assert (found.author, found.published_at) == (
        "Ann Bee, Bo Cee",
        dt.datetime(1912, 1, 1, tzinfo=dt.UTC),
    )
    assert found.text == (
        "# One\n\nIt rose.[^1] [web](https://x.example/)\n\n> Said.\n\n$x^{2}$\n\n# Notes\n\n[^1]: In March."
    )  # fmt: skip


# -- what is not read


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"mimetype": "application/vnd.oasis.opendocument.text"}, "OpenDocument"),
        ({"Index/Document.iwa": ""}, "Pages, Numbers and Keynote"),
        ({"xl/workbook.bin": ""}, "xlsb"),
        ({"visio/document.xml": ""}, "Visio"),
        ({"a.txt": ""}, "zip archive"),
    ],
)
async def test_other_archives_are_refused_by_name(extractor, tmp_path, parts, reason) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    with pytest.raises(IngestFailed, match=reason):
        await extractor.extract(tmp_path / "a.zip", "")
