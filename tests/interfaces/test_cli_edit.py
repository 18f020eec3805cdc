"""`commonplace edit`: in a real terminal with a real editor, and from standard input."""

import os
import pty
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interfaces.command import COMMAND, Commands

TEXT = "The heron waits in the shallow water."


@pytest.fixture
def cli(data_dir: Path) -> Commands:
    return Commands(data_dir)


@pytest.fixture
def note(cli: Commands) -> str:
    return str(cli.json("add", "-n", TEXT)["user_item_id"])


def on_a_terminal(cli: Commands, *arguments: str, script: str, **env: str) -> tuple[int, str]:
    """Run a command on a terminal, where the editor is a script. What it prints, and its status."""
    editor = f"{shlex.quote(sys.executable)} -c {shlex.quote(script)}"
    leader, follower = pty.openpty()
    try:
        done = subprocess.run(
            [*COMMAND, *arguments],
            stdin=follower,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            env={
                **os.environ,
                **cli.env,
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                "EDITOR": editor,
                "VISUAL": "",
                **env,
            },
        )
    finally:
        os.close(leader)
        os.close(follower)
    return done.returncode, done.stdout


REPLACE = (
    "import sys, pathlib; f = pathlib.Path(sys.argv[1]);"
    "f.write_text(f.read_text().replace('heron', 'kestrel'))"
)


def test_a_text_is_edited_in_the_editor(cli: Commands, note: str) -> None:
    status, said = on_a_terminal(cli, "edit", note, script=REPLACE)
    assert status == 0 and "Saved: " in said, said
    assert cli.json("get", note)["text"] == TEXT.replace("heron", "kestrel")
    assert [version["revision"] for version in cli.json("history", note)["versions"]] == [1]
    status, said = on_a_terminal(cli, "edit", note, script="pass")
    assert status == 0 and "Nothing changed" in said
    assert cli.json("get", note)["revision"] == 2


def test_what_was_typed_survives_a_failure(cli: Commands, note: str, tmp_path: Path) -> None:
    failing = f"{REPLACE}; sys.exit(3)"
    status, said = on_a_terminal(cli, "edit", note, script=failing, TMPDIR=str(tmp_path))
    [kept] = tmp_path.glob("commonplace-*.md")
    assert status == 1 and "ended with status 3" in said and str(kept) in said
    assert kept.read_text() == TEXT.replace("heron", "kestrel")
    kept.unlink()
    changes = f"{REPLACE}; import subprocess; subprocess.run(sys.argv[2:] or OTHER, input=b'Mine.')"
    other = [*COMMAND, "edit", note]
    status, said = on_a_terminal(
        cli, "edit", note, script=changes.replace("OTHER", repr(other)), TMPDIR=str(tmp_path)
    )
    [kept] = tmp_path.glob("commonplace-*.md")
    assert status == 1 and "Somebody changed the item meanwhile" in said and str(kept) in said
    assert kept.read_text() == TEXT.replace("heron", "kestrel")
    assert cli.json("get", note)["text"] == "Mine."
    status, said = on_a_terminal(cli, "edit", note, script="", EDITOR="no-such-editor-here")
    assert status == 1 and "Set EDITOR" in said


def test_without_a_terminal_it_reads_standard_input(cli: Commands, note: str) -> None:
    assert "Saved: " in cli.text("edit", note, stdin="The kestrel hovers.")
    assert cli.json("get", note)["text"] == "The kestrel hovers."
    assert "empty" in cli.fails("edit", note)
    assert "UTF-8" in cli.fails("edit", note, stdin=b"\xff")
    assert "500,000" in cli.fails("edit", note, stdin="x" * 500_001)
    assert cli.json("get", note)["text"] == "The kestrel hovers."
    assert "nothing" in cli.fails("edit", "nothing", stdin="Text.")


def test_tasks_have_a_command_of_their_own(cli: Commands) -> None:
    project = cli.json("remember", "Birds", TEXT, "--type", "project")["id"]
    task = cli.json("task", "add", "Count them", "--project", project)["id"]
    assert "task update" in cli.fails("edit", task, stdin="Text.")
    assert "PATCH" in cli.fails("edit", project, stdin="Text.")
