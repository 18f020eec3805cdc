"""SQLite: one writer thread, several readers, WAL. Other processes may use the same file.

The engine comes with `apsw`, never from the system: versions before 3.51.3 can lose committed
pages when one connection commits while another resets the WAL. Nothing else in a process may open
the file with another SQLite library: closing it there would drop the locks held here.
"""

import re
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import apsw
import orjson

from commonplace.database import clean_close, group_commit, migrations, transaction
from commonplace.database.columns import micros
from commonplace.errors import ConfigurationError, Damaged, StorageFailed
from commonplace.model.people import Usage
from commonplace.thread_pool import ThreadPool

T = TypeVar("T")
READERS = 2  # half of a search needs the interpreter: with four, each cost a tenth more
READ, WRITE = "BEGIN", "BEGIN IMMEDIATE"
BUSY_SECONDS = 60
OLDEST_ENGINE = (3, 51, 3)  # without the bug of https://sqlite.org/wal.html#walresetbug
STATEMENTS = 256  # prepared statements, and column names, kept per connection
RECALLED = 10_000  # results cached while nothing is written
FILES = ("", "-wal", "-shm")  # the database, and the files beside it while it is open
# In the data folder once there is a library: from then on, an empty or missing database is damage.
MARKER = "commonplace.created"
_MARKER_TEXT = """A library was created in this folder. While this file is here, Commonplace does
not start with a database that is missing or empty. Restore a backup with
`commonplace restore FILE`, or delete this file to start a new library.
"""
_DAMAGED = (
    "The database file is damaged or not a Commonplace database. Stop all servers and restore "
    "a backup with `commonplace restore FILE --force`, which keeps the damaged file beside the "
    "new one."
)
_WAL_MAGIC = (0x377F0682, 0x377F0683)
_WAL_HEADER = 32  # bytes
_LISTS = (list, tuple, set, frozenset)


