"""history list, get, diff."""

from typing import Annotated

import typer

from commonplace.interfaces.cli import output
from commonplace.interfaces.cli.command import Desk, command, item_argument

WhichItem = Annotated[str, item_argument("ITEM")]
Revision = Annotated[
    int,
    typer.Argument(
        min=1, max=2**31 - 1, help="Revision, as shown by `history list`.", show_default=False
    ),
]


def register(root: typer.Typer) -> None:
    history = typer.Typer(no_args_is_help=True, help="Show earlier versions of an item.")
    command(history, "list")(history_list)
    command(history, "get")(history_get)
    command(history, "diff")(history_diff)
    root.add_typer(history, name="history")


async def history_list(desk: Desk, item: WhichItem) -> None:
    """List an item's earlier versions, newest first."""
    from commonplace.interfaces.actions import versions

    async with desk.open() as (app, caller):
        found = await app.versions.of(caller, item)
    if desk.as_json:
        output.as_json(versions.versions(found))
        return
    output.table(
        ["revision", "until", "words", "title"],
        [
            (version.revision, version.replaced_at, version.word_count, version.title)
            for version in found
        ],
    )


async def history_get(desk: Desk, item: WhichItem, revision: Revision) -> None:
    """Show an earlier version."""
    from commonplace.interfaces.actions import versions

    async with desk.open() as (app, caller):
        found = await app.versions.get(caller, item, revision)
    output.as_json(versions.version_in_full(found)) if desk.as_json else output.text(found.text)


async def history_diff(desk: Desk, item: WhichItem, revision: Revision) -> None:
    """Show what changed in the next version, or since the last one."""
    from commonplace.interfaces.actions import versions

    async with desk.open() as (app, caller):
        found = versions.difference(await app.versions.compare(caller, item, revision))
    if desk.as_json:
        output.as_json(found)
    elif found["lines"] is None:
        output.note("The texts are too long to be compared line by line.")
    else:
        for line in found["lines"]:
            output.text(f"{line['sign']} {line['text']}".rstrip())
