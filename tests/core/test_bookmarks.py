"""What other programs export, read as they write it."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from commonplace.adapters.exports import export
from commonplace.adapters.exports.parts import NO_ADDRESS
from commonplace.adapters.extract.input_file import Caps, Source
from commonplace.errors import IngestFailed
from commonplace.model import Saved, read_saved

NETSCAPE = """<!DOCTYPE NETSCAPE-Bookmark-file-1>
<META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset=UTF-8">
<TITLE>Bookmarks</TITLE><H1>Bookmarks</H1>
<DL><p>
    <DT><H3 ADD_DATE="1700000000" PERSONAL_TOOLBAR_FOLDER="true">Bookmarks bar</H3>
    <DL><p>
        <DT><A HREF="https://a.example/" ADD_DATE="1700000001" TAGS="one,two words">A &amp; B</A>
        <DT><H3>Cooking</H3>
        <DL><p>
            <DT><A HREF="https://soup.example/" ADD_DATE="1700000002000000">Soup</A>
        </DL><p>
        <DT><A HREF="javascript:alert(1)">Not a page</A>
    </DL><p>
    <DT><A HREF="http://b.example/"></A>
</DL><p>
"""
POCKET = """<!DOCTYPE html><html><head><title>Pocket Export</title></head><body><h1>Unread</h1><ul>
<li><a href="https://a.example/x" time_added="1700000001" tags="birds,rivers">Herons</a></li></ul>
<h1>Read Archive</h1><ul><li><a href="https://b.example/y" time_added="1700000002" tags="">https://b.example/y</a></li></ul></body></html>"""
POCKET_CSV = "title,url,time_added,tags,status\r\nHerons,https://a.example/x,1700000001,birds|rivers,unread\r\n,https://b.example/y,,,archive\r\n"
READWISE = """Highlight,Book Title,Book Author,Amazon Book ID,Note,Color,Tags,Location Type,Location,Highlighted at,Document tags
"First line
second line",On Rivers,Ann Weir,B00,My thought,yellow,water,page,3,2024-03-02 08:00:00+00:00,nature
Another,On Rivers,Ann Weir,B00,,,,page,9,2024-03-01 08:00:00+00:00,nature
Alone,Untold,,,,,,,,,
"""
READER = 'Title,URL,ID,Document tags,Saved date\nHerons,https://a.example/x,1,"birds, rivers",2024-03-02 08:00:00+00:00\n'
KARAKEEP = """{"bookmarks": [
 {"createdAt": 1700000001, "title": null, "tags": ["birds"], "content": {"type": "link", "url": "https://a.example/x", "title": "Herons"}, "note": "Read twice."},
 {"createdAt": 1700000002, "title": "Idea", "tags": [{"name": "mine"}], "content": {"type": "text", "text": "Build a hide."}, "note": "By the weir."},
 {"createdAt": 1700000003, "title": "Picture", "tags": [], "content": {"type": "asset"}}]}"""


def read(file: Path) -> list[Saved]:
    (into := file.with_suffix(".read")).mkdir()
    export(Source(file, "", name=file.name), Caps(), str(into))
    return list(read_saved(into / "saved.jsonl", 10_000_000))


def at(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        (
            "bookmarks.html",
            NETSCAPE,
            [
                Saved(
                    "A & B",
                    "https://a.example/",
                    tags=("one", "two words"),
                    folder="Bookmarks bar",
                    at=at(1700000001),
                ),
                Saved(
                    "Soup",
                    "https://soup.example/",
                    folder="Bookmarks bar/Cooking",
                    at=at(1700000002),
                ),
                Saved("Not a page", lost=NO_ADDRESS),
                Saved("http://b.example/", "http://b.example/"),
            ],
        ),
        (
            "ril_export.html",
            POCKET,
            [
                Saved(
                    "Herons",
                    "https://a.example/x",
                    tags=("birds", "rivers"),
                    folder="Unread",
                    at=at(1700000001),
                ),
                Saved(
                    "https://b.example/y",
                    "https://b.example/y",
                    folder="Read Archive",
                    at=at(1700000002),
                ),
            ],
        ),
        (
            "part_000000.csv",
            POCKET_CSV,
            [
                Saved("Herons", "https://a.example/x", tags=("birds", "rivers"), at=at(1700000001)),
                Saved("https://b.example/y", "https://b.example/y"),
            ],
        ),
        (
            "readwise.csv",
            READWISE,
            [
                Saved(
                    "On Rivers",
                    text="By Ann Weir\n\n> First line\n> second line\n\nMy thought\n\n> Another",
                    tags=("water", "nature"),
                    at=datetime(2024, 3, 1, 8, tzinfo=UTC),
                    author="Ann Weir",
                ),
                Saved("Untold", text="> Alone"),
            ],
        ),
        (
            "reader.csv",
            READER,
            [
                Saved(
                    "Herons",
                    "https://a.example/x",
                    tags=("birds", "rivers"),
                    at=datetime(2024, 3, 2, 8, tzinfo=UTC),
                )
            ],
        ),
        (
            "karakeep.json",
            KARAKEEP,
            [
                Saved(
                    "Herons",
                    "https://a.example/x",
                    tags=("birds",),
                    at=at(1700000001),
                    note="Read twice.",
                ),
                Saved(
                    "Idea", text="Build a hide.\n\nBy the weir.", tags=("mine",), at=at(1700000002)
                ),
                Saved(
                    "Picture",
                    lost="The export has neither a URL nor a text for it, and contains no files.",
                ),
            ],
        ),
    ],
)
def test_each_export_is_read_as_it_is_written(
    tmp_path: Path, name: str, content: str, expected: list[Saved]
) -> None:
    (tmp_path / name).write_bytes(("\ufeff" + content).encode())
    assert read(tmp_path / name) == expected


@pytest.mark.parametrize("moment", ["inf", "Infinity", "1e999", "nan", "-1", "soon"])
def test_a_moment_that_never_comes_is_no_moment(tmp_path: Path, moment: str) -> None:
    (tmp_path / "b.html").write_text(
        f'<dl><dt><a href="https://a.example/" add_date="{moment}">A</a></dl>'
    )
    assert read(tmp_path / "b.html") == [Saved("A", "https://a.example/")]


def test_half_an_emoji_that_a_program_cut_off_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "k.json").write_text(
        r'{"bookmarks": [{"title": "Zero \u0000 and half \ud83d", "tags": ["\ud83d"], "note": "Kept \udc00."}]}'
    )
    assert read(tmp_path / "k.json") == [Saved("Zero and half ?", text="Kept ?.", tags=("?",))]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.json", "{"),
        ("x.json", "[]"),
        ("x.json", '{"bookmarks": [3]}'),
        ("x.csv", "a,b\n1,2\n"),
        ("x.csv", ""),
        ("x.html", "<p>Hello</p>"),
        ("x.zip", "PK"),
    ],
)
def test_what_is_no_export_is_refused_with_the_formats_that_are_known(
    tmp_path: Path, name: str, content: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(IngestFailed, match="Karakeep"):
        read(tmp_path / name)