class SqliteConnection(apsw.Connection):
    """A connection that caches results of reads, and column names: these cost as much to ask for as
    a row."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), statementcachesize=STATEMENTS)
        self.convert_binding = _encode_time
        self._names: dict[str, tuple[str, ...]] = {}
        self._version, self._answers = -1, dict[Any, Any]()

    def answers(self) -> dict[Any, Any]:
        """Return cached results, which are dropped when another connection commits."""
        version = self.execute("PRAGMA data_version").get
        if version != self._version or len(self._answers) > RECALLED:
            self._version, self._answers = version, {}
        return self._answers

    def names(self, sql: str, cursor: apsw.Cursor) -> tuple[str, ...]:
        """Return the names of the columns of `cursor`, which has just been made for `sql`."""
        if sql not in self._names:
            try:
                described = cursor.get_description()
            except apsw.ExecutionCompleteError:  # no rows
                return ()
            if len(self._names) >= STATEMENTS:
                self._names.clear()
            self._names[sql] = tuple(name for name, _ in described)
        return self._names[sql]


class SqliteTx(transaction.DeferredWork):
    engine = "sqlite"

    def __init__(self, connection: SqliteConnection, *, read_only: bool) -> None:
        self._connection, self._read_only = connection, read_only
        self._answers: dict[Any, Any] | None = None

    def all(self, sql: str, /, **values: Any) -> list[dict[str, Any]]:
        found = self._execute(sql, values)
        names = self._connection.names(sql, found)
        return [dict(zip(names, row, strict=False)) for row in found.fetchall()]

    def batches(self, sql: str, size: int, /, **values: Any) -> Iterator[list[dict[str, Any]]]:
        found = self._execute(sql, values)
        names = self._connection.names(sql, found)
        while rows := [dict(zip(names, row, strict=False)) for row in islice(found, size)]:
            yield rows

    def tuples(self, sql: str, /, **values: Any) -> list[tuple[Any, ...]]:
        return self._execute(sql, values).fetchall()

    def one(self, sql: str, /, **values: Any) -> dict[str, Any] | None:
        found = self._execute(sql, values)
        names, row = self._connection.names(sql, found), found.fetchone()
        return None if row is None else dict(zip(names, row, strict=False))

    def column(self, sql: str, /, **values: Any) -> list[Any]:
        return [row[0] for row in self._execute(sql, values)]

    def scalar(self, sql: str, /, **values: Any) -> Any:
        return next(iter(self._execute(sql, values).fetchone() or ()), None)

    def run(self, sql: str, /, **values: Any) -> int:
        self._execute(sql, values)
        return self._connection.changes()

    def many(self, sql: str, rows: Iterable[transaction.Values]) -> None:
        self._connection.executemany(sql, rows)

    def insert(self, table: str, columns: str, rows: Sequence[Sequence[Any]]) -> None:
        places = ", ".join("?" * len(columns.split(",")))
        self._connection.executemany(f"INSERT INTO {table} ({columns}) VALUES ({places})", rows)

    def recall(self, work: Callable[..., T], /, *args: Hashable) -> T:
        if not self._read_only:  # it sees its own writes
            return work(self, *args)
        if self._answers is None:
            self._answers = self._connection.answers()
        answers, key = self._answers, (work, args)
        if key not in answers:
            answers[key] = work(self, *args)
        result: T = answers[key]
        return result

    def _execute(self, sql: str, values: dict[str, Any]) -> apsw.Cursor:
        """Run a statement. Lists become JSON: one prepared statement for any length."""
        lists = {
            name: orjson.dumps(list(value)).decode()
            for name, value in values.items()
            if isinstance(value, _LISTS)
        }
        return (
            self._connection.execute(_with_lists(sql), values | lists)
            if lists
            else self._connection.execute(sql, values)
        )


@lru_cache(maxsize=512)
def _with_lists(sql: str) -> str:
    return re.sub(r"\bIN (:[a-z_]+)", r"IN (SELECT value FROM json_each(\1))", sql)


class SqliteDatabase:
    engine = "sqlite"
    quota = Usage()

    def __init__(self, path: Path) -> None:
        self._path = path
        self._readers = ThreadPool(READERS, "sqlite-read")
        self._writer = ThreadPool(1, "sqlite-write")
        self._writes = group_commit.GroupCommit(
            self._writer, lambda work: self._within(WRITE, work, (), {})
        )
        self._local = threading.local()
        self._all: list[apsw.Connection] = []
        self._guard = threading.Lock()
        self._checked_at = 0.0  # all pages; 0: not known

    async def open(self) -> None:
        await self._writer.run(self._open)

    async def check(self, *, trusting: bool) -> None:
        """Raise Damaged if pages of the database are corrupt. `trusting`: skip what was checked
        within a week and closed in order."""
        if not (trusting and clean_close.is_recent(self._checked_at)):
            await self.read(_check)
            self._checked_at = time.time()

    async def read(
        self, work: Callable[..., T], /, *args: Any, inline: bool = False, **kwargs: Any
    ) -> T:
        if inline:
            return self._within(READ, work, args, kwargs)
        return await self._readers.run(lambda: self._within(READ, work, args, kwargs))

    async def write(self, work: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
        result: T = await self._writes.write(work, args, kwargs)
        return result

    async def define(self, statement: str) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        self._readers.close()
        self._writer.close()
        for connection in self._all:
            connection.close()
        if self._checked_at:
            clean_close.leave(self._path, self._checked_at)

    def _within(self, begin: str, work: Callable[..., T], args: Any, kwargs: Any) -> T:
        with self._plain_errors():
            connection = self._connection()
            connection.execute(begin)
            try:
                tx = SqliteTx(connection, read_only=begin == READ)
                tx.quota = self.quota
                result = work(tx, *args, **kwargs)
                tx.run_deferred()
                connection.execute("COMMIT")
                return result
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        """Turn SQLite's errors into ones that say what to do."""
        try:
            yield
        except apsw.FullError as error:
            raise StorageFailed(
                "The disk is full: nothing was stored. Free some space and try again."
            ) from error
        except (apsw.NotADBError, apsw.CorruptError) as error:
            self._checked_at = 0  # the next start checks all pages
            raise Damaged(_DAMAGED) from error
        except (apsw.BusyError, apsw.LockedError) as error:
            raise StorageFailed(
                f"Another process kept the database busy for {BUSY_SECONDS} s; try again."
            ) from error
        except (
            apsw.ReadOnlyError,
            apsw.CantOpenError,
            apsw.PermissionsError,
            apsw.IOError,
        ) as error:
            self._checked_at = 0
            raise StorageFailed(
                f"The database cannot be read or written ({error}); "
                "check the disk and the data folder's permissions."
            ) from error

    def _connection(self) -> SqliteConnection:
        connection: SqliteConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = SqliteConnection(self._path)
            connection.set_busy_timeout(BUSY_SECONDS * 1000)
            # Plans do not depend on values: else SQLite recompiles statements, at twice the cost.
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
            _switch_to_wal(connection)
            # FULL: an acknowledged write survives a power cut, not only a crash of the process.
            # No memory-mapped I/O: a disk error would end the process.
            connection.execute(
                "PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; PRAGMA temp_store=MEMORY;"
                "PRAGMA cache_size=-4096; PRAGMA mmap_size=0"
            ).fetchall()
            connection.create_scalar_function(
                "lowered", lambda *texts: texts[0] and texts[0].lower(), 1, deterministic=True
            )
            self._local.connection = connection
            with self._guard:
                self._all.append(connection)
        return connection

    def _open(self) -> None:
        _refuse_old_engine()
        folder, marker = self._path.parent, self._path.with_name(MARKER)
        if folder.exists() and not folder.is_dir():
            raise ConfigurationError(
                f"The data folder {folder} is a file. "
                "Choose a folder with COMMONPLACE_DATA_DIR or --data-dir."
            )
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _refuse_damage(self._path, marker)
        self._checked_at = clean_close.take(self._path)
        if not self._path.exists():
            # SQLite gives the files beside it the same permissions.
            self._path.touch(0o600)
        self._within(WRITE, migrations.migrate, (), {})
        self._path.chmod(0o600)
        if not marker.exists():
            marker.write_text(_MARKER_TEXT)
            marker.chmod(0o600)


