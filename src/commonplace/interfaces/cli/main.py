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

app = typer.Typer(
    name="commonplace", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)
for part in (
    server,
    items,
    history,
    graph,
    disks,
    feeds,
    tasks,
    folders,
    tokens,
    users,
    memory,
    members,
    connect,
    transfer,
    maintenance,
):
    part.register(app)


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
