"""The tree of commands: small, and true to the actions."""

import inspect
from importlib import import_module

from commonplace.interfaces.actions.registry import ACTIONS
from commonplace.interfaces.cli.main import COMMANDS
from commonplace.interfaces.cli.render import RENDERERS

PATHS = {path for commands in COMMANDS.values() for path in commands}


def test_there_are_at_most_sixty_commands() -> None:
    assert len(PATHS) <= 60


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
