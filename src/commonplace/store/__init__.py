"""The store: items, jobs, people and search, on SQLite or Postgres."""

from asyncio import to_thread
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from commonplace.database import Database, Table, Tx, reads, sqlite, writes
from commonplace.errors import ConfigurationError, NotFound, extra
from commonplace.model import MEGABYTE, Advance, Json, Usage, no_advance
from commonplace.ports import Blobs
from commonplace.search_index.checkpoint import Checkpoints
from commonplace.search_index.checkpoint_writer import CheckpointWriter
from commonplace.search_index.in_memory import InMemoryIndex
from commonplace.search_index.index import SectionIndex
from commonplace.search_index.postgres.index import PostgresIndex
from commonplace.settings import Settings
from commonplace.store import (
    backup,
    candidates,
    captures,
    contents,
    crawls,
    disks,
    feeds,
    folders,
    idempotency,
    items,
    jobs,
    relations,
    sections,
    statistics,
    tags,
    versions,
)
from commonplace.store.events import log, webhooks
from commonplace.store.files import source_files, uploads
from commonplace.store.people import accounts, members, oauth, people
from commonplace.store.trash import entries
from commonplace.store.undo import steps

FILE = "commonplace.sqlite3"
_VERSION = {"sqlite": "sqlite_version()", "postgres": "current_setting('server_version')"}
CHECKPOINT_SECTIONS = 10_000  # of a library whose index is also saved to disk


class Store(Table):
    def __init__(self, db: Database, checkpoints: Checkpoints) -> None:
        super().__init__(db)
        self._checkpoints = checkpoints
        self._keeper: CheckpointWriter | None = None
        index: SectionIndex
        if db.engine == "postgres":
            index = PostgresIndex(jobs.enqueue_index)
        else:
            index = InMemoryIndex(checkpoints)
            self._keeper = CheckpointWriter(db, index, checkpoints)
        self._index = index
        self.people = people.People(db, index)
        self.tokens = people.Tokens(db)
        self.accounts = accounts.Accounts(db)
        self.oauth = oauth.OAuth(db)
        self.figures = statistics.Statistics(db, index)
        self.folders = folders.Folders(db, index)
        self.items = items.Items(db, index)
        self.tags = tags.Tags(db, index)
        self.queued_items = items.QueuedItems(db, index)
        self.trash = entries.Trash(db)
        self.undo = steps.Undo(db, index)
        self.contents = contents.Contents(db)
        self.quotas = contents.Quotas(db)
        self.sections = sections.Sections(db, index)
        self.jobs = jobs.Jobs(db)
        self.uploads = uploads.Uploads(db)
        self.source_files = source_files.SourceFiles(db)
        self.feeds = feeds.Feeds(db)
        self.crawls = crawls.Crawls(db)
        self.relations = relations.Relations(db)
        self.captures = captures.Captures(db)
        self.idempotency = idempotency.IdempotencyKeys(db)
        self.disks = disks.Disks(db, index)
        self.members = members.Members(db)
        self.candidates = candidates.Candidates(db)
        self.versions = versions.Versions(db)
        self.events = log.Events(db)
        self.webhooks = webhooks.Webhooks(db)

    async def open(self) -> None:
        """Connect, and create the schema if it is missing, under a lock."""
        await self._db.open()
        if self._keeper:
            self._keeper.start()

    @reads
    def ping(self, tx: Tx) -> None:
        tx.one("SELECT 1")

    async def check(self, *, trusting: bool = False) -> None:
        """Check all pages of a SQLite database. Damaged: some are corrupt. `trusting`: not if they
        were checked within a week and the database was closed in order."""
        if isinstance(self._db, sqlite.SqliteDatabase):
            await self._db.check(trusting=trusting)

    @reads
    def describe(self, tx: Tx) -> Json:
        """Return `engine`, its `version`, the `schema` version, and `checkpoint_bytes`: the size of
        the files that make starts fast."""
        return {
            "engine": tx.engine,
            "version": tx.scalar(f"SELECT {_VERSION[tx.engine]}"),
            "schema": tx.scalar("SELECT max(version) FROM schema_version"),
            "checkpoint_bytes": self._checkpoints.size(),
        }

    async def dump(
        self, file: Path, advance: Advance = no_advance, blobs: Blobs | None = None
    ) -> dict[str, int]:
        """Write one snapshot to a file that any engine can load, with the uploaded files in
        `blobs`; return rows by table. The file gets its name when it is complete."""
        await self.check()  # a damaged backup must not replace a good one
        draft = await to_thread(backup.draft_of, file)
        try:
            counts, keys = await self._db.read(
                backup.dump, self._index, draft, blobs is not None, advance
            )
            if blobs is not None:
                counts[backup.FILES] = await _append_files(draft, keys, blobs)
            await to_thread(backup.close, draft, counts, advance)
            await to_thread(draft.replace, file)
        finally:
            draft.unlink(missing_ok=True)
        return counts

    async def load(
        self,
        file: Path,
        *,
        replace: bool,
        advance: Advance = no_advance,
        blobs: Blobs | None = None,
    ) -> dict[str, int]:
        """Load all of a dump or nothing. Conflict: there is data, and `replace` is False. Files of
        the data that it replaces are deleted."""
        if blobs is None:
            return await self._db.write(backup.load, self._index, file, replace, advance)
        before, put = await self._file_keys(), list[str]()
        try:
            there = await _put_files(file, blobs, put)
            counts = await self._db.write(backup.load, self._index, file, replace, advance)
        except BaseException:
            for key in put:
                await blobs.delete(key)
            raise
        for key in before - await self._file_keys():
            await blobs.delete(key)
        uploads, files = await self.uploads.keys(), await self.source_files.keys()
        missing = {key for key in (uploads.keys() | files) - there if await blobs.size(key) is None}
        await self.uploads.forget_files([uploads[key] for key in missing & uploads.keys()])
        await self.source_files.delete([files[key] for key in missing & files.keys()])
        return counts

    async def _file_keys(self) -> set[str]:
        return {*await self.uploads.keys(), *await self.source_files.keys()}

    @writes
    def drop(self, tx: Tx) -> None:
        """Delete everything. A SQLite file goes with its folder."""
        if tx.engine == "postgres":
            tx.run(f"DROP SCHEMA {tx.scalar('SELECT quote_ident(current_schema())')} CASCADE")

    async def close(self) -> None:
        if self._keeper:
            await self._keeper.stop()
        await self._db.close()


