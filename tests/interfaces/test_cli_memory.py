"""remember, reflect, context and review on the command line."""

from pathlib import Path

import pytest

from tests.interfaces.command import Commands


@pytest.fixture
def commands(data_dir: Path) -> Commands:
    return Commands(data_dir)


def test_what_is_remembered_comes_back_in_a_pack(commands: Commands) -> None:
    kept = commands.json(
        "remember",
        "Use PKCE",
        "We use PKCE for the web client.",
        "--type",
        "decision",
        "--key",
        "k1",
    )
    assert kept["id"].startswith("decision_")
    assert commands.json(
        "remember",
        "Use PKCE",
        "-",
        "--type",
        "decision",
        "--key",
        "k1",
        stdin="We use PKCE for the web client.",
    )["repeated"]
    assert kept["id"] in commands.text("context", "log in with PKCE")
    pack = commands.json(
        "context", "log in with PKCE", "--intent", "decide", "--token-budget", "500"
    )
    assert pack["sections"][0]["items"][0]["id"] == kept["id"]
    assert "build, plan" in commands.fails("context", "x", "--intent", "dance")
    assert "Title cannot be empty" in commands.fails("remember", " ", "text")


def test_notes_are_reflected_on_and_reviewed(commands: Commands, tmp_path: Path) -> None:
    notes = tmp_path / "call.txt"
    notes.write_text("We decided to paint the shed red.\n\nMaybe we could paint the door too.")
    assert "Paint the shed red" in commands.text("reflect", notes)
    found = commands.json("reflect", notes, "--persist", "--review")
    assert (found["queued"], found["source_title"]) == (2, "call.txt")
    waiting = commands.json("review", "list")
    ids = {one["kind"]: one["id"] for one in waiting["candidates"]}
    assert "> We decided to paint the shed red." in commands.text("review", "list", ids["decision"])
    kept = commands.json("review", "accept", ids["decision"], "--title", "Red shed")["candidate"]
    assert (kept["state"], kept["title"]) == ("accepted", "Red shed")
    assert commands.json("review", "reject", ids["idea"])["state"] == "rejected"
    assert commands.json("review", "list")["total"] == 0
    assert "Candidate not found" in commands.fails("review", "reject", "nothing")
    assert "Red shed" in commands.text("search", "shed")