def _encode_time(_cursor: apsw.Cursor, _number: int, value: Any) -> Any:
    return micros(value)


def _switch_to_wal(connection: apsw.Connection) -> None:
    """Switch the journal mode, with retries: SQLite does not wait for other processes here."""
    deadline = time.monotonic() + BUSY_SECONDS
    while connection.execute("PRAGMA journal_mode").get != "wal":
        try:
            connection.execute("PRAGMA journal_mode=WAL").fetchall()
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _refuse_old_engine() -> None:
    version = apsw.sqlite_lib_version()
    if tuple(map(int, version.split("."))) < OLDEST_ENGINE:
        raise ConfigurationError(
            f"SQLite {version} can lose committed data; "
            f"{'.'.join(map(str, OLDEST_ENGINE))} or newer is needed. "
            "Install a current `apsw` from its wheel, which includes SQLite."
        )


def _refuse_damage(path: Path, marker: Path) -> None:
    """Refuse damage that SQLite would take for a new database or an empty log."""
    size = path.stat().st_size if path.exists() else -1
    if size <= 0 and marker.exists():
        raise Damaged(
            f"The database {path} is {'missing' if size < 0 else 'empty'}, "
            "but there was a library in this folder. Restore a backup with "
            f"`commonplace restore FILE`, or delete {marker} to start a new library.",
            missing=True,
        )
    log = path.with_name(f"{path.name}-wal")
    if size > 0 and log.exists() and log.stat().st_size > _WAL_HEADER:
        with log.open("rb") as file:
            if int.from_bytes(file.read(4)) not in _WAL_MAGIC:
                raise Damaged(
                    f"The write-ahead log {log} is damaged. Restore a backup with "
                    "`commonplace restore FILE --force`, or delete that file to lose only the "
                    "latest changes."
                )


def set_aside(path: Path) -> None:
    """Rename a damaged database and the files beside it, to make room for another."""
    for end in FILES:
        with suppress(FileNotFoundError):
            path.with_name(path.name + end).replace(
                path.with_name(f"{path.stem}-damaged{path.suffix}{end}")
            )


def _check(tx: SqliteTx) -> None:
    if tx.tuples("PRAGMA quick_check(1)") != [("ok",)]:
        raise Damaged(_DAMAGED)
