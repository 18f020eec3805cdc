"""disk list, get, preview, publish, unpublish, save, unsave."""

from typing import TYPE_CHECKING, Annotated

import typer

from commonplace.interfaces.cli import output
from commonplace.interfaces.cli.command import Desk, command, item_argument
from commonplace.model import Audience, DiskFilter, DiskScope

if TYPE_CHECKING:
    from commonplace.core.disks.disks import Disk

WhichDisk = Annotated[str, item_argument("DISK")]


def register(root: typer.Typer) -> None:
    disk = typer.Typer(
        no_args_is_help=True,
        help="Items as disks: published for others without their text, and others' saved.",
    )
    command(disk, "list")(disk_list)
    command(disk, "get")(disk_get)
    command(disk, "preview")(disk_preview)
    command(disk, "publish")(disk_publish)
    command(disk, "unpublish")(disk_unpublish)
    command(disk, "save")(disk_save)
    command(disk, "unsave")(disk_unsave)
    root.add_typer(disk, name="disk")


async def disk_list(
    desk: Desk,
    scope: Annotated[DiskScope, typer.Option(help="Which disks.")] = DiskScope.ALL,
    category: Annotated[str | None, typer.Option(help="Exact category name.")] = None,
    tag: Annotated[str | None, typer.Option(help="Exact tag name.")] = None,
    search: Annotated[str | None, typer.Option(help="Part of title or tags.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=100, help="How many.")] = 20,
    offset: Annotated[int, typer.Option(min=0, help="How many to pass over.")] = 0,
) -> None:
    """List your disks and those you saved, newest first."""
    from commonplace.interfaces.actions import disks

    async with desk.open() as (app, caller):
        lines, total = await app.disks.page(
            caller, scope, DiskFilter(category, tag, search), limit=limit, offset=offset
        )
    if desk.as_json:
        output.as_json(disks.disk_list(scope.value, lines, total))
        return
    output.table(
        ["id", "", "category", "title", "by"],
        [
            (
                line.public_id,
                line.visibility if line.relationship == "owned" else "saved",
                line.category,
                line.title,
                line.owner_name,
            )
            for line in lines
        ],
    )
    if total > offset + len(lines):
        output.note(f"{len(lines)} of {total}; --offset {offset + len(lines)} shows more.")


async def disk_get(desk: Desk, which: WhichDisk) -> None:
    """Show a disk: yours, one that you saved, or any that is published here."""
    async with desk.open() as (app, caller):
        found = await app.disks.get(caller, which)
    _show(desk, found)


async def disk_preview(desk: Desk, which: WhichDisk) -> None:
    """Show exactly what others would see of one of your disks."""
    async with desk.open() as (app, caller):
        found = await app.disks.preview(caller, which)
    _show(desk, found)


async def disk_publish(
    desk: Desk,
    which: WhichDisk,
    access: Annotated[
        Audience,
        typer.Option(
            help="Who may read it: anyone with its address, or people with an account here."
        ),
    ] = Audience.ANYONE,
    summary: Annotated[
        str | None, typer.Option(help='Your own words for others; "" for a derived outline.')
    ] = None,
) -> None:
    """Let others read what a disk is about, and save it. Its text stays yours."""
    from commonplace.interfaces.actions import disks

    async with desk.open() as (app, caller):
        published = await app.disks.publish(caller, which, access, summary)
    shown = disks.publication(published)
    output.as_json(shown) if desk.as_json else output.text(
        f"Published: {published.view.title} ({shown['path']})"
    )


async def disk_unpublish(desk: Desk, which: WhichDisk) -> None:
    """Take a disk back, at once and for everybody."""
    async with desk.open() as (app, caller):
        item = await app.disks.unpublish(caller, which)
    if desk.as_json:
        output.as_json({"public_id": item.public_id, "visibility": "private"})
    else:
        output.text(f"Private: {item.title}")


async def disk_save(desk: Desk, which: WhichDisk) -> None:
    """Keep somebody else's disk at hand."""
    from commonplace.interfaces.actions import disks

    async with desk.open() as (app, caller):
        saved = disks.saved(await app.disks.save(caller, which))
    output.as_json(saved) if desk.as_json else output.text(f"Saved: {saved['title']}")


async def disk_unsave(desk: Desk, which: WhichDisk) -> None:
    """Forget a disk that you saved."""
    async with desk.open() as (app, caller):
        await app.disks.unsave(caller, which)
    output.as_json({"ok": True}) if desk.as_json else output.text("Forgotten.")


def _show(desk: Desk, found: "Disk") -> None:
    from commonplace.interfaces.actions import disks

    shown = disks.disk(found)
    if desk.as_json:
        output.as_json(shown)
        return
    facts = [
        shown["public_id"],
        shown["visibility"],
        shown["relationship"],
        found.owner_name,
        shown["category"],
        shown["source_url"],
        " ".join(f"#{tag}" for tag in shown["tags"]),
        "redacted" if shown["redacted"] else "",
    ]
    output.text(shown["title"])
    output.text(" · ".join(fact for fact in facts if fact))
    if shown["summary"]:
        output.text()
        output.text(shown["summary"])
    for section in shown["sections"]:
        output.text()
        output.text(f"{section['index']}. {'; '.join(section['key_points'])}")
    if "text" in shown:
        output.text()
        output.text(shown["text"])
