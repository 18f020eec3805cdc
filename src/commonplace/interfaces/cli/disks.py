"""disk list, get, preview, publish, unpublish, save, unsave."""

from typing import TYPE_CHECKING, Annotated

import typer

from commonplace.interfaces.cli import output
from commonplace.interfaces.cli.command import Desk, command, item_argument
from commonplace.model import Audience, DiskFilter, DiskScope

if TYPE_CHECKING:
    from commonplace.core.disks.disk_views import Disk

WhichDisk = Annotated[str, item_argument("DISK")]


def register(root: typer.Typer) -> None:
    disk = typer.Typer(
        no_args_is_help=True,
        help="Publish summaries of items, and save those of others.",
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
    scope: Annotated[DiskScope, typer.Option(help="Which disks to list.")] = DiskScope.ALL,
    category: Annotated[str | None, typer.Option(help="Exact category name.")] = None,
    tag: Annotated[str | None, typer.Option(help="Exact tag name.")] = None,
    search: Annotated[str | None, typer.Option(help="Part of the title or the tags.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=100, help="Maximum number.")] = 20,
    offset: Annotated[int, typer.Option(min=0, help="Number to skip.")] = 0,
) -> None:
    """List your disks and the disks that you saved, newest first."""
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
    """Show a disk: your own, a saved one, or any published one."""
    async with desk.open() as (app, caller):
        found = await app.disks.get(caller, which)
    _show(desk, found)


async def disk_preview(desk: Desk, which: WhichDisk) -> None:
    """Show what others would see of one of your disks."""
    async with desk.open() as (app, caller):
        found = await app.disks.preview(caller, which)
    _show(desk, found)


async def disk_publish(
    desk: Desk,
    which: WhichDisk,
    access: Annotated[
        Audience,
        typer.Option(help="Who can read it: anyone with the link, or people with an account."),
    ] = Audience.ANYONE,
    summary: Annotated[
        str | None, typer.Option(help='Your own summary; "" for the derived one.')
    ] = None,
) -> None:
    """Publish a disk. Others see a summary and can save it, but never see the text."""
    from commonplace.interfaces.actions import disks

    async with desk.open() as (app, caller):
        published = await app.disks.publish(caller, which, access, summary)
    shown = disks.publication(published)
    output.as_json(shown) if desk.as_json else output.text(
        f"Published: {published.view.title} ({shown['path']})"
    )


async def disk_unpublish(desk: Desk, which: WhichDisk) -> None:
    """Unpublish a disk, immediately and for everyone."""
    async with desk.open() as (app, caller):
        item = await app.disks.unpublish(caller, which)
    if desk.as_json:
        output.as_json({"public_id": item.public_id, "visibility": "private"})
    else:
        output.text(f"Private: {item.title}")


async def disk_save(desk: Desk, which: WhichDisk) -> None:
    """Save another person's disk."""
    from commonplace.interfaces.actions import disks

    async with desk.open() as (app, caller):
        saved = disks.saved(await app.disks.save(caller, which))
    output.as_json(saved) if desk.as_json else output.text(f"Saved: {saved['title']}")


async def disk_unsave(desk: Desk, which: WhichDisk) -> None:
    """Remove a saved disk."""
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
