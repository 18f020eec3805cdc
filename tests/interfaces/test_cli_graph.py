"""Links between entities from the command line."""

from pathlib import Path

import pytest

from tests.interfaces.command import Commands


@pytest.fixture
def cli(data_dir: Path) -> Commands:
    return Commands(data_dir)


def note(cli: Commands, title: str) -> str:
    added = cli.json(
        "add", "-", "--title", title, stdin=f"What there is to say about {title}, at some length."
    )
    return str(cli.json("get", added["user_item_id"])["entity_id"])


def test_items_are_joined_explored_and_parted(cli: Commands) -> None:
    a, b, c = [note(cli, title) for title in ("Alpha", "Beta", "Gamma")]
    made = cli.json("related", a, "--link", b, "--as", "REQUIRES")
    assert (made["from"], made["type"], made["to"]) == (a, "REQUIRES", b)
    assert cli.text("related", b, "--link", c) == "Beta -> RELATED_TO -> Gamma\n"
    assert "already" in cli.text("related", b, "--link", c)
    listed = cli.json("list", "--type", "document")
    assert [found["title"] for found in listed["entities"]] == ["Gamma", "Beta", "Alpha"]
    related = cli.json("related", a)
    assert (related["mode"], [found["id"] for found in related["entities"]]) == ("related", [b])
    far = cli.text("related", a, "--mode", "traverse", "--depth", 2)
    assert far == (
        f"1\t-> REQUIRES\t{b.removeprefix('document_')}\t\tBeta\n"
        f"2\t-> RELATED_TO\t{c.removeprefix('document_')}\t\tGamma\n"
    )
    assert cli.json("related", a, "--relation", "SUPPORTS")["entities"] == []
    assert cli.text("related", a, "--unlink", b, "--as", "REQUIRES") == "Unlinked.\n"
    assert cli.json("related", a)["entities"] == []
    assert cli.text("list", "--type", "document", "--limit", 1).count("\n") == 1


def test_what_cannot_be_done_is_said(cli: Commands) -> None:
    a = note(cli, "Alpha")
    assert "itself" in cli.fails("related", a, "--link", a)
    assert "No entity 'task_nowhere'." in cli.fails("related", a, "--link", "task_nowhere")
    assert "DEPENDS_ON links tasks" in cli.fails(
        "related", a, "--link", note(cli, "Beta"), "--as", "DEPENDS_ON"
    )
    assert "not both" in cli.fails("related", a, "--link", a, "--unlink", a)
    assert "--depth does not go with" in cli.fails("related", a, "--link", a, "--depth", 2)
    assert "`status` must be one or more of" in cli.fails("related", a, "--status", "lost")
    assert "No item 'nowhere'." in cli.fails("related", "nowhere", "--mode", "dependencies")
    for asked in (
        ("related", a, "--project"),
        ("related", a, "--status"),
        ("search", "words", "--project"),
    ):
        assert f"{asked[-1]} must have at most 200 characters" in cli.fails(*asked, "x" * 201)
    assert "QUERY must have at most 10,000 characters" in cli.fails("search", "x" * 10_001)
    assert "--priority must be critical, high" in cli.fails("task", "list", "--priority", "urgent")
    assert "An argument is not UTF-8 text." in cli.fails("search", "\udcff")
    assert "the limit is 500" in cli.fails("add", "-", "--title", "x" * 501)
