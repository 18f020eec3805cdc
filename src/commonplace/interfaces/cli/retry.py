"""retry, refresh: a second try at what failed, a second look at what has changed."""

from typing import Annotated

import typer

from commonplace.errors import IngestFailed, TranscriptionFailed
from commonplace.interfaces.cli import output
from commonplace.interfaces.cli.command import Desk, command, item_argument
from commonplace.interfaces.cli.job_queue import work_off

ItemId = Annotated[str, item_argument()]


def register(root: typer.Typer) -> None:
    command(root, "retry")(retry)
    command(root, "refresh")(refresh)


async def retry(desk: Desk, item_id: ItemId) -> None:
    """Retry failed work of an item: fetching, transcription, vectors, summary."""
    from commonplace.interfaces.actions import items

    async with desk.open() as (app, caller):
        item = await app.library.retry(caller, item_id)
        with output.progress("Trying again") as advance:
            await work_off(app, advance)
        reading = await app.library.read(caller, item.id)
    if reading.item.ingest_status is not None:
        raise IngestFailed(reading.item.status_reason or "It is still queued; try again later.")
    if reading.transcription is not None:
        raise TranscriptionFailed(
            reading.transcription.error or "It is not done yet; another process is at it."
        )
    if desk.as_json:
        output.as_json(items.item(reading.item))
        return
    output.text(f"Done: {reading.item.title} ({reading.item.id})")


async def refresh(desk: Desk, item_id: ItemId) -> None:
    """Fetch an item's page again."""
    from commonplace.interfaces.actions import items

    async with desk.open() as (app, caller):
        item = await app.library.refresh(caller, item_id)
        with output.progress("Making vectors") as advance:
            await work_off(app, advance)
    if desk.as_json:
        output.as_json(items.item(item))
        return
    output.text(f"Refreshed: {item.title} ({item.id})")
