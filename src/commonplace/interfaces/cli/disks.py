"""disk list, get, preview, publish, unpublish, save, unsave."""

from typing import TYPE_CHECKING, Annotated

import typer

from commonplace.interfaces.cli import output
from commonplace.interfaces.cli.command import Group, Session, item_argument
from commonplace.model import Audience, DiskFilter, DiskScope, OpenDisk

if TYPE_CHECKING:
    from commonplace.core.disks.disk_views import Disk

WhichDisk = Annotated[str, item_argument("DISK")]


async def list_disks(
    session: Session,
    scope: Annotated[DiskScope, typer.Option(help="Which disks to list.")] = DiskScope.ALL,
    category: Annotated[str | None, typer.Option(help="Exact category name.")] = None,
    tag: Annotated[str | None, typer.Option(help="Exact tag name.")] = None,
    search: Annotated[str | None, typer.Option(help="Part of the title or the tags.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=100, help="Maximum number.")] = 20,
    offset: Annotated[int, typer.Option(min=0, help="Number to skip.")] = 0,
) -> None:
    """List your disks and the disks that you saved, newest first."""
    disks, total = await session.services.disks.page(
        session.caller, scope, DiskFilter(category, tag, search), limit=limit, offset=offset
    )
    rows = [
        (
            disk.public_id,
            disk.visibility if disk.relationship == "owned" else "saved",
            disk.category,
            disk.title,
            disk.owner_name,
        )
        for disk in disks
    ]
    columns, seen = ["id", "", "category", "title", "by"], offset + len(disks)
    session.show(
        {"scope": scope, "total": total, "disks": disks},
        lambda: output.page(columns, rows, total, seen, f"--offset {seen}"),
    )


async def get_disk(session: Session, which: WhichDisk) -> None:
    """Show a disk: your own, a saved one, or any published one."""
    _show(session, await session.services.disks.get(session.caller, which))


async def preview_disk(session: Session, which: WhichDisk) -> None:
    """Show what others would see of one of your disks."""
    _show(session, await session.services.disks.preview(session.caller, which))


async def publish_disk(
    session: Session,
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
    published = await session.services.disks.publish(session.caller, which, access, summary)
    session.show(published, f"Published: {published.view.title} (/d/{published.public_id})")


async def unpublish_disk(session: Session, which: WhichDisk) -> None:
    """Unpublish a disk, immediately and for everyone."""
    item = await session.services.disks.unpublish(session.caller, which)
    session.show({"public_id": item.public_id, "visibility": "private"}, f"Private: {item.title}")


async def save_disk(session: Session, which: WhichDisk) -> None:
    """Save another person's disk."""
    from commonplace.interfaces.actions import disks as disk_shapes

    saved = disk_shapes.saved_disk(await session.services.disks.save(session.caller, which))
    session.show(saved, f"Saved: {saved['title']}")


async def unsave_disk(session: Session, which: WhichDisk) -> None:
    """Remove a saved disk."""
    await session.services.disks.unsave(session.caller, which)
    session.show({"ok": True}, "Forgotten.")


def _show(session: Session, disk: "Disk") -> None:
    view = disk.view
    facts = [
        disk.public_id,
        disk.visibility,
        disk.relationship,
        disk.owner_name,
        view.category,
        view.source_url,
        " ".join(f"#{tag}" for tag in view.tags),
        "" if isinstance(view, OpenDisk) else "redacted",
    ]
    parts = [
        view.summary,
        *(f"{section.index}. {'; '.join(section.key_points)}" for section in view.sections),
        view.text if isinstance(view, OpenDisk) else "",
    ]
    about = f"{view.title}\n{' · '.join(filter(None, facts))}"
    session.show(disk, "\n\n".join([about, *filter(None, parts)]))


GROUP: Group = (
    "disk",
    "Publish summaries of items, and save those of others.",
    {
        "list": list_disks,
        "get": get_disk,
        "preview": preview_disk,
        "publish": publish_disk,
        "unpublish": unpublish_disk,
        "save": save_disk,
        "unsave": unsave_disk,
    },
)
