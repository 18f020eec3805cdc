"""SQLite: one writer thread, several readers, WAL. Other processes may use the same file."""

import re
import sqlite3
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import orjson

from commonplace.adapters.store.database import Values, missing
from commonplace.adapters.store.grouping import Group
from commonplace.adapters.threads import Threads
from commonplace.errors import CommonplaceError, ConfigurationError, StorageFailed

T = TypeVar("T")
READERS = 2  # more would only take turns: half of a search needs the interpreter, and four made it dearer by a tenth
READ, WRITE = "BEGIN", "BEGIN IMMEDIATE"
BUSY_SECONDS = 60
RECALLED = 10_000  # answers kept while nothing is written
_LISTS = (list, tuple, set, frozenset)


class Recalled:
    """Answers of one connection that nobody else's commit has made old."""

    def __init__(self) -> None:
        self._version, self._answers = -1, dict[Any, Any]()

    def now(self, connection: sqlite3.Connection) -> dict[Any, Any]:
        version = connection.execute("PRAGMA data_version").fetchone()[0]
        if version != self._version or len(self._answers) > RECALLED:
            self._version, self._answers = version, {}
        return self._answers


class SqliteTx:
    engine = "sqlite"

    def __init__(self, connection: sqlite3.Connection, recalled: Recalled | None) -> None:
        self._connection, self._recalled = connection, recalled
        self._answers: dict[Any, Any] | None = None

    def all(self, sql: str, /, **values: Any) -> list[sqlite3.Row]:
        return self._execute(sql, values).fetchall()

    def lots(self, sql: str, size: int, /, **values: Any) -> Iterator[list[sqlite3.Row]]:
        found = self._execute(sql, values)
        while rows := found.fetchmany(size):
            yield rows

    def bare(self, sql: str, /, **values: Any) -> list[tuple[Any, ...]]:
        found = self._execute(sql, values)
        found.row_factory = None
        return found.fetchall()

    def one(self, sql: str, /, **values: Any) -> sqlite3.Row | None:
        row: sqlite3.Row | None = self._execute(sql, values).fetchone()
        return row

    def run(self, sql: str, /, **values: Any) -> int:
        return self._execute(sql, values).rowcount

    def many(self, sql: str, rows: Iterable[Values]) -> None:
        self._connection.executemany(sql, rows)

    def insert(self, table: str, columns: str, rows: Sequence[Sequence[Any]]) -> None:
        places = ", ".join("?" * len(columns.split(",")))
        self._connection.executemany(f"INSERT INTO {table} ({columns}) VALUES ({places})", rows)

    def recall(self, work: Callable[..., T], /, *args: Hashable) -> T:
        if self._recalled is None:  # it sees its own writes
            return work(self, *args)
        if self._answers is None:
            self._answers = self._recalled.now(self._connection)
        answers, key = self._answers, (work, args)
        if key not in answers:
            answers[key] = work(self, *args)
        result: T = answers[key]
        return result

    def _execute(self, sql: str, values: dict[str, Any]) -> sqlite3.Cursor:
        """Lists travel as JSON: one prepared statement whatever their length."""
        lists = {name: orjson.dumps(list(value)).decode() for name, value in values.items() if isinstance(value, _LISTS)}
        return self._connection.execute(_with_lists(sql), values | lists) if lists else self._connection.execute(sql, values)


@lru_cache(maxsize=512)
def _with_lists(sql: str) -> str:
    return re.sub(r"\bIN (:[a-z_]+)", r"IN (SELECT value FROM json_each(\1))", sql)


class SqliteDatabase:
    engine = "sqlite"
    at_hand = True

    def __init__(self, path: Path) -> None:
        self._path = path
        self._readers = Threads(READERS, "sqlite-read")
        self._writer = Threads(1, "sqlite-write")
        self._writes = Group(self._writer, lambda work: self._within(WRITE, work, (), {}))
        self._local = threading.local()
        self._all: list[sqlite3.Connection] = []
        self._guard = threading.Lock()

    async def open(self) -> None:
        await self._writer.run(self._migrate)

    async def read(self, work: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
        return await self._readers.run(lambda: self._within(READ, work, args, kwargs))

    async def peek(self, work: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
        return self._within(READ, work, args, kwargs)

    async def recall(self, work: Callable[..., T], /, *args: Hashable) -> T:
        """On the loop's own connection: a few microseconds, where a hop to another thread and a lookup take two hundred."""
        with _plain_errors():
            connection = self._connection()
            answers, key = self._local.recalled.now(connection), (work, args)
        if key not in answers:
            # Here as well, though it may be after every write: what is worth keeping is found by its key.
            # Read after the version was asked for; what is committed meanwhile changes the version, and this is let go.
            answers[key] = self._within(READ, work, args, {})
        result: T = answers[key]
        return result

    async def write(self, work: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
        result: T = await self._writes.write(work, args, kwargs)
        return result

    async def close(self) -> None:
        self._readers.close()
        self._writer.close()
        for connection in self._all:
            connection.close()

    def _within(self, begin: str, work: Callable[..., T], args: Any, kwargs: Any) -> T:
        with _plain_errors():
            connection = self._connection()
            connection.execute(begin)
            try:
                result = work(SqliteTx(connection, self._local.recalled if begin == READ else None), *args, **kwargs)
                connection.execute("COMMIT")
                return result
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None,
                                         check_same_thread=False, cached_statements=256)
            connection.row_factory = sqlite3.Row
            _switch_to_wal(connection)
            # FULL: an acknowledged write survives a power cut, not only a crash of the process.
            connection.executescript("PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; PRAGMA temp_store=MEMORY;"
                                     "PRAGMA cache_size=-4096;")
            connection.create_function("lowered", 1, lambda text: text and text.lower(), deterministic=True)
            self._local.connection, self._local.recalled = connection, Recalled()
            with self._guard:
                self._all.append(connection)
        return connection

    def _migrate(self) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self._path.exists():
            self._path.touch(0o600)  # what SQLite keeps beside the file is as open to others as the file is when it is begun
        self._within(WRITE, _bring_up_to_date, (), {})
        self._path.chmod(0o600)


def _bring_up_to_date(tx: SqliteTx) -> None:
    tx.run("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)")
    for version, script in missing("sqlite", [row["version"] for row in tx.all("SELECT version FROM schema_version")]):
        for statement in _statements(script):
            tx.run(statement)
        tx.run("INSERT INTO schema_version VALUES (:version)", version=version)


def _statements(script: str) -> Iterator[str]:
    """executescript would commit; triggers have semicolons inside."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Changing the journal mode does not wait for other processes as everything else does, so it is tried again."""
    deadline = time.monotonic() + BUSY_SECONDS
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


@contextmanager
def _plain_errors() -> Iterator[None]:
    """SQLite's errors in words that say what to do."""
    try:
        yield
    except CommonplaceError:
        raise
    except sqlite3.IntegrityError:
        raise
    except sqlite3.DatabaseError as error:
        text = str(error)
        if "full" in text:
            raise StorageFailed("The disk is full: nothing was stored. Free some space and try again.") from error
        if "not a database" in text or "malformed" in text:
            raise ConfigurationError("The database file is damaged or not a Commonplace database. "
                                     "Move it away and restore a backup with `commonplace restore FILE`.") from error
        if "locked" in text or "busy" in text:
            raise StorageFailed(f"Another process kept the database busy for {BUSY_SECONDS} s; try again.") from error
        if "readonly" in text or "unable to open" in text:
            raise StorageFailed(f"The database cannot be opened for writing ({text}); "
                                "check the data folder's permissions.") from error
        raise
