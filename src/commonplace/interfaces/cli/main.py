"""The `commonplace` command: one module per group of commands."""

import sys
from typing import Annotated

import typer

import commonplace
from commonplace.interfaces.cli import (
    connect,
    disks,
    feeds,
    folders,
    graph,
    history,
    items,
    maintenance,
    members,
    memory,
    server,
    tasks,
    tokens,
    transfer,
    users,
)
from commonplace.interfaces.cli.command import add_commands

app = typer.Typer(
    name="commonplace", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)
server.register(app)
for part in (items, memory, connect, transfer, maintenance):
    add_commands(app, part.COMMANDS)
for name, text, commands in (
    history.GROUP,
    graph.GROUP,
    disks.GROUP,
    feeds.GROUP,
    tasks.TASKS,
    tasks.EPICS,
    folders.GROUP,
    tokens.GROUP,
    users.GROUP,
    memory.REVIEW,
    members.GROUP,
):
    group = typer.Typer(no_args_is_help=True, help=text)
    add_commands(group, commands)
    app.add_typer(group, name=name)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(commonplace.__version__)
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """The knowledge base that people and their agents share."""


def main() -> None:
    """Run the command line. Without arguments on a terminal, serve and open the browser."""
    alone = len(sys.argv) == 1 and sys.stdout.isatty()
    app(["serve", "--browser"] if alone else None)
