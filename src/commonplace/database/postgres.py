"""Postgres: a connection pool in threads. Servers and workers may share one schema.

Behind a pooler such as PgBouncer, each transaction may be in another session of the server: then
nothing is set for longer than a transaction, and no statement is prepared.
"""

import random
import re
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from typing import Any, NoReturn, TypeVar

import psycopg
from psycopg import Connection, errors, sql
from psycopg.abc import AdaptContext
from psycopg.adapt import Dumper
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import DictRow, dict_row, tuple_row
from psycopg_pool import ConnectionPool, PoolTimeout

from commonplace.database import usage
from commonplace.database.columns import micros
from commonplace.database.migrations import migrate
from commonplace.database.replica import Behind, Replica
from commonplace.database.routing import Route, current
from commonplace.database.transaction import DeferredWork, Values, WireVector, percent_style
from commonplace.errors import CommonplaceError, ConfigurationError, StorageFailed
from commonplace.model.people import Usage
from commonplace.thread_pool import ThreadPool

T = TypeVar("T")
CONNECTIONS = 8
ATTEMPTS = 6
CONNECT_SECONDS = 10
FEW = 4  # rows that are faster to send one by one than to copy
# Rows copied into a table before it is analyzed, and the factor until the next time.
ANALYZE_FROM, ANALYZE_FACTOR = 500, 4
INT8 = psycopg.adapters.types["int8"].oid
BYTES = psycopg.adapters.types["bytea"].oid
# Values of other types come in their wire format.
PLAIN = {psycopg.adapters.types[name].oid for name in ("text", "int2", "int4", "int8", "float8")}
# HNSW of 200,000 vectors; slower with less. More, if the server or role has it.
_BUILD_MEMORY = """SELECT set_config(name, greatest(setting::bigint, 256 * 1024)::text, false)
                   FROM pg_settings WHERE name = 'maintenance_work_mem'"""
MIGRATION_LOCK = 0x636F6D6D6F6E  # one for the database: the vector extension belongs to all schemas

# Somebody else wrote between a check and the write that relied on it. On the next run, the
# check itself tells the caller.
_CONFLICTS = (
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.UniqueViolation,
    errors.ForeignKeyViolation,
)
_LOST = (psycopg.OperationalError, psycopg.InterfaceError)


class _WireVectorDumper(Dumper):
    format = psycopg.pq.Format.BINARY

    def dump(self, obj: Any) -> bytes:
        return bytes(obj)


class _TimeDumper(Dumper):
    format = psycopg.pq.Format.BINARY

    def __init__(self, cls: type, context: AdaptContext | None = None) -> None:
        super().__init__(cls, context)
        self.oid = INT8  # not of the class, which would then be used for numbers too

    def dump(self, obj: Any) -> bytes:
        return micros(obj).to_bytes(8, "big", signed=True)


psycopg.adapters.register_dumper(WireVector, _WireVectorDumper)
psycopg.adapters.register_dumper(datetime, _TimeDumper)


