"""The graph from the command line."""

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
    made = cli.json("graph", "link", a, b, "--type", "REQUIRES")
    assert (made["from"], made["type"], made["to"], made["created"]) == (a, "REQUIRES", b, True)
    assert cli.text("graph", "link", b, c) == "Beta -> RELATED_TO -> Gamma\n"
    assert "already" in cli.text("graph", "link", b, c)
    listed = cli.json("graph", "explore", "--type", "document")
    assert [found["title"] for found in listed["entities"]] == ["Gamma", "Beta", "Alpha"]
    related = cli.json("graph", "explore", a)
    assert (related["mode"], [found["id"] for found in related["entities"]]) == ("related", [b])
    far = cli.text("graph", "explore", a, "--mode", "traverse", "--depth", 2)
    assert far == f"1\t-> REQUIRES\t{b}\t\tBeta\n2\t-> RELATED_TO\t{c}\t\tGamma\n"
    assert cli.json("graph", "explore", a, "--relation", "SUPPORTS")["entities"] == []
    assert cli.text("graph", "unlink", a, b, "--type", "REQUIRES") == "Unlinked.\n"
    assert cli.json("graph", "explore", a)["entities"] == []
    assert cli.text("graph", "explore", "--limit", 1).count("\n") == 1


def test_what_cannot_be_done_is_said(cli: Commands) -> None:
    a = note(cli, "Alpha")
    assert "itself" in cli.fails("graph", "link", a, a)
    assert "No entity 'task_nowhere'." in cli.fails("graph", "link", a, "task_nowhere")
    assert "DEPENDS_ON links tasks" in cli.fails(
        "graph", "link", a, note(cli, "Beta"), "--type", "DEPENDS_ON"
    )
    assert "entity_id required" in cli.fails("graph", "explore", "--mode", "traverse")
    assert "`status` must be one or more of" in cli.fails("graph", "explore", "--status", "lost")
    assert "No item 'nowhere'." in cli.fails(
        "graph", "explore", "nowhere", "--mode", "dependencies"
    )
    for asked in (
        ("explore", "--project"),
        ("explore", "--status"),
        ("search", "words", "--project"),
    ):
        assert f"{asked[-1]} must have at most 200 characters" in cli.fails(
            "graph", *asked, "x" * 201
        )
    assert "--query must have at most 10,000 characters" in cli.fails(
        "graph", "search", "x" * 10_001
    )
    assert "Unknown priority 'urgent'; it is one of" in cli.fails(
        "task", "list", "--priority", "urgent"
    )
    assert "An argument is not UTF-8 text." in cli.fails("graph", "search", "\udcff")
    assert "may have 500" in cli.fails("add", "-", "--title", "x" * 501)
