"""feed: pages and podcasts that are followed."""

from typing import Annotated

import typer

from commonplace.errors import NotFound
from commonplace.interfaces.cli.command import Group, Session
from commonplace.interfaces.cli.items import FolderName, find_folder

Address = Annotated[
    str,
    typer.Argument(help="URL of the feed (RSS, Atom, JSON Feed, podcast).", show_default=False),
]
Newest = Annotated[
    int, typer.Option(min=0, max=100, help="How many of the current entries to add.")
]
Which = Annotated[str, typer.Argument(help="The feed's id or URL.", show_default=False)]


async def add_feed(
    session: Session, url: Address, folder: FolderName = None, newest: Newest = 10
) -> None:
    """Follow a feed. `serve` and `worker` add its entries, the newest within half a minute."""
    within = (await find_folder(session, folder)).id if folder else None
    feed = await session.services.feeds.subscribe(session.caller, url, within, newest)
    session.show(feed, f"Following {feed.title} ({feed.id})")


async def list_feeds(session: Session) -> None:
    """List feeds."""
    feeds = await session.services.feeds.all(session.caller)
    session.show_table(
        feeds,
        ["id", "visited", "title", "address", "trouble"],
        [(feed.id, feed.polled_at, feed.title, feed.url, feed.error) for feed in feeds],
    )


async def remove_feed(session: Session, feed: Which) -> None:
    """Unfollow a feed. Items that it added stay."""
    feeds = session.services.feeds
    found = [known for known in await feeds.all(session.caller) if feed in (known.id, known.url)]
    if not found:
        raise NotFound(
            f"{feed!r} is not followed; `commonplace feed list` shows the feeds that are."
        )
    for known in found:
        await feeds.unsubscribe(session.caller, known.id)
    session.show(
        {"ok": True, "ids": [known.id for known in found]},
        f"{found[0].title} is not followed any more.",
    )


GROUP: Group = (
    "feed",
    "Follow feeds and add their new entries.",
    {"add": add_feed, "list": list_feeds, "remove": remove_feed},
)
