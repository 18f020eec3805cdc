"""The store: items, jobs, people and search, on SQLite or Postgres."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from commonplace.database import Database, Tx, sqlite
from commonplace.errors import ConfigurationError, extra
from commonplace.model import Json
from commonplace.model.progress import Advance, no_advance
from commonplace.search_index.checkpoint import Checkpoints
from commonplace.search_index.checkpoint_writer import CheckpointWriter
from commonplace.search_index.index import SectionIndex
from commonplace.settings import Settings
from commonplace.store import backup
from commonplace.store.accounts import Accounts
from commonplace.store.candidates import Candidates
from commonplace.store.captures import Captures
from commonplace.store.contents import Contents, Quotas
from commonplace.store.disks import Disks
from commonplace.store.feeds import Feeds
from commonplace.store.folders import Folders
from commonplace.store.idempotency import IdempotencyKeys
from commonplace.store.items import Items, QueuedItems
from commonplace.store.jobs import Jobs
from commonplace.store.members import Members
from commonplace.store.people import People, Tokens
from commonplace.store.relations import Relations
from commonplace.store.sections import Sections
from commonplace.store.statistics import Statistics
from commonplace.store.uploads import Uploads
from commonplace.store.versions import Versions

FILE = "commonplace.sqlite3"
CHECKPOINT_SECTIONS = 10_000  # of a library whose index is also saved to disk


class Store:
    def __init__(self, db: Database, checkpoints: Checkpoints) -> None:
        index = SectionIndex(checkpoints)
        self._db = db
        self._index = index
        self._checkpoints = checkpoints
        self._keeper = CheckpointWriter(db, index, checkpoints)
        self.people = People(db, index)
        self.tokens = Tokens(db)
        self.accounts = Accounts(db)
        self.figures = Statistics(db)
        self.folders = Folders(db, index)
        self.items = Items(db, index)
        self.queued_items = QueuedItems(db, index)
        self.contents = Contents(db)
        self.quotas = Quotas(db)
        self.sections = Sections(db, index)
        self.jobs = Jobs(db)
        self.uploads = Uploads(db)
        self.feeds = Feeds(db)
        self.relations = Relations(db)
        self.captures = Captures(db)
        self.idempotency = IdempotencyKeys(db)
        self.disks = Disks(db, index)
        self.members = Members(db)
        self.candidates = Candidates(db)
        self.versions = Versions(db)

    async def open(self) -> None:
        """Connect, and create the schema if it is missing, under a lock."""
        await self._db.open()
        self._keeper.start()

    async def ping(self) -> None:
        await self._db.read(lambda tx: tx.one("SELECT 1"))

    async def check(self) -> None:
        """Check all pages of a SQLite database. Damaged: some are corrupt."""
        if self._db.engine == "sqlite":
            await self._db.read(sqlite.check)

    async def describe(self) -> Json:
        """Return `engine`, its `version`, the `schema` version, and `checkpoint_bytes`: the size of
        the files that make starts fast."""
        return await self._db.read(_describe) | {"checkpoint_bytes": self._checkpoints.size()}

    async def dump(self, file: Path, advance: Advance = no_advance) -> dict[str, int]:
        """Write one snapshot to a file that any engine can load; return rows by table."""
        await self.check()  # a damaged backup must not replace a good one
        return await self._db.read(backup.dump, self._index, file, advance)

    async def load(
        self, file: Path, *, replace: bool, advance: Advance = no_advance
    ) -> dict[str, int]:
        """Load all of a dump or nothing. Conflict: there is data, and `replace` is False."""
        return await self._db.write(backup.load, self._index, file, replace, advance)

    async def drop(self) -> None:
        """Delete everything. A SQLite file goes with its folder."""
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


async def load_beside(
    settings: Settings, file: Path, advance: Advance = no_advance
) -> dict[str, int]:
    """Restore a backup into a new database, which then replaces a damaged or missing one."""
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


def make_store(settings: Settings, *, checkpoints: bool = True) -> Store:
    """Choose the engine. `checkpoints`: save the index of a large library to disk."""
    files = Checkpoints(
        settings.data_dir / "search_index", CHECKPOINT_SECTIONS if checkpoints else 0
    )
    if not settings.database_url:
        return Store(sqlite.SqliteDatabase(settings.data_dir / FILE), files)
    if settings.database_url.startswith(("postgresql://", "postgres://")):
        with extra("postgres", "COMMONPLACE_DATABASE_URL"):
            from commonplace.database.postgres import PostgresDatabase
        return Store(PostgresDatabase(settings.database_url, settings.database_schema), files)
    raise ConfigurationError(
        "COMMONPLACE_DATABASE_URL must start with postgresql:// (leave it empty for SQLite)."
    )
