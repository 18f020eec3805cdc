"""What is kept of a PDF: headings, tables, links, lists, the order of columns, who wrote it."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from commonplace.adapters.extract import FileExtractor
from commonplace.model import Extracted

LOREM = (
    "The heron stood in the shallow water near the old weir and did not move",
    "for a quarter of an hour, while the eels went down to the sea and the",
    "frogs kept still between the stones of the bank until it flew away.",
)


@pytest.fixture(scope="module")
async def extractor(anyio_backend: str) -> AsyncIterator[FileExtractor]:
    extractor = FileExtractor(processes=1)
    yield extractor
    await extractor.close()


def say(x: float, y: float, words: str, size: float = 10, font: str = "F1") -> str:
    quoted = words.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
    return f"BT /{font} {size} Tf 1 0 0 1 {x} {y} Tm ({quoted}) Tj ET\n"


def paragraph(x: float, y: float, lines: tuple[str, ...] = LOREM) -> str:
    return "".join(say(x, y - 12 * n, line) for n, line in enumerate(lines))


def line(x0: float, y0: float, x1: float, y1: float) -> str:
    return f"{x0} {y0} m {x1} {y1} l S\n"


def pdf(
    *pages: str,
    about: str = "",
    links: tuple[tuple[str, str], ...] = (),
    more: str = "",
    box: str = "0 0 612 792",
) -> bytes:
    """A PDF of drawn pages. `links`: rectangles on the first page, with their addresses."""
    objects = {
        1: "<< /Type /Catalog /Pages 2 0 R >>",
        3: "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        4: "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold >>",
        5: "<< /Type /Font /Subtype /Type1 /BaseFont /Courier >>",
        6: f"<< {about} >>",
        7: more or "null",
    }
    kids = []
    notes = "".join(
        f"<< /Type /Annot /Subtype /Link /Rect [{place}] /A << /S /URI /URI ({address}) >> >>"
        for place, address in links
    )
    for number, drawn in enumerate(pages):
        page = 10 + 2 * number
        kids.append(f"{page} 0 R")
        objects[page] = (
            f"<< /Type /Page /Parent 2 0 R /MediaBox [{box}] /Contents {page + 1} 0 R "
            f"/Annots [{notes if number == 0 else ''}] /Resources << /Font "
            "<< /F1 3 0 R /F2 4 0 R /F3 5 0 R >> /XObject << /X 7 0 R >> >> >>"
        )
        objects[page + 1] = f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream"
    objects[2] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    body = "".join(f"{number} 0 obj\n{value}\nendobj\n" for number, value in objects.items())
    return f"%PDF-1.4\n{body}trailer << /Root 1 0 R /Info 6 0 R >>\n%%EOF\n".encode("latin-1")


async def read(extractor: FileExtractor, tmp_path: Path, data: bytes, name: str = "") -> Extracted:
    path = tmp_path / "tmpq8x1.pdf"
    path.write_bytes(data)
    return await extractor.extract(path, "application/pdf", name=name)


async def test_headings_are_told_by_their_size(extractor, tmp_path) -> None:
    page = (
        say(72, 740, "Herons of the lower river", 20)
        + say(72, 700, "1 Where they stand", 14)
        + paragraph(72, 680)
        + say(72, 630, "Figure 1: A heron at the weir.", 8)
        + say(72, 600, "2 What they eat", 14)
        + paragraph(72, 580)
        + say(72, 530, "In winter", 10, "F2")
        + paragraph(72, 515)
        + say(300, 40, "17", 10)
    )
    found = await read(extractor, tmp_path, pdf(page))
    heads = [line for line in found.text.splitlines() if line.startswith("#")]
    assert found.title == "Herons of the lower river"
    assert (
        heads
        == [
            "# Herons of the lower river",
            "## 1 Where they stand",
            "## 2 What they eat",
        ]
        or heads[-1] == "### In winter"
    )
    assert "Figure 1: A heron at the weir." in found.text
    assert "17" not in found.text
    assert "did not move for a quarter of an hour, while" in found.text


async def test_a_table_of_contents_has_no_headings_and_heads_of_pages_go(
    extractor, tmp_path
) -> None:
    contents = say(72, 740, "Contents", 14) + "".join(
        say(72, 700 - 20 * n, f"{n} Chapter {word}", 12, "F2") + say(500, 700 - 20 * n, f"{n * 7}")
        for n, word in enumerate(("Eel", "Frog", "Coot"), 1)
    )
    pages = [
        say(72, 770, f"CHAPTER {n // 3}. RIVER") + say(500, 770, f"{n}") + paragraph(72, 700)
        for n in range(2, 8)
    ]
    found = await read(extractor, tmp_path, pdf(contents + paragraph(72, 500), *pages))
    assert "# 1 Chapter" not in found.text
    assert "1 Chapter Eel 7\n" in found.text
    assert "RIVER" not in found.text


@pytest.mark.parametrize("ruled", [True, False])
async def test_numbers_stay_in_their_row(extractor, tmp_path, ruled) -> None:
    rows = [
        ("Bird", "Seen", "Nests"),
        ("Grey heron", "780", "12"),
        ("Coot", "", "45"),
        ("Little grebe", "63", "7"),
        ("Dipper", "8", "2"),
    ]
    drawn = paragraph(72, 740)
    for column in range(3):  # as some programs write: column by column
        drawn += "".join(
            say(80 + 120 * column, 660 - 20 * n, row[column]) for n, row in enumerate(rows)
        )
    if ruled:
        drawn += "".join(line(72, 675 - 20 * n, 432, 675 - 20 * n) for n in range(6))
        drawn += "".join(line(72 + 120 * n, 675, 72 + 120 * n, 575) for n in range(4))
    found = await read(extractor, tmp_path, pdf(drawn + paragraph(72, 520)))
    assert (
        "| Bird | Seen | Nests |\n|---|---|---|\n| Grey heron | 780 | 12 |\n| Coot |  | 45 |\n"
        "| Little grebe | 63 | 7 |\n| Dipper | 8 | 2 |"
    ) in found.text
    before, _, after = found.text.partition("| Bird")
    assert "flew away." in before
    assert "flew away." in after


async def test_text_in_two_columns_and_boxes_are_no_tables(extractor, tmp_path) -> None:
    rows = "".join(
        say(72, 740 - 12 * n, f"The left column goes on in line {n} here")
        + say(330, 740 - 12 * n, f"and the right column says so in {n} too")
        for n in range(30)
    )
    frame = line(60, 60, 560, 60) + line(60, 760, 560, 760) + line(60, 60, 60, 760)
    found = await read(extractor, tmp_path, pdf(rows + frame + line(560, 60, 560, 760)))
    assert "|" not in found.text
    assert found.text.index("in line 29 here") < found.text.index("says so in 0 too")


async def test_drawn_marks_and_late_lines_of_a_browsers_print_are_read(extractor, tmp_path) -> None:
    dot = "{0} {1} m {0} {2} {3} {2} {3} {1} c {3} {4} {0} {4} {0} {1} c f\n"
    page = (
        paragraph(72, 740)
        + say(90, 660, "an eel of the river")
        + dot.format(76, 663, 665, 80, 661)
        + say(90, 640, "a frog of the bank")
        + dot.format(76, 643, 645, 80, 641)
        + say(72, 600, "That was all that the heron ate on that day.")
        + say(72, 690, "What it ate, as far as anyone could see:")
    )
    found = await read(extractor, tmp_path, pdf(page))
    assert found.text.endswith(
        "flew away.\n\nWhat it ate, as far as anyone could see:\n\n- an eel of the river\n\n"
        "- a frog of the bank\n\nThat was all that the heron ate on that day."
    )


async def test_lines_of_a_cell_stay_in_their_row(extractor, tmp_path) -> None:
    rows = (("Grey", "780", "12"), ("Coot", "3", "45"), ("Dipper", "8", "2"))
    drawn = paragraph(72, 740)
    for n, row in enumerate(rows):
        drawn += "".join(say(80 + 120 * at, 660 - 26 * n, cell) for at, cell in enumerate(row))
        drawn += say(80, 648 - 26 * n, "of here")
    found = await read(extractor, tmp_path, pdf(drawn + paragraph(72, 520)))
    assert "| Grey of here | 780 | 12 |\n|---|---|---|\n| Coot of here | 3 | 45 |" in found.text


async def test_links_lists_listings_and_cut_words_are_kept(extractor, tmp_path) -> None:
    page = (
        paragraph(72, 740, (LOREM[0], "and it is a rather inter-", "esting bird that eats eels."))
        + paragraph(72, 680, ("Read the manual of herons", "first, then go out."))
        + say(72, 640, "\xb7 an eel, which is long and smooth and hard to swallow for")
        + say(82, 628, "a small heron")
        + say(72, 616, "\xb7 a frog")
        + say(72, 580, "for bird in river:", 10, "F3")
        + say(96, 568, "print(bird)", 10, "F3")
        + paragraph(72, 530)
    )
    links = (
        ("114 690 193 678", "https://heron.example/a_(b)"),
        ("72 680 90 666", "https://heron.example/a_(b)"),
        ("72 640 120 660", "javascript:alert(1)"),
    )
    found = await read(extractor, tmp_path, pdf(page, links=links))
    assert "a rather interesting bird" in found.text
    assert "[manual of herons first,](<https://heron.example/a_(b)>) then go out." in found.text
    assert "javascript" not in found.text
    assert "- an eel, which is long and smooth and hard to swallow for a small heron" in found.text
    assert "\n\n- a frog" in found.text
    assert "```\nfor bird in river:\n    print(bird)\n```" in found.text


@pytest.mark.parametrize(
    ("declared", "name", "title"),
    [
        ("(anonymous)", "", "Herons of the lower river"),
        ("tmpabc123.html", "", "Herons of the lower river"),
        ("Microsoft Word - herons2.doc", "", "Herons of the lower river"),
        ("C:\\\\Users\\\\me\\\\a b", "", "Herons of the lower river"),
        ("The heron and its river", "x.pdf", "The heron and its river"),
    ],
)
async def test_a_title_is_one_that_someone_wrote(
    extractor, tmp_path, declared, name, title
) -> None:
    page = say(72, 740, "Herons of the lower river", 20) + paragraph(72, 700)
    about = f"/Title ({declared.replace('(', '').replace(')', '')})"
    found = await read(extractor, tmp_path, pdf(page, about=about), name)
    assert found.title == title


async def test_a_form_is_named_by_its_file_and_not_by_its_fields(extractor, tmp_path) -> None:
    form = "".join(
        say(72 + 130 * n, 740, words)
        for n, words in enumerate(("Insured name Gabriel Diaz", "Year 2022", "Claim # 88231-A"))
    )
    found = await read(extractor, tmp_path, pdf(form + paragraph(72, 600)), "claim form.pdf")
    assert found.title == "claim form"


async def test_author_and_date_are_read(extractor, tmp_path) -> None:
    about = "/Author (Ada Heron) /CreationDate (D:20240302101500+01'00')"
    found = await read(extractor, tmp_path, pdf(paragraph(72, 740), about=about))
    assert found.author == "Ada Heron"
    assert found.published_at == datetime(2024, 3, 2, 9, 15, tzinfo=UTC)
    about = "/Author (unknown) /CreationDate (D:99999999999999)"
    found = await read(extractor, tmp_path, pdf(paragraph(72, 740), about=about))
    assert (found.title, found.author, found.published_at) == ("", None, None)


def nested() -> str:
    """A form that draws itself."""
    drawn = "/X Do 0 0 10 10 re f"
    return (
        "<< /Type /XObject /Subtype /Form /BBox [0 0 612 792] /Resources << /XObject "
        f"<< /X 7 0 R >> >> /Length {len(drawn)} >>\nstream\n{drawn}\nendstream"
    )


HOSTILE = {
    "ten thousand small lines": "".join(
        say(20 + n % 100 * 5, 10 + n // 100 * 7, f"a{n}", 1) for n in range(10_000)
    ),
    "a grid of lines": "".join(
        line(n / 4, 0, n / 4, 790) + line(0, n / 3, 600, n / 3) for n in range(2_000)
    ),
    "rectangles": "0 0 5 5 re f\n" * 100_000,
    "one path of rectangles": "0 0 5 5 re\n" * 100_000 + "f\n",
    "forms in forms": "/X Do\n" * 50,
    "turned text": "".join(
        f"BT /F1 9 Tf 0 1 -1 0 {n} 20 Tm (heron {n}) Tj ET\n" for n in range(50, 500, 12)
    ),
    "no size": "BT /F1 0 Tf 0 0 0 0 0 0 Tm (heron) Tj ET\n" * 50,
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_pages_made_to_break_the_reader_are_read(extractor, tmp_path, name) -> None:
    found = await read(extractor, tmp_path, pdf(HOSTILE[name] + paragraph(72, 740), more=nested()))
    assert "shallow water" in found.text


async def test_a_page_of_a_square_mile_is_read(extractor, tmp_path) -> None:
    page = paragraph(72, 740) + line(0, 0, 1e9, 0) + line(0, 0, 0, 1e9)
    found = await read(extractor, tmp_path, pdf(page, box="-1e9 -1e9 1e9 1e9"))
    assert "shallow water" in found.text
