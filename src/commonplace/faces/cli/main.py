"""The `commonplace` command: one module per group of commands."""

from typing import Annotated

import typer

import commonplace
from commonplace.faces.cli import (
    again,
    care,
    connect,
    disks,
    feeds,
    graph,
    history,
    items,
    members,
    memory,
    move,
    organise,
    server,
    tasks,
)

app = typer.Typer(name="commonplace", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
for part in (server, items, history, graph, disks, again, feeds, tasks, organise, memory, members, connect, move, care):
    part.register(app)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(commonplace.__version__)
        raise typer.Exit


@app.callback()
def root(version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True,
                                               callback=_version)] = False) -> None:
    """The knowledge base that people and their agents share."""


def main() -> None:
    app()
