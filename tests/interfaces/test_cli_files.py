"""Files of any kind and exports of other programs, by the command line."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from commonplace.model import now
from tests import recordings
from tests.interfaces.command import Commands
from tests.webserver import WebServer, page, web_server

PAGE = (
    "<html><head><title>About {0}</title></head><body><article><h1>About {0}</h1>"
    + "".join(
        f"<p>Paragraph {n}: the {{0}} lives by the river and looks for food under the roots of alders.</p>"
        for n in range(12)
    )
    + "</article></body></html>"
)


@pytest.fixture
def web() -> Iterator[WebServer]:
    with web_server() as server:
        server.pages |= {f"/{name}": page(PAGE.format(name)) for name in ("otter", "heron")}
        yield server


@pytest.fixture
def cli(data_dir: Path, web: WebServer) -> Commands:
    return Commands(data_dir, fetch_allow_hosts=web.host)


@pytest.fixture
def bookmarks(tmp_path: Path, web: WebServer) -> Path:
    (file := tmp_path / "bookmarks.html").write_text(
        f'<DL><DT><H3>Animals</H3><DL><DT><A HREF="{web.url}/otter" ADD_DATE="1700000001" TAGS="wet">Otters</A>'
        f'<DT><A HREF="{web.url}/missing" ADD_DATE="1700000002" TAGS="old">Gone</A><DD>Words on lost pages</DL><DT><A HREF="{web.url}/heron">Herons</A></DL>'
    )
    return file


def listed(cli: Commands, *options: str) -> dict[str, Any]:
    return {item["title"]: item for item in cli.json("list", *options)["items"]}


def test_a_file_is_read_found_and_its_original_kept(
    cli: Commands, tmp_path: Path, data_dir: Path
) -> None:
    (tmp_path / "otter.html").write_text(PAGE.format("otter"))
    added = cli.json("add", tmp_path / "otter.html", "--tag", "wet", "--folder", "Animals")
    assert (added["status"], added["title"], added["created"]) == ("ready", "About otter", True)
    item = listed(cli, "--folder", "Animals")["About otter"]
    assert (item["kind"], item["tags"]) == ("file", ["wet"])
    assert cli.json("search", "roots of alders")["hits"][0]["item_id"] == item["id"]
    [kept] = [file for file in (data_dir / "blobs").rglob("*") if file.is_file()]
    assert kept.read_bytes() == (tmp_path / "otter.html").read_bytes()
    assert cli.json("add", tmp_path / "otter.html")["created"] is False


def test_of_several_those_that_fail_are_named_and_the_others_are_kept(
    cli: Commands, tmp_path: Path, web: WebServer
) -> None:
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7 nothing")
    result = cli.run("add", tmp_path / "broken.pdf", f"{web.url}/otter", f"{web.url}/missing")
    assert result.exit_code == 1
    assert "Added: About otter" in result.stdout
    assert "broken.pdf: " in result.stderr and f"{web.url}/missing: " in result.stderr
    assert listed(cli).keys() == {"About otter"}


def test_bookmarks_come_with_what_their_owner_wrote_also_those_whose_page_is_gone(
    cli: Commands, bookmarks: Path, web: WebServer
) -> None:
    result = cli.run("import", bookmarks, "--json")
    answer = json.loads(result.stdout)
    assert (result.exit_code, answer["added"], answer["folders"]) == (0, 3, 1)
    assert [each["path"] for each in answer["unreachable"]] == [f"{web.url}/missing"]
    assert "404" in result.stderr
    found = listed(cli, "--folder", "Animals")
    assert found.keys() == {"Otters", "Gone", "Words on lost pages"}
    otter, gone = found["Otters"], found["Gone"]
    assert (otter["tags"], otter["created_at"][:10]) == (["wet"], "2023-11-14")
    assert (gone["tags"], gone["created_at"][:10]) == (["old"], "2023-11-14")
    assert (otter["source_status"], gone["source_status"]) == (None, "unreachable")
    assert cli.json("search", "lost pages", "--mode", "keyword")["hits"]
    assert cli.json("search", "roots of alders")["hits"]


def test_minutes_that_are_used_up_keep_recordings_out_and_nothing_else(
    data_dir: Path, tmp_path: Path, bookmarks: Path, web: WebServer
) -> None:
    cli = Commands(data_dir, fetch_allow_hosts=web.host, transcription_minutes="1")
    long = recordings.record(tmp_path / "long.mp3", recordings.tone(61, 16_000), 16_000, "mono")
    refused = cli.run("add", long, f"{web.url}/otter")
    assert refused.exit_code == 1 and f"{long}: This month's 1 minutes" in refused.stderr
    assert listed(cli).keys() == {"About otter"}
    with closing(apsw.Connection(str(data_dir / "commonplace.sqlite3"))) as database:
        database.execute(
            "INSERT INTO transcriptions SELECT id, 'spent', id, ?, 60 FROM people",
            [f"{now():%Y-%m}"],
        )
    web.pages["/missing"] = page(long.read_bytes(), "audio/mpeg")
    answer = json.loads(cli.run("import", bookmarks, "--json").stdout)
    assert (answer["added"], [failed["path"] for failed in answer["skipped"]]) == (
        1,
        [f"{web.url}/missing"],
    )
    assert listed(cli).keys() == {"About otter", "Herons"}


def test_an_import_goes_on_where_it_was(cli: Commands, bookmarks: Path, web: WebServer) -> None:
    cli.run("import", bookmarks)
    asked = [request.path for request in web.requests]
    web.pages["/missing"] = page(PAGE.format("coot"))
    answer = cli.json("import", bookmarks)
    assert (answer["added"], answer["changed"], answer["unchanged"]) == (0, 1, 2)
    assert answer["unreachable"] == []
    assert [request.path for request in web.requests][len(asked) :] == ["/missing"]
    found = listed(cli)
    assert found.keys() >= {"Otters", "Herons", "Gone"}
    assert found["Gone"]["source_status"] == "changed"
    hits = cli.json("search", "coot lives by the river", "--mode", "keyword")["hits"]
    assert found["Gone"]["id"] in {hit["item_id"] for hit in hits}
    assert cli.json("import", bookmarks)["unchanged"] == 3


def test_highlights_become_notes_that_grow(cli: Commands, tmp_path: Path) -> None:
    head = "Highlight,Book Title,Book Author,Note,Tags,Highlighted at\n"
    row = "The {} is patient,On Rivers,Ann,,birds,2024-03-0{} 08:00:00+00:00\n"
    (file := tmp_path / "readwise.csv").write_text(head + row.format("heron", 1))
    assert cli.json("import", file)["added"] == 1
    assert cli.json("import", file)["unchanged"] == 1
    file.write_text(head + row.format("heron", 1) + row.format("kingfisher", 2))
    assert cli.json("import", file)["changed"] == 1
    assert cli.json("search", "kingfisher", "--mode", "keyword")["hits"][0]["title"] == "On Rivers"
    assert len(listed(cli)) == 1


def test_notes_of_the_same_title_stay_apart_by_date_and_words(
    cli: Commands, tmp_path: Path
) -> None:
    def note(at: int, text: str) -> dict[str, object]:
        return {
            "createdAt": at,
            "title": "Idea",
            "tags": [],
            "content": {"type": "text", "text": text},
        }

    notes = [
        note(1700000001, "Build a hide."),
        note(1700000002, "Build a hide."),
        note(1700000002, "Build a boat."),
        note(1700000002, "Build a boat."),
    ]
    (file := tmp_path / "karakeep.json").write_text(json.dumps({"bookmarks": notes}))
    answer = cli.json("import", file)
    assert (answer["added"], answer["unchanged"]) == (3, 1)
    found = cli.json("list", "--limit", "10")["items"]
    assert sorted(item["created_at"][:19] for item in found) == [
        "2023-11-14T22:13:21",
        "2023-11-14T22:13:22",
        "2023-11-14T22:13:22",
    ]
    assert cli.json("import", file)["unchanged"] == 4


def test_what_is_no_export_is_refused(cli: Commands, tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text("{}")
    assert "Nothing to import was found" in cli.fails("import", tmp_path / "notes.json")
    assert "There is no file or folder" in cli.fails("import", tmp_path / "nowhere")


def test_what_an_import_brings_is_described_and_stays_so_when_it_is_imported_again(
    cli: Commands, tmp_path: Path
) -> None:
    (tmp_path / "vault").mkdir()
    text = " ".join(
        f"The otter of day {n} swims along the river bank and looks for crayfish."
        for n in range(20)
    )
    (tmp_path / "vault" / "otter.md").write_text(f"# Otters\n\n{text}")
    (tmp_path / "vault" / "own.md").write_text(
        f"---\nsummary: My own words.\ntags: [wet]\n---\n# Own\n\n{text}"
    )
    cli.text("import", tmp_path / "vault", "--wait")
    before = listed(cli)
    assert (
        before["Otters"]["summary"] and before["Otters"]["tags"] and before["Otters"]["key_points"]
    )
    assert (before["Own"]["summary"], before["Own"]["tags"]) == ("My own words.", ["wet"])
    assert cli.json("import", tmp_path / "vault")["unchanged"] == 2
    assert listed(cli) == before
    assert cli.json("get", before["Otters"]["id"])["sections"][0]["key_points"]


def test_feeds_are_followed_listed_and_left(cli: Commands, web: WebServer) -> None:
    entry = f"<item><title>Otters</title><link>{web.url}/otter</link></item>"
    web.pages["/feed"] = page(
        f'<rss version="2.0"><channel><title>River news</title>{entry}</channel></rss>',
        "application/rss+xml",
    )
    cli.text("folder", "create", "News")
    feed = cli.json("feed", "add", f"{web.url}/feed", "--folder", "news", "--newest", 3)
    assert (feed["title"], feed["url"], feed["polled_at"]) == (
        "River news",
        f"{web.url}/feed",
        None,
    )
    assert cli.json("feed", "list")["feeds"] == [feed] and "River news" in cli.text("feed", "list")
    assert cli.json("feed", "add", f"{web.url}/feed", "--folder", "News")["id"] == feed["id"], (
        "asking again is no trouble"
    )
    assert cli.json("feed", "remove", f"{web.url}/feed") == {"ok": True}
    assert cli.json("feed", "list")["feeds"] == []
    assert "feed list" in cli.fails("feed", "remove", feed["id"])
    del web.pages["/feed"]
    assert "not a feed" in cli.fails("feed", "add", f"{web.url}/otter")
    assert "http" in cli.fails("feed", "add", "river.example/feed")
