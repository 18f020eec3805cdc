"""Exports of other programs, made as their programs write them."""

import json
import zipfile
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from commonplace.adapters.exports import export
from commonplace.adapters.extract import FileExtractor
from commonplace.adapters.extract.input_file import Caps, Source
from commonplace.errors import IngestFailed
from commonplace.model import Saved, read_saved

pytestmark = pytest.mark.anyio

HEX, OTHER = "0123456789abcdef0123456789abcdef", "f" * 32
ENML = (
    '<?xml version="1.0" encoding="UTF-8"?><!DOCTYPE en-note SYSTEM "http://xml.evernote.com/pub/enml2.dtd">'
    '<en-note><div>Buy <b>paint</b>, see <a href="https://a.example/">here</a></div>'
    '<div><en-todo checked="true"/>Brush</div><div><en-todo/>Roller</div>'
    '<en-media type="text/plain" hash="5d41402abc4b2a76b9719d911017c592"/></en-note>'
)
ENEX = f"""<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE en-export SYSTEM "http://xml.evernote.com/pub/evernote-export4.dtd">
<en-export application="Evernote"><note><title>Paint</title><created>20240302T080000Z</created>
<updated>20240303T080000Z</updated><tag>house</tag><note-attributes><author>Ann</author>
<source-url>https://b.example/</source-url></note-attributes><content><![CDATA[{ENML}]]></content>
<resource><data encoding="base64">aGVs
bG8=</data><mime>text/plain</mime><resource-attributes><file-name>list.txt</file-name></resource-attributes></resource>
</note><note><title>Empty</title><content></content></note></en-export>"""
KINDLE = """\ufeffOn Rivers (Ann Weir)\r
- Ihre Markierung auf Seite 5 | Position 73-74 | Hinzugefügt am Montag, 4. März 2024 20:15:00\r
\r
Water flows.\r
==========\r
\ufeffOn Rivers (Ann Weir)\r
- Ihre Notiz auf Seite 5 | Position 74 | Hinzugefügt am Montag, 4. März 2024 20:16:00\r
\r
I saw that.\r
==========\r
\ufeffOn Rivers (Ann Weir)\r
- Ihre Markierung auf Seite 2 | Position 20-22 | Hinzugefügt am Dienstag, 5. März 2024 20:16:00\r
\r
The spring.\r
==========\r
Bare\r
- Your Bookmark on page 9 | location 100 | Added on Monday, March 4, 2024 8:15:00 PM\r
\r
\r
==========\r
"""
MAIL = (
    "From: =?utf-8?q?Ann_W=C3=A9ir?= <ann@a.example>\nTo: bob@b.example\nSubject: =?utf-8?b?SMOpcm9ucw==?=\n"
    "Date: Mon, 4 Mar 2024 20:15:00 +0100\nMessage-ID: <1@a.example>\nMIME-Version: 1.0\n"
    'Content-Type: multipart/mixed; boundary="x"\n\n--x\nContent-Type: text/html; charset=utf-8\n'
    "Content-Transfer-Encoding: quoted-printable\n\n<p>They <b>fish</b> =C3=A9arly.</p>\n--x\n"
    'Content-Type: text/plain\nContent-Disposition: attachment; filename="../../etc/passwd"\n\nlist\n--x--\n'
)


