"""The tree of commands: small, and true to the actions."""

import inspect
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import pytest

from commonplace.interfaces.actions.registry import ACTIONS
from commonplace.interfaces.cli.main import COMMANDS, SECTIONS
from commonplace.interfaces.cli.render import EMPTY, RENDERERS
from tests.interfaces.command import Commands

PATHS = {path for commands in COMMANDS.values() for path in commands}


def test_there_are_no_more_commands_than_promised() -> None:
    """What the contract lists, `trash` and its three included; a new one replaces another."""
    assert len(PATHS) <= 63


def test_every_command_has_its_place_in_the_help() -> None:
    listed = " ".join(SECTIONS.values()).split()
    assert len(listed) == len({*listed})
    assert {path.split()[0] for path in PATHS} <= {*listed}
    said = Commands(Path()).text("--help")
    assert [said.index(f"─ {title} ─") for title in SECTIONS] == sorted(
        said.index(f"─ {title} ─") for title in SECTIONS
    )


def test_help_names_no_type_of_a_switch() -> None:
    said = (Path(__file__).parents[1] / "goldens/help.txt").read_text()
    assert "<bool>" not in said and "--json" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["connect", "foo"], "'client': 'foo' is not one of 'claude-code'"),
        (["serve", "--port", "x"], "'--port': Must be a whole number."),
        (["serve", "--port", "99999"], "'--port': Must be less than or equal to 65535"),
        (["edit", "x", "--mark", "foo"], "'--mark': 'foo' is not one of 'superseded'"),
    ],
)
def test_a_wrong_value_is_told_in_plain_words(
    arguments: list[str], said: str, data_dir: Path
) -> None:
    told = Commands(data_dir).fails(*arguments, code=2)
    assert said in " ".join(told.replace("│", " ").split())
    assert "Value error" not in told and "Input should" not in told


def test_the_shell_completes_commands_and_their_options(data_dir: Path) -> None:
    def completed(line: str) -> str:
        variables = {
            "_COMMONPLACE_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(line.split()) - (not line.endswith(" "))),
        }
        process = Commands(data_dir).start(extra=variables)
        return process.communicate(timeout=60)[0]

    assert "archive" in completed("commonplace arch").split()
    assert "--undo" in completed("commonplace archive --u").split()
    assert "superseded" in completed("commonplace edit x --mark su").split()


def test_the_lines_of_help_are_those_of_the_actions_and_functions() -> None:
    for module, lines in COMMANDS.items():
        commands = import_module(f"commonplace.interfaces.cli.{module}").COMMANDS
        for path, line in lines.items():
            text = " ".join((inspect.getdoc(commands[path]) or "").split())
            assert text.startswith(line), path
        if module != "generated":
            assert commands.keys() == lines.keys()


def test_every_action_at_the_command_line_has_its_command() -> None:
    named = [action.cli for action in ACTIONS.values() if action.cli]
    assert set(named) <= PATHS


def test_every_answer_can_be_told_to_people() -> None:
    shown = [action for action in ACTIONS.values() if action.cli]
    untold = {action.name for action in shown if "message" not in action.output.properties}
    # `member list` prints these two itself.
    assert untold - RENDERERS.keys() == {"list_members", "list_invitations"}
    assert RENDERERS.keys() <= ACTIONS.keys()


def test_every_list_says_what_to_do_when_it_is_empty() -> None:
    tables = {name for name, how in RENDERERS.items() if isinstance(how, Mapping)}
    assert EMPTY.keys() == tables | {"list_folders"}
