"""Tags, folders, the archive and the browser from the command line; and what lists say."""

from pathlib import Path

import pytest

from tests.interfaces.command import Commands
from tests.interfaces.test_cli_processes import serving

UUID = r"[0-9a-f]{8}-"


@pytest.fixture
def cli(data_dir: Path) -> Commands:
    return Commands(data_dir)


def added(cli: Commands, text: str) -> str:
    """Add a note, and return the id that is printed."""
    return cli.text("add", "-n", text).rpartition("(")[2].strip(")\n")


def test_tags_are_added_and_removed(cli: Commands) -> None:
    item = added(cli, "Buy milk")
    said = cli.text("tag", item, "shop", "today", "shop")
    assert said == f"Tags of Buy milk ({item}): shop, today\n"
    assert cli.json("tag", item, "food", "--remove", "today")["tags"] == ["shop", "food"]
    assert cli.fails("tag", item) == "Enter a tag: commonplace tag ITEM TAG\n"
    assert cli.fails("tag", "nothing", "x") == "No item 'nothing'.\n"


def test_items_are_archived_and_brought_back(cli: Commands) -> None:
    milk, bread = added(cli, "Buy milk"), added(cli, "Buy bread")
    said = cli.text("archive", milk, bread)
    assert said == f"Archived: Buy milk ({milk})\nArchived: Buy bread ({bread})\n"
    assert cli.json("list")["items"] == []
    assert cli.text("archive", milk, "--undo") == f"Restored: Buy milk ({milk})\n"
    assert [item["title"] for item in cli.json("list")["items"]] == ["Buy milk"]
    result = cli.run("archive", "nothing", milk)
    assert result.exit_code == 1 and result.stdout == f"Archived: Buy milk ({milk})\n"
    assert result.stderr == "nothing: No item 'nothing'.\n"


def test_items_move_between_folders(cli: Commands) -> None:
    item = added(cli, "Buy milk")

    def folders() -> list[str]:
        return [folder["name"] for folder in cli.json("get", item)["folders"]]

    assert cli.text("move", item, "Shop") == f"Buy milk ({item}) moved to Shop\n"
    assert folders() == ["Shop"]
    cli.text("move", item, "Home", "--keep")
    assert sorted(folders()) == ["Home", "Shop"]
    cli.text("move", item, "Shop")
    assert folders() == ["Shop"], "it is moved, not copied"
    assert cli.text("move", item, "") == f"Buy milk ({item}) in no folder\n"
    assert folders() == []
    assert cli.fails("move", "nothing", "New") == "No item 'nothing'.\n"
    assert "New" not in cli.text("folder", "list"), "no folder for what is not there"


def test_open_leads_to_the_page_of_the_running_server(
    cli: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = list[str]()
    monkeypatch.setattr("webbrowser.open", opened.append)
    item = added(cli, "Buy milk")
    assert "Start it: commonplace serve" in cli.fails("open", COMMONPLACE_URL="http://127.0.0.1:9")
    assert opened == []
    with serving(cli) as (address, _, _):
        assert cli.text("open") == f"{address}\n"
        assert cli.json("open", item) == {"url": f"{address}/items/{item}"}
        assert cli.fails("open", "nothing") == "No item 'nothing'.\n"
        checks = {check["name"]: check for check in cli.json("doctor")["checks"]}
        assert checks["Server"] == {
            "name": "Server",
            "state": "ok",
            "detail": f"{address} is ready",
        }
    assert opened == [address, f"{address}/items/{item}"]


def test_one_kind_of_id_is_printed_everywhere(cli: Commands) -> None:
    project = cli.text("remember", "Pier", "Piers rest on piles.", "--type", "project")
    project = project.rpartition("(")[2].strip(")\n")
    for arguments in (
        ("task", "add", "Buoys", "--project", project),
        ("remember", "We use Postgres for the archive.", "--type", "decision"),
        ("add", "-n", "The harbour opens at dawn."),
    ):
        cli.text(*arguments)
    ids = {item["public_id"] for item in cli.json("list")["items"]} | {
        item["id"].rpartition("_")[2] for item in cli.json("list", "--type", "task")["entities"]
    }
    said = "".join(
        cli.text(*arguments)
        for arguments in (
            ("list",),
            ("list", "--type", "task"),
            ("task", "list"),
            ("task", "list", "--next"),
            ("search", "harbour"),
            ("search", "archive", "--type", "decision"),
            *(("get", each) for each in ids),
            *(("related", each) for each in ids),
        )
    )
    assert all(each in said for each in ids)
    assert not [
        word
        for word in said.replace("(", " ").replace(")", " ").split()
        if word.count("-") == 4 or word.partition("_")[0] in ("task", "document", "decision")
    ]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["list"], "No items yet. Add one: commonplace add URL"),
        (["list", "--query", "owls"], "No matches."),
        (["feed", "list"], "No feeds yet. Add one: commonplace feed add URL"),
        (["review", "list"], "Nothing to review."),
        (["folder", "list"], "No folders yet. Create one: commonplace folder create NAME"),
        (["token", "list"], "No tokens yet. Create one: commonplace token create --name NAME"),
        (["oauth", "client", "list"], "No OAuth clients yet."),
        (["disk", "list"], "No disks yet."),
        (["task", "list"], "No tasks yet. Add one: commonplace task add TITLE --project PROJECT"),
    ],
)
def test_an_empty_list_says_what_to_do(cli: Commands, command: list[str], said: str) -> None:
    result = cli.run(*command)
    assert (result.exit_code, result.stdout) == (0, "") and said in result.stderr


def test_a_text_alone_is_remembered_with_its_first_line_as_title(cli: Commands) -> None:
    entity = cli.json("remember", "# We use Postgres\n\nfor the archive.", "--type", "decision")
    found = cli.json("get", entity["id"])
    assert (found["title"], found["content"]) == (
        "We use Postgres",
        "# We use Postgres\n\nfor the archive.",
    )
    long = cli.json("remember", "A heron stands by the weir. " * 20)
    assert len(cli.json("get", long["id"])["title"]) <= 200
    piped = cli.json("remember", "Herons", stdin="They wait for eels.")
    assert cli.json("get", piped["id"])["content"] == "They wait for eels."
    assert "Title cannot be empty" in cli.fails("remember", " ")


def test_connect_alone_lists_the_clients(cli: Commands) -> None:
    result = cli.run("connect")
    assert result.exit_code == 0 and "claude-code\n" in result.stdout
    assert "commonplace connect CLIENT" in result.stderr


def test_what_is_no_file_may_be_a_note(cli: Commands) -> None:
    assert "commonplace add -n 'Buy milk'" in cli.fails("add", "Buy milk")
