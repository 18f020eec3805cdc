"""Disks from the command line."""

from pathlib import Path

import pytest

from tests.interfaces.command import Commands

TEXT = "Spaced repetition works because reviews happen before we forget; reviews make spaced repetition work."


@pytest.fixture
def cli(data_dir: Path) -> Commands:
    return Commands(data_dir)


def test_a_disk_is_previewed_published_saved_and_taken_back(cli: Commands) -> None:
    item = cli.json("add", "-", "--title", "Memory", stdin=TEXT)["user_item_id"]
    other = cli.json("user", "create", "--name", "Bob", "--email", "bob@example.org")["token"]
    [line] = cli.json("disk", "list")["disks"]
    disk = line["public_id"]
    assert (line["visibility"], line["relationship"]) == ("private", "owned")
    assert cli.json("get", item)["text"] == TEXT
    preview = cli.json("get", disk, "--preview")
    assert preview["redacted"] is True and "text" not in preview
    assert cli.fails("get", disk, "--token", other) == f"No item {disk!r}.\n"
    assert cli.json("disk", "publish", disk, "--access", "members")["access"] == "members"
    assert cli.json("disk", "save", disk, "--token", other)["title"] == "Memory"
    assert [
        saved["public_id"]
        for saved in cli.json("disk", "list", "--scope", "saved", "--token", other)["disks"]
    ] == [disk]
    assert cli.json("get", disk, "--token", other) == preview | {"relationship": "saved"}
    shown = cli.text("get", disk, "--token", other)
    assert "redacted" in shown and TEXT not in shown
    assert cli.json("disk", "save", disk, "--undo", "--token", other) == {"ok": True}
    private = cli.json("disk", "publish", disk, "--undo")
    assert (private["public_id"], private["visibility"]) == (disk, "private")
    assert cli.fails("get", disk, "--token", other) == f"No item {disk!r}.\n"
    assert TEXT in cli.text("get", disk)


def test_a_backup_brings_published_and_saved_disks_back(cli: Commands, tmp_path: Path) -> None:
    cli.text("add", "-", "--title", "Memory", stdin=TEXT)
    other = cli.json("user", "create", "--name", "Bob", "--email", "bob@example.org")["token"]
    [line] = cli.json("disk", "list")["disks"]
    cli.text("disk", "publish", line["public_id"], "--summary", "How I learn")
    cli.text("disk", "save", line["public_id"], "--token", other)
    before = cli.json("disk", "list", "--token", other)
    assert before["disks"][0]["summary"] == "How I learn"
    assert "own words" in cli.fails("disk", "publish", line["public_id"], "--summary", TEXT)
    cli.text("backup", tmp_path / "all.backup")
    elsewhere = Commands(tmp_path / "elsewhere")
    elsewhere.text("restore", tmp_path / "all.backup")
    assert elsewhere.json("disk", "list", "--token", other) == before