class PostgresTx(DeferredWork):
    engine = "postgres"

    def __init__(self, connection: Connection[DictRow], types: dict[str, dict[str, int]]) -> None:
        self._connection, self._types = connection, types
        self.copied: Counter[str] = Counter()  # rows by table
        self.cursors: list[psycopg.ServerCursor[DictRow]] = []

    def all(self, statement: str, /, **values: Any) -> list[DictRow]:
        return self._connection.execute(_statement(statement), values, binary=True).fetchall()

    def batches(self, statement: str, size: int, /, **values: Any) -> Iterator[list[DictRow]]:
        with self._connection.cursor(name="lots") as cursor:
            self.cursors.append(cursor)
            cursor.execute(_statement(statement), values, binary=True)
            while rows := cursor.fetchmany(size):
                yield rows

    def tuples(self, statement: str, /, **values: Any) -> list[tuple[Any, ...]]:
        with self._connection.cursor(row_factory=tuple_row) as cursor:
            return cursor.execute(_statement(statement), values, binary=True).fetchall()

    def one(self, statement: str, /, **values: Any) -> DictRow | None:
        return self._connection.execute(_statement(statement), values).fetchone()

    def column(self, statement: str, /, **values: Any) -> list[Any]:
        return [row[0] for row in self.tuples(statement, **values)]

    def scalar(self, statement: str, /, **values: Any) -> Any:
        return next(iter((self.one(statement, **values) or {}).values()), None)

    def run(self, statement: str, /, **values: Any) -> int:
        return self._connection.execute(_statement(statement), values).rowcount

    def many(self, statement: str, rows: Iterable[Values]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(_statement(statement), rows)

    def insert(self, table: str, columns: str, rows: Sequence[Sequence[Any]]) -> None:
        if len(rows) < FEW:
            places = ", ".join(["%s"] * len(columns.split(",")))
            for row in rows:
                self._connection.execute(f"INSERT INTO {table} ({columns}) VALUES ({places})", row)
            return
        types = self._column_types(table)
        with (
            self._connection.cursor() as cursor,
            cursor.copy(f"COPY {table} ({columns}) FROM STDIN (FORMAT binary)") as copy,
        ):
            copy.set_types([types[column] for column in columns.split(", ")])
            for row in rows:
                copy.write_row(row)
        self.copied[table] += len(rows)

    def recall(self, work: Callable[..., T], /, *args: Hashable) -> T:
        return work(self, *args)

    def _column_types(self, table: str) -> dict[str, int]:
        """Return the types that a binary COPY into a table must send."""
        if table not in self._types:
            columns = self.tuples(
                "SELECT attname, atttypid FROM pg_attribute WHERE attrelid = to_regclass(:name)"
                " AND attnum > 0 AND NOT attisdropped",
                name=table,
            )
            self._types[table] = {name: oid if oid in PLAIN else BYTES for name, oid in columns}
        return self._types[table]


@lru_cache(maxsize=512)
def _statement(text: str) -> str:
    """Translate a statement. Lists become arrays: one prepared statement for any length."""
    return percent_style(
        re.sub(r"\bIN (:[a-z_]+)", r"= ANY(\1)", text).replace("lowered(", "lower(")
    )


class PostgresDatabase:
    engine = "postgres"
    quota = Usage()

    def __init__(self, url: str, schema: str, read_url: str = "") -> None:
        self._url, self._schema = url, schema
        self._replica = read_url and Replica(read_url, CONNECTIONS, self._configure, self._reader)
        self._threads = ThreadPool(CONNECTIONS, "postgres")
        self._pool: ConnectionPool[Connection[DictRow]] = ConnectionPool(
            url,
            min_size=1,
            max_size=CONNECTIONS,
            open=False,
            configure=self._configure,
            timeout=CONNECT_SECONDS,
            reconnect_timeout=CONNECT_SECONDS,
            num_workers=1,
            name="commonplace",
            kwargs={"row_factory": dict_row},
        )
        self._session = self._local = b""  # what a session begins with, or a transaction
        self._copied: Counter[str] = Counter()
        self._types: dict[str, dict[str, int]] = {}  # of the columns of tables, for COPY
        self._analyze_at: dict[str, int] = {}

    async def open(self) -> None:
        await self._threads.run(self._open)

    async def read(
        self, work: Callable[..., T], /, *args: Any, inline: bool = False, **kwargs: Any
    ) -> T:
        route = current() if self._replica else None
        return await self._threads.run(lambda: self._read(route, work, args, kwargs))

    async def write(self, work: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
        route = current() if self._replica else None
        if route:
            route.primary = True
        return await self._threads.run(
            lambda: self._with_retries(False, usage.counted(work, route), args, kwargs)
        )

    async def define(self, statement: str) -> None:
        await self._threads.run(lambda: self._define(statement))

    async def close(self) -> None:
        self._threads.close()
        self._pool.close()
        if self._replica:
            self._replica.close()

    def _define(self, statement: str) -> None:
        try:
            with psycopg.connect(
                self._url, autocommit=True, connect_timeout=CONNECT_SECONDS
            ) as connection:
                if not _is_pooled(connection):
                    connection.execute(_BUILD_MEMORY)
                connection.execute(statement.encode())
        except _LOST as error:
            _explain(error)

    def _read(self, route: Route | None, work: Callable[..., T], args: Any, kwargs: Any) -> T:
        if self._replica and route and not route.primary and self._replica.answers:
            if route.writes is None:
                route.writes = self._with_retries(True, usage.writes, (route.library_id,), {})
            with suppress(Behind):
                return self._replica.read(route, work, args, kwargs)
        return self._with_retries(True, work, args, kwargs)

    def _reader(self, connection: Connection[DictRow]) -> PostgresTx:
        self._begin(connection, read_only=True)
        tx = PostgresTx(connection, self._types)
        tx.quota = self.quota
        return tx

    def _with_retries(self, read_only: bool, work: Callable[..., T], args: Any, kwargs: Any) -> T:
        """Retry after a conflicting write, and after a connection lost before the commit."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._once(read_only, work, args, kwargs)
            except _CONFLICTS:
                if attempt == ATTEMPTS:
                    raise
                time.sleep(random.uniform(0, 0.02 * attempt))
            except _Lost as lost:
                if attempt > 1:
                    _explain(lost.reason)
                self._pool.check()
        raise AssertionError("unreachable")

    def _once(self, read_only: bool, work: Callable[..., T], args: Any, kwargs: Any) -> T:
        connection = self._connection()
        tx = PostgresTx(connection, self._types)
        tx.quota = self.quota
        try:
            try:
                self._begin(connection, read_only=read_only)
                result = work(tx, *args, **kwargs)
                tx.run_deferred()
            except _CONFLICTS:
                raise
            except _LOST as error:
                if connection.broken or connection.closed:
                    raise _Lost(error) from error
                _explain(error)
            try:
                connection.commit()
            except _LOST as error:
                _explain(error)
            if tx.copied:
                self._analyze_grown(connection, tx.copied)
            return result
        except errors.ReadOnlySqlTransaction as error:
            raise StorageFailed(
                "The Postgres server takes no writes: it is a standby, or set read-only."
            ) from error
        finally:
            if not connection.closed:
                connection.rollback()
            for cursor in tx.cursors:  # one that is freed later would end somebody's transaction
                cursor.close()
            self._pool.putconn(connection)

    def _analyze_grown(self, connection: Connection[DictRow], copied: Counter[str]) -> None:
        """Analyze tables that have grown by COPY.

        The server does so within a minute; until then it takes a new table for a small one, and an
        import of 6,000 notes takes five times as long. Tables that others lock are skipped.
        """
        self._copied.update(copied)
        grown = [
            table
            for table in copied
            if self._copied[table] >= self._analyze_at.get(table, ANALYZE_FROM)
        ]
        self._analyze_at |= {table: ANALYZE_FACTOR * self._copied[table] for table in grown}
        if grown:
            with suppress(psycopg.Error):  # what was written is written
                self._begin(connection, read_only=False)
                connection.execute(f"ANALYZE (SKIP_LOCKED) {', '.join(sorted(grown))}")
                connection.commit()

    def _connection(self) -> Connection[DictRow]:
        try:
            return self._pool.getconn()
        except PoolTimeout as error:
            raise StorageFailed(
                "The Postgres server cannot be reached; nothing was stored. Try again."
            ) from error

    def _configure(self, connection: Connection[DictRow]) -> None:
        connection.autocommit = True
        if _is_pooled(connection):
            connection.prepare_threshold = None
        else:
            connection.execute(self._session)
            connection.autocommit = False

    def _begin(self, connection: Connection[DictRow], *, read_only: bool) -> None:
        # Readers see one snapshot; writers see all that is committed when they lock a row.
        if connection.autocommit:  # pooled: all in one message
            mode = b"REPEATABLE READ READ ONLY" if read_only else b"READ COMMITTED"
            connection.execute(b"BEGIN ISOLATION LEVEL %s; %s" % (mode, self._local))
            return
        connection.read_only = read_only
        connection.isolation_level = (
            psycopg.IsolationLevel.REPEATABLE_READ
            if read_only
            else psycopg.IsolationLevel.READ_COMMITTED
        )

    def _open(self) -> None:
        try:
            password = conninfo_to_dict(self._url).get("password")
        except psycopg.ProgrammingError:
            raise ConfigurationError(
                "COMMONPLACE_DATABASE_URL is not a valid postgresql:// address."
            ) from None
        try:
            with psycopg.connect(
                self._url,
                row_factory=dict_row,
                connect_timeout=CONNECT_SECONDS,
                prepare_threshold=None,
            ) as connection:
                _require_server(connection)
                search_path = _bring_up_to_date(connection, self._schema)
        except CommonplaceError:
            raise
        except _LOST as error:
            reason = (
                str(error).strip().replace(str(password), "***") if password else str(error).strip()
            )
            raise ConfigurationError(
                f"COMMONPLACE_DATABASE_URL: the Postgres server does not answer ({reason})."
            ) from None
        except errors.InsufficientPrivilege as error:
            raise ConfigurationError(
                f"COMMONPLACE_DATABASE_URL: the Postgres user may not set up the schema "
                f"{self._schema!r} ({error})."
            ) from None
        setting = search_path.as_bytes(None)
        self._session = b"SET %s; SET jit = off" % setting
        self._local = b"SET LOCAL %s; SET LOCAL jit = off" % setting
        self._pool.open(wait=True, timeout=CONNECT_SECONDS)
        if self._replica:
            self._replica.open()


def _is_pooled(connection: Connection[Any]) -> bool:
    """Whether a pooler such as PgBouncer answers: it has sessions, and numbers, of its own."""
    cursor = connection.cursor(row_factory=tuple_row)
    return cursor.execute("SELECT pg_backend_pid()").fetchone() != (connection.info.backend_pid,)


class _Lost(Exception):
    """The connection broke before COMMIT was sent, so the work may be run again."""

    def __init__(self, reason: psycopg.Error) -> None:
        self.reason = reason


def _explain(error: psycopg.Error) -> NoReturn:
    if isinstance(error, errors.DiskFull):
        raise StorageFailed(
            "The disk of the Postgres server is full: nothing was stored."
        ) from error
    if isinstance(error, errors.QueryCanceled | errors.LockNotAvailable):
        raise StorageFailed("The Postgres server timed out. Try again.") from error
    raise StorageFailed(
        "The connection to the Postgres server was lost; it is not known whether the last write "
        "was stored. Check before you repeat it."
    ) from error


def _require_server(connection: Connection[DictRow]) -> None:
    if connection.info.server_version < 150000:
        raise ConfigurationError("COMMONPLACE_DATABASE_URL: Postgres 15 or newer is needed.")
    if connection.info.parameter_status("server_encoding") != "UTF8":
        raise ConfigurationError(
            "COMMONPLACE_DATABASE_URL: the database must have the encoding UTF8."
        )


def _bring_up_to_date(connection: Connection[DictRow], schema: str) -> sql.Composed:
    """Create schema and tables under a lock; return the setting of the search path."""
    connection.execute("SELECT pg_advisory_xact_lock(%s)", [MIGRATION_LOCK])
    if not connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [schema]).fetchone():
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
    search_path = sql.SQL("search_path = {}, {}").format(
        sql.Identifier(schema), sql.Identifier(_vector_schema(connection))
    )
    connection.execute(sql.SQL("SET LOCAL ") + search_path)
    migrate(PostgresTx(connection, {}))
    return search_path


def _vector_schema(connection: Connection[DictRow]) -> str:
    """Return the schema of pgvector, which is created if it is missing."""
    find = """SELECT n.nspname, e.extversion
              FROM pg_extension AS e
              JOIN pg_namespace AS n ON n.oid = e.extnamespace
              WHERE e.extname = 'vector'"""
    row = connection.execute(find).fetchone()
    if row is None:
        try:
            connection.execute("CREATE EXTENSION vector SCHEMA public")
        except psycopg.Error as error:
            raise ConfigurationError(
                "COMMONPLACE_DATABASE_URL: the server lacks the extension pgvector "
                f"({str(error).splitlines()[0]}). Install it, or have an administrator run "
                "CREATE EXTENSION vector in this database."
            ) from None
        row = connection.execute(find).fetchone()
    assert row is not None
    if tuple(int(part) for part in row["extversion"].split(".")[:2]) < (0, 8):
        raise ConfigurationError(
            f"COMMONPLACE_DATABASE_URL: pgvector 0.8 or newer is needed, not {row['extversion']} "
            "(ALTER EXTENSION vector UPDATE)."
        )
    return str(row["nspname"])