def zipped(files: dict[str, str | bytes]) -> bytes:
    with zipfile.ZipFile(made := BytesIO(), "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


def read(
    folder: Path, content: str | bytes | Any, name: str = "export.bin", **caps: int
) -> dict[str, Saved]:
    """The name says nothing: files are recognised by their content."""
    if not isinstance(content, str | bytes):
        content = json.dumps(content)
    file, into = folder / name, folder / "into"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    into.mkdir()
    export(Source(file, "", name=name), Caps(**caps), str(into))
    return {each.title: each for each in read_saved(into / "saved.jsonl", 10_000_000)}


def at(*when: int) -> datetime:
    return datetime(*when, tzinfo=UTC)


def test_notes_of_evernote_keep_what_they_hold(tmp_path: Path) -> None:
    found = read(tmp_path, ENEX)
    note = found["Paint"]
    assert note.text == (
        "Buy **paint**, see [here](https://a.example/)\n\n- [x] Brush\n\n- [ ] Roller\n\n(list.txt)"
    )
    assert (note.tags, note.at, note.author) == (("house",), at(2024, 3, 2, 8), "Ann")
    assert note.about["source_url"] == "https://b.example/"
    [file] = note.attachments
    assert (file.name, (tmp_path / "into" / file.file).read_bytes()) == ("list.txt", b"hello")
    assert found["Empty"].lost


def test_clippings_become_a_note_a_book_in_any_language(tmp_path: Path) -> None:
    found = read(tmp_path, KINDLE)
    book = found["On Rivers"]
    assert book.text.split("\n\n") == [
        "> The spring.\n>\n> (20-22)",
        "> Water flows.\n>\n> (73-74)",
        "I saw that.",
    ]
    assert (book.author, book.at) == ("Ann Weir", at(2024, 3, 4, 20, 15))
    assert found["Bare"].lost


@pytest.mark.parametrize("box", ["", "From ann@a.example Mon Mar  4 20:15:00 2024\n"])
def test_mail_is_decoded(tmp_path: Path, box: str) -> None:
    found = read(tmp_path, box + MAIL)["Hérons"]
    assert found.text.endswith("They **fish** éarly.")
    assert (found.author, found.key) == ("Ann Wéir <ann@a.example>", "mail:<1@a.example>")
    assert found.at == at(2024, 3, 4, 19, 15)
    assert [file.name for file in found.attachments] == ["passwd"]


def test_of_a_conversation_the_branch_is_kept_that_was_shown(tmp_path: Path) -> None:
    def node(parent: str | None, role: str, *said: object, **told: object) -> object:
        content = {"content_type": "text", "parts": said}
        return {
            "parent": parent,
            "message": {"author": {"role": role}, "content": content, "metadata": told},
        }

    mapping = {
        "root": {"parent": None, "message": None},
        "s": node("root", "system", "Be nice.", is_visually_hidden_from_conversation=True),
        "q": node("s", "user", "Why do herons stand still?"),
        "old": node("q", "assistant", "Who knows."),
        "new": node("q", "assistant", "To fish.", model_slug="gpt-4"),
    }
    talk = {
        "title": "Herons",
        "create_time": 1700000000.5,
        "conversation_id": "c-1",
        "current_node": "new",
        "mapping": mapping,
    }
    endless = talk | {
        "title": "Loop",
        "mapping": {"new": node("new", "user", "Again")},
    }
    found = read(tmp_path, zipped({"conversations.json": json.dumps([talk, endless])}))
    assert found["Herons"].text == "**User:** Why do herons stand still?\n\n**Assistant:** To fish."
    assert (found["Herons"].kind, found["Herons"].about["model"]) == ("session", "gpt-4")
    assert found["Loop"].text == "**User:** Again"


def test_conversations_of_claude_keep_what_was_attached(tmp_path: Path) -> None:
    messages = [
        {
            "uuid": "1",
            "sender": "human",
            "text": "Read this.",
            "attachments": [{"file_name": "a.txt", "extracted_content": "Herons fish."}],
        },
        {"uuid": "2", "sender": "assistant", "content": [{"type": "text", "text": "They do."}]},
    ]
    talk = {"uuid": "c", "name": "Birds", "created_at": "2024-03-02T08:00:00Z"}
    found = read(tmp_path, [talk | {"chat_messages": messages}])["Birds"]
    assert found.text == (
        "**User:** Read this.\n\nAttached: a.txt\n\nHerons fish.\n\n**Assistant:** They do."
    )
    assert (found.key, found.at) == ("claude:c", at(2024, 3, 2, 8))


def test_pages_of_notion_lose_their_digits_and_keep_properties_and_links(tmp_path: Path) -> None:
    home = (
        f"# Home\n\nCreated: March 4, 2024 8:15 PM\nTags: a, b\nState: Done\n\n"
        f"See [Sub](Home%20{HEX}/Sub%20{OTHER}.md) and ![p](p.png)\n"
    )
    inner = zipped(
        {
            f"Home {HEX}.md": home,
            f"Home {HEX}/Sub {OTHER}.md": "# Sub\n\nNote: this is prose and\nnot a property\n",
            "p.png": b"png",
            f"Birds {HEX}.csv": "Name,Where\nHeron,weir\n",
            f"Birds {HEX}_all.csv": "\ufeffName,Where\nHeron,weir\nCoot|Duck,pond\n",
        }
    )
    found = read(tmp_path, zipped({"Export-Part-1.zip": inner}))
    note = found["Home"]
    assert note.text == "# Home\n\nSee [Sub](Home/Sub.md) and ![p](p.png)\n"
    assert (note.tags, note.at, note.about["State"]) == (
        ("a", "b"),
        at(2024, 3, 4, 20, 15),
        "Done",
    )
    assert note.links == (found["Sub"].key,) and [f.name for f in note.attachments] == ["p.png"]
    assert (found["Sub"].folder, found["Sub"].text) == (
        "Home",
        "# Sub\n\nNote: this is prose and\nnot a property\n",
    )
    assert found["Birds"].text.splitlines()[-1] == "| Coot\\|Duck | pond |"
    assert found.keys() == {"Home", "Sub", "Birds"}


def test_pages_of_omnivore_come_from_the_zip(tmp_path: Path) -> None:
    entry = {
        "title": "Herons",
        "url": "https://a.example/herons",
        "slug": "herons-1",
        "labels": ["birds"],
        "savedAt": "2024-03-02T08:00:00.000Z",
        "state": "Archived",
    }
    files: dict[str, str | bytes] = {
        "metadata_0_to_20.json": json.dumps([entry]),
        "content/herons-1.html": "<p>They <a href='/fish'>fish</a>.</p>",
        "highlights/herons-1.md": "> They fish",
    }
    found = read(tmp_path, zipped(files))
    page = found["Herons"]
    assert (page.whole, page.text) == (True, "They [fish](https://a.example/fish).")
    assert (page.note, page.tags, page.folder) == ("> They fish", ("birds",), "Archive")
    assert found.keys() == {"Herons"}


def test_a_vault_in_a_zip_has_links_tags_and_files(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "v/a.md": "---\naliases: [Al, Bert]\n---\nSee [[B|bee]], ![[p.txt]] #wet/x #12 `#code`\n```\n#no [[x]]\n```\n",
        "v/sub/B.md": "Back to [[bert#now]]",
        "v/p.txt": "file",
        "v/left.bin": "alone",
        "v/journals/2024_03_02.md": "- walked",
        "v/.obsidian/app.json": "{}",
    }
    found = read(tmp_path, zipped(files))
    assert (found["a"].tags, found["a"].links) == (("wet/x",), (found["B"].key,))
    assert found["B"].links == (found["a"].key,)
    assert [file.name for file in found["a"].attachments] == ["p.txt"]
    assert found["2024_03_02"].at == at(2024, 3, 2)
    assert found["v/left.bin"].lost and not any("obsidian" in name for name in found)


def test_tables_are_read_by_their_columns(tmp_path: Path) -> None:
    raindrop = (
        "id,title,note,excerpt,url,folder,tags,created,cover,highlights,favorite\n"
        '1,Soup,My note,ex,https://a.example/,Cook,"a, b c",2024-03-02T08:00:00.000Z,,Hot,false\n'
    )
    soup = read(tmp_path, raindrop)["Soup"]
    assert (soup.tags, soup.at, soup.folder) == (("a", "b c"), at(2024, 3, 2, 8), "Cook")
    assert soup.note == "My note\n\nHot"
    (tmp_path / "other").mkdir()
    instapaper = (
        "URL,Title,Selection,Folder,Timestamp,Tags\n"
        'https://a.example/,Soup,,Archive,1700000000,"[""a"",""b, c""]"\n'
    )
    soup = read(tmp_path / "other", instapaper)["Soup"]
    assert (soup.tags, soup.folder) == (("a", "b, c"), "Archive")
    assert soup.at == at(2023, 11, 14, 22, 13, 20)


def test_bookmarks_as_json_keep_notes_and_collections(tmp_path: Path) -> None:
    entry = {
        "href": "https://a.example/",
        "description": "Soup",
        "extended": "Good",
        "time": "2024-03-02T08:00:00Z",
        "tags": "hot red",
        "toread": "yes",
        "shared": "no",
    }
    soup = read(tmp_path, [entry])["Soup"]
    assert (soup.note, soup.tags, soup.about) == (
        "Good",
        ("hot", "red", "toread"),
        {"shared": False},
    )
    (tmp_path / "other").mkdir()
    link = {
        "name": "Soup",
        "url": "https://a.example/",
        "textContent": "Boil.",
        "tags": [{"name": "t"}],
    }
    collections = [
        {"id": 2, "name": "Hot", "parentId": 1, "links": [link]},
        {"id": 1, "name": "Food", "parentId": 2, "links": []},  # each within the other
    ]
    soup = read(tmp_path / "other", {"collections": collections})["Soup"]
    assert (soup.text, soup.tags) == ("Boil.", ("t",))
    assert (soup.folder or "").endswith("Food/Hot")


def test_a_notebook_keeps_code_and_short_outputs(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Herons\n", "Counted."]},
        {
            "cell_type": "code",
            "source": "1 + 1",
            "outputs": [
                {"data": {"text/plain": ["2"], "image/png": "x"}},
                {"text": "y" * 9_000},
            ],
        },
    ]
    book = {"cells": cells, "nbformat": 4, "metadata": {"kernelspec": {"language": "python"}}}
    text = read(tmp_path, book)["Herons"].text
    assert "```python\n1 + 1\n```\n\n```\n2\n```" in text and len(text) < 3_000


def test_subscriptions_have_their_folders(tmp_path: Path) -> None:
    opml = (
        '<?xml version="1.0"?><opml version="2.0"><body><outline text="News">'
        '<outline text="Herons" xmlUrl="https://a.example/f"/><outline text="Bad" xmlUrl="file:///etc/passwd"/>'
        "</outline></body></opml>"
    )
    found = read(tmp_path, opml)
    [feed] = [each for each in found.values() if each.kind == "feed"]
    assert (feed.url, feed.folder) == ("https://a.example/f", "News")
    assert found["Bad"].lost


def bomb() -> bytes:
    with zipfile.ZipFile(made := BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.md", b"0" * 30_000_000)
    return made.getvalue()


def test_zips_stay_within_their_limits(tmp_path: Path) -> None:
    for number, content in enumerate((bomb(), zipped({"in.zip": bomb()}))):
        (folder := tmp_path / str(number)).mkdir()
        with pytest.raises(IngestFailed, match="too large"):
            read(folder, content, unpacked_megabytes=2)
    (folder := tmp_path / "damaged").mkdir()
    with pytest.raises(IngestFailed, match="damaged"):
        read(folder, zipped({"a.md": "x"})[:-9])
    (folder := tmp_path / "climbing").mkdir()
    climbing = zipped({"../../evil.md": "x", "/root.md": "y", "in/good.md": "# Good"})
    found = read(folder, climbing)
    assert [name for name, each in found.items() if not each.lost] == ["Good"]
    assert not (tmp_path / "evil.md").exists()


@pytest.mark.parametrize(
    ("content", "title"),
    [(MAIL, "Hérons"), (KINDLE.split("==========")[0] + "==========\r\n", "On Rivers")],
)
async def test_a_single_one_is_read_when_it_is_added(
    tmp_path: Path, content: str, title: str
) -> None:
    (file := tmp_path / "some.txt").write_text(content)
    extractor = FileExtractor(1)
    try:
        kind = await extractor.detect_type(file)
        assert (await extractor.extract(file, kind)).title == title
    finally:
        await extractor.close()


@pytest.mark.parametrize("content", [ENEX, KINDLE, "<opml><body/></opml>"])
async def test_several_are_refused_in_words_when_they_are_added(
    tmp_path: Path, content: str
) -> None:
    (file := tmp_path / "some.txt").write_text(content)
    extractor = FileExtractor(1)
    try:
        with pytest.raises(IngestFailed, match=r"Import it|no text"):
            await extractor.extract(file, await extractor.detect_type(file))
    finally:
        await extractor.close()


async def test_a_letter_is_no_mail(tmp_path: Path) -> None:
    (file := tmp_path / "letter.txt").write_text("From: me to you\n\nDate: tomorrow\n")
    extractor = FileExtractor(1)
    try:
        assert await extractor.detect_type(file) == "text/plain"
    finally:
        await extractor.close()


def test_an_entry_that_is_too_long_is_named_and_the_others_are_kept(tmp_path: Path) -> None:
    notes = [
        {"title": title, "content": {"type": "text", "text": text}}
        for title, text in (("Long", "x" * 21_000_000), ("Short", "Herons"))
    ]
    found = read(tmp_path, {"bookmarks": notes})
    assert (found["Long"].text, found["Short"].text) == ("", "Herons") and found["Long"].lost


@pytest.mark.parametrize("line", ["{", "[]", "{}", "7"])
def test_what_a_reader_that_was_taken_over_writes_is_no_entry(tmp_path: Path, line: str) -> None:
    (tmp_path / "saved.jsonl").write_text(line)
    with pytest.raises(IngestFailed):
        list(read_saved(tmp_path / "saved.jsonl", 1_000))
