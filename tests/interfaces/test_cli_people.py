"""Folders, tokens, people and client configurations from the command line."""

import re
from pathlib import Path

import pytest

from tests.interfaces.command import Commands


@pytest.fixture
def cli(data_dir: Path) -> Commands:
    return Commands(data_dir)


def test_folders(cli: Commands) -> None:
    folder_id = cli.text("folder", "create", "Reading list").strip()
    assert cli.json("folder", "list")["folders"][0]["id"] == folder_id
    assert "already a folder" in cli.fails("folder", "create", "READING LIST")
    assert cli.json("folder", "rename", "reading list", "Books")["name"] == "Books"
    cli.text("add", "-", "--folder", "Books", stdin="a book that goes with its folder")
    assert cli.json("folder", "delete", folder_id, "--cascade-items") == {"ok": True}
    assert (cli.json("folder", "list")["folders"], cli.json("list")["total"]) == ([], 0)
    assert "no folder" in cli.fails("folder", "delete", "Books")
    cli.text("folder", "create", "Work")
    cli.text("folder", "create", "Notes", "--parent", "work")
    notes = cli.json("add", "-", "--folder", "home/Notes/2026", stdin="nested")["folder_id"]
    assert cli.text("folder", "list").split()[-2:] == ["0", "Work/Notes"]
    assert "2 folders are named 'notes'" in cli.fails("list", "--folder", "notes")
    assert "Use an id or path: home/Notes, Work/Notes." in cli.fails(
        "token", "create", "--name", "t", "--folder", "notes"
    )
    assert cli.json("token", "create", "--name", "t", "--folder", "home/notes/2026")["folders"] == [
        notes
    ]
    assert "home/Notes/2026" in cli.text("token", "list")
    moved = cli.json("folder", "rename", "Home/Notes", "--parent", "Work/Notes")
    assert "into itself" in cli.fails("folder", "rename", "Work", "--parent", moved["id"])
    assert cli.json("list", "--folder", "work/notes/notes/2026")["total"] == 1
    assert cli.json("folder", "rename", "2026", "--parent", "")["parent_id"] is None
    assert "NAME must not be blank" in cli.fails("folder", "create", " ")


def test_a_token_is_shown_once_listed_without_secret_and_revoked(cli: Commands) -> None:
    cli.text("folder", "create", "Work")
    made = cli.json(
        "token",
        "create",
        "--name",
        "agent",
        "--write",
        "--folder",
        "work",
        "--kb-only",
        "--expires",
        30,
    )
    assert {"id", "token"} <= set(made)
    assert made["token"].startswith("sk_")
    assert len(made["token"]) == 46
    [listed] = cli.json("token", "list")["tokens"]
    assert (listed["id"], listed["name"], listed["capabilities"], listed["kb_only"]) == (
        made["id"],
        "agent",
        ["read", "write"],
        True,
    )
    assert len(listed["folders"]) == 1
    assert listed["expires_at"] is not None
    shown = cli.text("token", "list")
    assert made["token"] not in shown and "Work" in shown
    cli.text("token", "revoke", "agent")
    assert "revoked" in cli.fails("list", "--token", made["token"])
    assert "no token" in cli.fails("token", "revoke", "agent")


def test_tokens_that_cannot_be_made(cli: Commands) -> None:
    assert "no folder 'nowhere'" in cli.fails(
        "token", "create", "--name", "x", "--folder", "nowhere"
    )
    assert cli.json("token", "list")["tokens"] == []
    cli.json("token", "create", "--name", "twin")
    cli.json("token", "create", "--name", "twin", "--expires", 0)
    assert {token["expires_at"] is None for token in cli.json("token", "list")["tokens"]} == {
        True,
        False,
    }
    assert "2 tokens are named 'twin'" in cli.fails("token", "revoke", "twin")


def test_people_have_libraries_of_their_own(cli: Commands) -> None:
    made = cli.json("user", "create", "--name", "Ann", "--email", "ann@example.com")
    assert set(made) == {"id", "token"}
    cli.text("add", "-", "--token", made["token"], stdin="this belongs to Ann and nobody else")
    assert cli.json("list", "--token", made["token"])["total"] == 1
    assert cli.json("list")["total"] == 0
    assert cli.json("doctor")["people"] == 2
    assert (
        "ann@example.com"
        in cli.fails("user", "create", "--name", "A", "--email", "ANN@example.com").lower()
    )
    assert "not an email address" in cli.fails(
        "user", "create", "--name", "A", "--email", "nowhere"
    )


def test_a_link_lets_a_person_choose_a_password(cli: Commands) -> None:
    made = cli.json("user", "create", "--name", "Bea", "--email", "bea@example.org")
    answer = cli.json("user", "link", "BEA@example.org")
    assert answer["id"] == made["id"]
    assert re.fullmatch(r"http://127\.0\.0\.1:8642/claim/[\w-]{43}", answer["link"])
    assert cli.json("user", "link")["id"] != made["id"]
    assert (
        cli.json("user", "link", "--email", "bea@example.org")["id"]
        == cli.json("user", "link", made["id"])["id"]
        == made["id"]
    )
    assert "nobody" in cli.fails("user", "link", "nobody@example.org")
