"""The store: rows, jobs and search in one place, on SQLite or Postgres."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from commonplace.database import sqlite
from commonplace.database.transaction import Database, Tx
from commonplace.errors import ConfigurationError
from commonplace.model import Json
from commonplace.ports.store import Advance, silent
from commonplace.search_index.checkpoint import Checkpoints
from commonplace.search_index.checkpoint_writer import Keeper
from commonplace.search_index.index import SectionIndex
from commonplace.settings import Settings
from commonplace.store import backup
from commonplace.store.accounts import SqlAccounts
from commonplace.store.candidates import SqlCandidates
from commonplace.store.captures import SqlCaptures
from commonplace.store.contents import SqlContents, SqlQuotas
from commonplace.store.disks import SqlDisks
from commonplace.store.feeds import SqlFeeds
from commonplace.store.folders import SqlFolders
from commonplace.store.items import SqlItems
from commonplace.store.jobs import SqlJobs
from commonplace.store.members import SqlMembers
from commonplace.store.people import SqlPeople, SqlTokens
from commonplace.store.relations import SqlRelations
from commonplace.store.sections import SqlSections
from commonplace.store.statistics import SqlFigures
from commonplace.store.unread import SqlUnread
from commonplace.store.uploads import SqlUploads
from commonplace.store.versions import SqlVersions

FILE = "commonplace.sqlite3"


class SqlStore:
    def __init__(self, db: Database, checkpoints: Checkpoints) -> None:
        index = SectionIndex(checkpoints)
        self._db = db
        self._index = index
        self._checkpoints = checkpoints
        self._keeper = Keeper(db, index, checkpoints)
        self.people = SqlPeople(db, index)
        self.tokens = SqlTokens(db)
        self.accounts = SqlAccounts(db)
        self.figures = SqlFigures(db)
        self.folders = SqlFolders(db, index)
        self.items = SqlItems(db, index)
        self.unread = SqlUnread(db, index)
        self.contents = SqlContents(db)
        self.quotas = SqlQuotas(db)
        self.sections = SqlSections(db, index)
        self.jobs = SqlJobs(db)
        self.uploads = SqlUploads(db)
        self.feeds = SqlFeeds(db)
        self.relations = SqlRelations(db)
        self.captures = SqlCaptures(db)
        self.disks = SqlDisks(db, index)
        self.members = SqlMembers(db)
        self.candidates = SqlCandidates(db)
        self.versions = SqlVersions(db)

    async def open(self) -> None:
        await self._db.open()
        self._keeper.start()

    async def ping(self) -> None:
        await self._db.read(lambda tx: tx.one("SELECT 1"))

    async def check(self) -> None:
        if self._db.engine == "sqlite":
            await self._db.read(sqlite.check)

    async def describe(self) -> Json:
        return await self._db.read(_describe) | {"checkpoint_bytes": self._checkpoints.size()}

    async def dump(self, file: Path, advance: Advance = silent) -> dict[str, int]:
        await self.check()  # a backup of damage must not take the place of a good one
        return await self._db.read(backup.dump, self._index, file, advance)

    async def load(self, file: Path, *, replace: bool, advance: Advance = silent) -> dict[str, int]:
        return await self._db.write(backup.load, self._index, file, replace, advance)

    async def drop(self) -> None:
        """Everything goes, for good. A SQLite file goes with its folder."""
        if self._db.engine == "postgres":
            await self._db.write(_drop_schema)

    async def close(self) -> None:
        await self._keeper.stop()
        await self._db.close()


def _drop_schema(tx: Tx) -> None:
    for row in tx.all("SELECT quote_ident(current_schema()) AS name"):
        tx.run(f"DROP SCHEMA {row['name']} CASCADE")


def _describe(tx: Tx) -> Json:
    version = "sqlite_version()" if tx.engine == "sqlite" else "current_setting('server_version')"
    row = tx.one(f"SELECT max(version) AS schema, {version} AS version FROM schema_version")
    assert row is not None
    return {"engine": tx.engine, "version": row["version"], "schema": row["schema"]}


async def load_beside(settings: Settings, file: Path, advance: Advance = silent) -> dict[str, int]:
    """Restore a backup where the database is damaged or gone: into a new one, which takes its place once it is complete."""
    path = settings.data_dir / FILE
    with TemporaryDirectory(prefix=".restore-", dir=settings.data_dir) as folder:
        store = make_store(replace(settings, data_dir=Path(folder)))
        await store.open()
        try:
            counts = await store.load(file, replace=False, advance=advance)
        finally:
            await store.close()
        sqlite.set_aside(path)
        (Path(folder) / FILE).replace(path)
    return counts


def make_store(settings: Settings) -> SqlStore:
    checkpoints = Checkpoints(settings.data_dir / "shelves", settings.checkpoint_sections)
    if not settings.database_url:
        return SqlStore(sqlite.SqliteDatabase(settings.data_dir / FILE), checkpoints)
    if settings.database_url.startswith(("postgresql://", "postgres://")):
        from commonplace.database.postgres import PostgresDatabase

        return SqlStore(
            PostgresDatabase(settings.database_url, settings.database_schema), checkpoints
        )
    raise ConfigurationError(
        "COMMONPLACE_DATABASE_URL must start with postgresql:// (leave it empty for SQLite)."
    )