async def _append_files(draft: Path, keys: Sequence[str], blobs: Blobs) -> int:
    """Append uploaded files to a backup, and return how many are there."""
    count = 0
    for key in keys:
        with suppress(NotFound):  # the upload is not complete, or was deleted meanwhile
            async with blobs.file(key) as stored:
                await to_thread(backup.append_file, draft, key, stored)
            count += 1
    return count


async def _put_files(file: Path, blobs: Blobs, put: list[str]) -> set[str]:
    """Store the files of a backup, and return their keys. Those that are new are added to `put`."""
    found = set[str]()
    with TemporaryDirectory(prefix="commonplace-") as folder:
        place = Path(folder) / "file"
        files = backup.stored_files(file, place)
        while (key := await to_thread(next, files, None)) is not None:
            found.add(key)
            if await blobs.size(key) is None:
                put.append(key)
                await blobs.put(key, place)
    return found


async def load_beside(
    settings: Settings, file: Path, advance: Advance = no_advance, blobs: Blobs | None = None
) -> dict[str, int]:
    """Restore a backup into a new database, which then replaces a damaged or missing one."""
    path = settings.data_dir / FILE
    with TemporaryDirectory(prefix=".restore-", dir=settings.data_dir) as folder:
        store = make_store(replace(settings, data_dir=Path(folder)))
        await store.open()
        try:
            counts = await store.load(file, replace=False, advance=advance, blobs=blobs)
        finally:
            await store.close()
        sqlite.set_aside(path)
        (Path(folder) / FILE).replace(path)
    return counts


def make_store(settings: Settings, *, checkpoints: bool = True) -> Store:
    """Choose the engine. `checkpoints`: save the index of a large library to disk."""
    db = _make_database(settings)
    db.quota = Usage(settings.quota_items, settings.quota_sections, settings.quota_mb * MEGABYTE)
    files = Checkpoints(
        settings.data_dir / "search_index", CHECKPOINT_SECTIONS if checkpoints else 0
    )
    return Store(db, files)


def _make_database(settings: Settings) -> Database:
    if not settings.database_url:
        return sqlite.SqliteDatabase(settings.data_dir / FILE)
    if settings.database_url.startswith(("postgresql://", "postgres://")):
        with extra("postgres", "COMMONPLACE_DATABASE_URL"):
            from commonplace.database.postgres import PostgresDatabase
        return PostgresDatabase(
            settings.database_url, settings.database_schema, settings.database_read_url
        )
    raise ConfigurationError(
        "COMMONPLACE_DATABASE_URL must start with postgresql:// (leave it empty for SQLite)."
    )
