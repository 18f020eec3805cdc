"""feed: pages and podcasts that are followed."""

from typing import Annotated

import typer

from commonplace.errors import NotFound
from commonplace.interfaces.cli import output
from commonplace.interfaces.cli.command import Desk, command
from commonplace.interfaces.cli.items import FolderName, find_folder

Address = Annotated[
    str,
    typer.Argument(help="URL of the feed (RSS, Atom, JSON Feed, podcast).", show_default=False),
]
Newest = Annotated[
    int, typer.Option(min=0, max=100, help="How many of the current entries to add.")
]
Which = Annotated[str, typer.Argument(help="The feed's id or URL.", show_default=False)]


def register(root: typer.Typer) -> None:
    feed = typer.Typer(no_args_is_help=True, help="Follow feeds and add their new entries.")
    command(feed, "add")(feed_add)
    command(feed, "list")(feed_list)
    command(feed, "remove")(feed_remove)
    root.add_typer(feed, name="feed")


async def feed_add(
    desk: Desk, url: Address, folder: FolderName = None, newest: Newest = 10
) -> None:
    """Follow a feed. Entries are added while `serve` or `worker` runs, the newest within half a minute."""
    from commonplace.interfaces.actions import items

    async with desk.open() as (app, caller):
        within = (await find_folder(app, caller, folder)).id if folder else None
        found = await app.feeds.subscribe(caller, url, within, newest)
    output.as_json(items.feed(found)) if desk.as_json else output.text(
        f"Following {found.title} ({found.id})"
    )


async def feed_list(desk: Desk) -> None:
    """List feeds."""
    from commonplace.interfaces.actions import items

    async with desk.open() as (app, caller):
        feeds = await app.feeds.all(caller)
    if desk.as_json:
        output.as_json([items.feed(feed) for feed in feeds])
        return
    output.table(
        ["id", "visited", "title", "address", "trouble"],
        [(feed.id, feed.polled_at, feed.title, feed.url, feed.error) for feed in feeds],
    )


async def feed_remove(desk: Desk, feed: Which) -> None:
    """Unfollow a feed. Items that it added stay."""
    async with desk.open() as (app, caller):
        found = [known for known in await app.feeds.all(caller) if feed in (known.id, known.url)]
        if not found:
            raise NotFound(
                f"{feed!r} is not followed; `commonplace feed list` shows the feeds that are."
            )
        for known in found:
            await app.feeds.unsubscribe(caller, known.id)
    if desk.as_json:
        output.as_json({"ok": True, "ids": [known.id for known in found]})
        return
    output.text(f"{found[0].title} is not followed any more.")
