"""Backups: one format, both engines, all or nothing."""

import gzip
import json
from pathlib import Path

import apsw
import pytest

from commonplace.store.backup import TABLES
from tests.interfaces.command import Commands

# Made anew from the rest, or about this file only.
DERIVED = {
    "changes",
    "checkpoints",
    "forgotten",
    "job_queues",
    "schema_version",
    "section_terms",
    "sequences",
    "vectors",
    "sqlite_sequence",
    "usage",
}


def commands(engine: str, folder: Path, request: pytest.FixtureRequest) -> Commands:
    if engine == "sqlite":
        return Commands(folder)
    return Commands(
        folder,
        database_url=request.getfixturevalue("postgres_url"),
        database_schema=request.getfixturevalue("postgres_schema"),
    )


@pytest.fixture(params=["sqlite", "postgres"])
def full(request: pytest.FixtureRequest, tmp_path: Path) -> Commands:
    """A library with something of everything."""
    cli = commands(request.param, tmp_path / "full", request)
    # The later a folder, the higher it lies: a backup has rows in any order.
    for name in ("Work", "Projects", "All"):
        cli.text("folder", "create", name)
    cli.text("folder", "rename", "Work", "--parent", "Projects")
    cli.text("folder", "rename", "Projects", "--parent", "All")
    cli.text(
        "add",
        "-",
        "--folder",
        "Work",
        "--title",
        "Zebras",
        stdin="Zebras live in herds, with ERR_STRIPES.\0"[:-1],
    )
    cli.text(
        "add", "-", "--title", "Hidden", "--no-kb", stdin="Ünïcödé that is not in the KB: 知識"
    )
    long = "\n\n".join(
        f"## Part {n}\n\n" + f"glaciers of part {n} move slowly. " * 40 for n in range(10)
    )
    cli.text("add", "-", "--title", "Glaciers", stdin=long)
    return cli


