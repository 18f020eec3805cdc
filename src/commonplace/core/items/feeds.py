"""Subscriptions to feeds: new entries are added to the library automatically."""

import asyncio
import logging
import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from urllib.parse import urljoin

from commonplace.core.ingest.sources import content_of, own_page
from commonplace.core.items.drafts import AddedItem, Draft
from commonplace.core.items.folders import Folders
from commonplace.core.items.library import Library
from commonplace.core.people.authorization import DELETE, READ, WRITE, Service, verb
from commonplace.errors import CommonplaceError, IngestFailed, LibraryFull, NotFound
from commonplace.model import (
    MEGABYTE,
    Caller,
    Extracted,
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
from commonplace.text.chunking import count

log = logging.getLogger(__name__)
LOOK_SECONDS = 30
POLL_MINUTES = 60
LEASE_SECONDS = 1800  # of one poll, with all new entries
TRIES = 3  # for an entry that cannot be fetched
_OLDEST = datetime(1970, 1, 1, tzinfo=UTC)
_USUAL_PATHS = ("/feed", "/rss.xml", "/atom.xml", "/index.xml", "/feed.xml")
_ARTICLE_WORDS = 100  # of an entry that is worth reading without its page
_LONGER = 1.25  # times as long as the page's text is an entry that says more
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
        """Subscribe to a feed, or to the one of a site. It is fetched once in the call, and
        refused if it is not a feed and names none."""
        if folder_id is not None and folder_id not in {
            f.id for f in await self._store.folders.list_folders(caller.scope)
        }:
            raise NotFound("Folder not found", folder_ids=[folder_id])
        url, feed = await self._find(url, caller.queue)
        return await self._store.feeds.create(
            Subscription(
                new_id(),
                caller.library_id,
                url,
                feed.title or url,
                caller.person_id,
                caller.token_id,
                folder_id,
                newest,
            )
        )

    @verb(WRITE, "subscribe", target="url")
    async def follow(self, caller: Caller, url: str, title: str, folder_id: str | None) -> bool:
        """Subscribe to a feed that an import names, without fetching it. Returns whether it is
        new."""
        feed = Subscription(
            new_id(),
            caller.library_id,
            url,
            title or url,
            caller.person_id,
            caller.token_id,
            folder_id,
        )
        return (await self._store.feeds.create(feed)).id == feed.id

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
            about = {
                "author": entry.author,
                "published_at": entry.published_at.isoformat() if entry.published_at else None,
            }
            draft = Draft(
                "url" if url else "text",
                entry.title,
                "" if url else entry.summary,
                url,
                tags=entry.tags,
                metadata={name: value for name, value in about.items() if value},
            )
            added = await self._add_draft(caller, draft, entry)
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

    async def _add_draft(self, caller: Caller, draft: Draft, entry: FeedEntry) -> AddedItem:
        """Add an entry's page, or its text in the feed if the page is closed or says less."""
        said = count(entry.summary)
        try:
            added = await self._library.add(caller, draft)
        except IngestFailed as error:
            if error.transient or draft.url is None or entry.audio_url or said < _ARTICLE_WORDS:
                raise
            source = Extracted(entry.title, entry.summary, published_at=entry.published_at)
            content = own_page(content_of(source, url=draft.url), draft.url)
            return await self._library.keep(caller, draft, content)
        is_page = added.created and draft.url and not added.item.transcription_status
        if is_page and said >= max(_ARTICLE_WORDS, _LONGER * added.item.word_count):
            text = {"text": entry.summary}
            return replace(added, item=await self._library.update(caller, added.item.id, text))
        return added

    async def _find(self, url: str, queue: str) -> tuple[str, Feed]:
        """Return the feed at a URL, the one that its page names, or one at the usual places."""
        try:
            feed = await self._parsed(url, queue)
            if not feed.feeds:
                return url, feed
        except IngestFailed as error:
            if error.transient or error.data.get("http_status"):
                raise
            return await self._guess(url, queue, error)
        if len(feed.feeds) > 1:
            raise IngestFailed(
                "The page names several feeds. Follow one of them: " + ", ".join(feed.feeds),
                feeds=list(feed.feeds),
            )
        named = await self._parsed(feed.feeds[0], queue)
        if named.feeds:
            raise IngestFailed(f"The page names a feed, but {feed.feeds[0]} is not one.")
        return feed.feeds[0], named

    async def _guess(self, url: str, queue: str, error: IngestFailed) -> tuple[str, Feed]:
        for path in _USUAL_PATHS:
            with suppress(IngestFailed):
                feed = await self._parsed(urljoin(url, path), queue)
                if not feed.feeds:
                    return urljoin(url, path), feed
        raise error

    async def _parsed(self, url: str, queue: str) -> Feed:
        feed, _ = await self._read(url, queue=queue)
        assert feed  # without validators, no server says that nothing has changed
        return feed

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
