"""Subscriptions to feeds: new entries are added to the library automatically."""

import asyncio
import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from commonplace.core.items.drafts import Draft
from commonplace.core.items.folders import Folders
from commonplace.core.items.library import Library
from commonplace.core.people.authorization import DELETE, READ, WRITE, Service, verb
from commonplace.errors import CommonplaceError, IngestFailed, LibraryFull, NotFound
from commonplace.model import (
    MEGABYTE,
    Caller,
    Feed,
    FeedEntry,
    Json,
    Subscription,
    digest,
    find_by_id,
    new_id,
    now,
)
from commonplace.ports import Extractor, Fetcher
from commonplace.settings import Settings

log = logging.getLogger(__name__)
LOOK_SECONDS = 30
POLL_MINUTES = 60
LEASE_SECONDS = 1800  # of one poll, with all new entries
TRIES = 3  # for an entry that cannot be fetched
_OLDEST = datetime(1970, 1, 1, tzinfo=UTC)
_FEWEST = 20  # characters of a text worth storing


@dataclass(eq=False)
class Feeds(Service):
    _fetcher: Fetcher
    _extractor: Extractor
    _library: Library
    _folders: Folders
    _settings: Settings

    @verb(WRITE, target="url")
    async def subscribe(
        self, caller: Caller, url: str, folder_id: str | None = None, newest: int = 10
    ) -> Subscription:
        """Subscribe to a feed. It is fetched once in the call, and refused if it is not a feed."""
        if folder_id is not None and folder_id not in {
            f.id for f in await self._store.folders.list_folders(caller.scope)
        }:
            raise NotFound("Folder not found", folder_ids=[folder_id])
        feed, _ = await self._read(url, queue=caller.queue)
        return await self._store.feeds.create(
            Subscription(
                new_id(),
                caller.library_id,
                url,
                (feed.title if feed else "") or url,
                caller.person_id,
                caller.token_id,
                folder_id,
                newest,
            )
        )

    @verb(READ, "list_feeds")
    async def all(self, caller: Caller) -> list[Subscription]:
        """Return the library's subscriptions; for a token with a limited scope, its own."""
        return await self._of(caller)

    @verb(READ, "read_feed", target="feed_id")
    async def get(self, caller: Caller, feed_id: str) -> Subscription:
        return find_by_id(await self._of(caller), feed_id, "Feed")

    @verb(DELETE, target="feed_id")
    async def unsubscribe(self, caller: Caller, feed_id: str) -> None:
        await self._store.feeds.delete(find_by_id(await self._of(caller), feed_id, "Feed"))

    async def keep_polling(self) -> None:
        while True:
            try:
                while await self.poll_next():
                    pass
            except Exception:
                # A lease expires by itself and the feed is polled again. This must outlive a lost
                # database.
                log.exception("Feeds could not be polled; retrying soon")
            await asyncio.sleep(LOOK_SECONDS)

    async def poll_next(self) -> bool:
        """Poll one feed that is due. Returns False if none is."""
        feed = await self._store.feeds.lease(LEASE_SECONDS)
        if feed is None:
            return False
        title, error, validators = feed.title, None, feed.validators
        try:
            found, validators = await self._read(feed.url, feed.validators)
            if found is not None:
                title = found.title or title
                error = await self._add_new(feed, found.entries)
        except CommonplaceError as failed:
            error = failed.message
        if error is not None:
            validators = {}  # retry failed entries, even if the feed has not changed
        # With jitter: feeds subscribed to together may live on one server.
        wait = timedelta(minutes=POLL_MINUTES) * random.uniform(1.0, 1.2)
        await self._store.feeds.record_poll(
            feed, title=title, error=error, poll_at=now() + wait, validators=validators
        )
        return True

    async def _add_new(self, feed: Subscription, entries: Sequence[FeedEntry]) -> str | None:
        """Add new entries, oldest first. Returns the last error."""
        # The polling interval is limit enough.
        caller = await self._access.deputy(feed.library_id, feed.person_id, feed.token_id)
        known = await self._store.feeds.handled_entries(feed, TRIES)
        fresh = [
            entry
            for entry in sorted(
                entries, key=lambda entry: entry.published_at or _OLDEST, reverse=True
            )
            if digest(entry.id) not in known
        ]
        if feed.polled_at is None:
            await self._store.feeds.record_entries(
                feed, [digest(entry.id) for entry in fresh[feed.newest :]], ok=True
            )
            fresh = fresh[: feed.newest]
        error = None
        for entry in reversed(fresh):
            failed = await self._add(caller, feed, entry)
            await self._store.feeds.record_entries(feed, [digest(entry.id)], ok=failed is None)
            error = failed or error
        return error

    async def _add(self, caller: Caller, feed: Subscription, entry: FeedEntry) -> str | None:
        """Add one entry. Returns an error message, or None."""
        url = entry.audio_url or entry.url
        try:
            if url is None and len(entry.summary) < _FEWEST:
                raise IngestFailed("The entry has neither a URL nor a text.")
            draft = (
                Draft("url", title=entry.title, url=url)
                if url
                else Draft("text", title=entry.title, text=entry.summary)
            )
            added = await self._library.add(caller, draft)
            if feed.folder_id is not None and feed.folder_id != caller.single_folder:
                await self._folders.file(caller, added.item.id, [feed.folder_id])
        except LibraryFull:
            raise  # the rest of the entries is added once there is room
        except CommonplaceError as error:
            log.info(
                "%s of the feed %s was not added: %s", url or entry.title, feed.url, error.message
            )
            return f"{entry.title}: {error.message}"
        return None

    async def _of(self, caller: Caller) -> list[Subscription]:
        whole = caller.whole_library
        return await self._store.feeds.list_feeds(
            caller.library_id, None if whole else caller.token_id
        )

    async def _read(
        self, url: str, known: Json | None = None, queue: str = "feeds"
    ) -> tuple[Feed | None, Json]:
        """Fetch a feed. Returns None if it has not changed, and validators for the next request."""
        async with self._fetcher.get(
            url, max_bytes=self._settings.fetch_max_mb * MEGABYTE, known=known
        ) as fetched:
            if fetched.unchanged:
                return None, fetched.validators
            return await self._extractor.parse_feed(
                fetched.path, fetched.url, queue=queue
            ), fetched.validators