def state(cli: Commands) -> object:
    items = sorted(cli.json("list")["items"], key=lambda item: item["title"])
    whole = [cli.json("get", item["id"]) for item in items]
    searches = [
        cli.json("search", query, "--mode", "semantic")["hits"]
        for query in ("striped animals", "slow ice")
    ]
    assert searches[0][0]["title"] == "Zebras"
    rounded = [
        [(hit["item_id"], hit["section_index"], round(hit["score"], 2)) for hit in hits[:3]]
        for hits in searches
    ]
    return (
        whole,
        cli.json("folder", "list"),
        cli.json("member", "list"),
        cli.json("doctor")["people"],
        rounded,
        cli.json("doctor")["sections_with_vectors"],
    )


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_backup_brings_everything_back_on_either_engine(
    full: Commands, engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    token = full.json("token", "create", "--name", "agent", "--folder", "Work")
    expected = state(full)
    made = full.json("backup", tmp_path / "all.backup")
    assert made["rows"]["items"] == 3
    assert (tmp_path / "all.backup").stat().st_mode & 0o077 == 0, "others can read the backup"
    to_same_database = engine == "postgres" and "COMMONPLACE_DATABASE_URL" in full.env
    other = commands(engine, tmp_path / "other", request)
    if to_same_database:
        assert "There is a library already" in other.fails("restore", tmp_path / "all.backup")
    restored = other.json(
        "restore", tmp_path / "all.backup", *(["--force"] if to_same_database else [])
    )
    assert restored["rows"] == made["rows"]
    assert state(other) == expected
    assert [item["title"] for item in other.json("list", "--token", token["token"])["items"]] == [
        "Zebras"
    ]
    assert other.json("search", "ERR_STRIPES", "--mode", "keyword", "--token", token["token"])[
        "hits"
    ]


def test_restore_replaces_only_when_forced(full: Commands, tmp_path: Path) -> None:
    full.text("backup", tmp_path / "all.backup")
    added = full.json("add", "-", "--title", "Later", stdin="written after the backup was made")
    assert "There is a library already (4 items, 3 folders)" in full.fails(
        "restore", tmp_path / "all.backup"
    )
    assert full.json("get", added["user_item_id"])["title"] == "Later"
    full.text("restore", tmp_path / "all.backup", "--force")
    assert sorted(item["title"] for item in full.json("list")["items"]) == [
        "Glaciers",
        "Hidden",
        "Zebras",
    ]
    assert full.json("search", "written after", "--mode", "keyword")["hits"] == []


def test_half_a_backup_restores_nothing(full: Commands, tmp_path: Path) -> None:
    whole = tmp_path / "all.backup"
    full.text("backup", whole)
    lines = gzip.decompress(whole.read_bytes()).decode().splitlines(keepends=True)
    head, *rows, _ = lines
    damaged = {
        "cut off": whole.read_bytes()[:-200],
        "no end": gzip.compress("".join([head, *rows]).encode()),
        "a line missing": gzip.compress("".join([head, *rows[:-3], lines[-1]]).encode()),
        "not a backup": b"SQLite format 3\0 and so on",
        "another file": gzip.compress(b'{"some": "json"}\n'),
    }
    for content in damaged.values():
        (tmp_path / "bad.backup").write_bytes(content)
        said = full.fails("restore", tmp_path / "bad.backup", "--force")
        assert "damaged or incomplete" in said or "not a backup" in said
    others = {
        "The backup was written by a newer Commonplace (schema 999": {"format": 2, "schema": 999},
        "Restore and export it with that version: commonplace": {"format": 2, "schema": 43},
        "a format that this version does not know (3)": {"format": 3, "schema": 100},
    }
    for words, version in others.items():
        other = json.dumps(["commonplace", version]) + "\n"
        (tmp_path / "bad.backup").write_bytes(gzip.compress("".join([other, *lines[1:]]).encode()))
        assert words in full.fails("restore", tmp_path / "bad.backup", "--force")
    assert full.json("list")["total"] == 3


def test_a_backup_is_not_written_over_another_file(data_dir: Path, tmp_path: Path) -> None:
    cli = Commands(data_dir)
    (tmp_path / "mine.txt").write_text("precious")
    assert "--force" in cli.fails("backup", tmp_path / "mine.txt")
    assert (tmp_path / "mine.txt").read_text() == "precious"
    assert "There is no folder" in cli.fails("backup", tmp_path / "no" / "where.backup")
    assert "No such file" in cli.fails("restore", tmp_path / "nothing.backup")
    cli.text("backup", tmp_path / "mine.txt", "--force")
    assert list(tmp_path.glob(".mine*")) == []


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_backup_carries_uploaded_files(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    cli = commands(engine, tmp_path / "full", request)
    file, blobs = tmp_path / "herons.html", tmp_path / "full" / "blobs"
    file.write_text("<h1>Herons</h1><p>A grey heron waits for eels by the weir.</p>")
    item = cli.json("add", file)["user_item_id"]
    assert cli.json("backup", tmp_path / "all.backup")["rows"]["files"] == 1
    small = cli.json("backup", tmp_path / "small.backup", "--without-files")
    assert small["rows"]["files"] == 0
    [stored] = [each for each in blobs.rglob("*") if each.is_file()]
    content = stored.read_bytes()
    # A later file goes with the library that the backup replaces; an earlier one comes back.
    (tmp_path / "later.html").write_text("<p>This was added after the backup was made.</p>")
    cli.json("add", tmp_path / "later.html")
    stored.unlink()
    restored = cli.json("restore", tmp_path / "all.backup", "--force")
    assert restored["rows"]["files"] == 1
    assert [each for each in blobs.rglob("*") if each.is_file()] == [stored]
    assert stored.read_bytes() == content == file.read_bytes()
    stored.unlink()
    cli.json("restore", tmp_path / "small.backup", "--force")
    assert not stored.exists() and cli.json("get", item)["title"] == "Herons"


def test_a_backup_with_half_a_file_restores_nothing(tmp_path: Path) -> None:
    cli = Commands(tmp_path / "full")
    file = tmp_path / "herons.html"
    file.write_text("<h1>Herons</h1><p>A grey heron waits for eels by the weir.</p>" * 9)
    cli.json("add", file)
    cli.json("backup", tmp_path / "all.backup")
    whole = gzip.decompress((tmp_path / "all.backup").read_bytes())
    start = whole.index(b'["files", ')
    for change in (
        whole[: start + 200],
        whole[: start + 100] + whole[start + 110 :],
        whole.replace(b'"key": "uploads/', b'"key": "uploads/../'),
    ):
        (tmp_path / "bad.backup").write_bytes(gzip.compress(change))
        other = Commands(tmp_path / "other")
        assert other.fails("restore", tmp_path / "bad.backup")
        assert not [each for each in (tmp_path / "other").rglob("blobs/**/*") if each.is_file()]
        assert other.json("list")["total"] == 0
    assert file.exists() and cli.json("list")["total"] == 1


def test_every_table_is_backed_up(data_dir: Path) -> None:
    Commands(data_dir).json("list")
    connection = apsw.Connection(str(data_dir / "commonplace.sqlite3"))
    tables = {
        row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    }
    connection.close()
    assert tables - DERIVED == set(TABLES)
