"""A prepared library on either engine, copied for each round."""

import shutil
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Lock
from urllib.parse import urlsplit, urlunsplit

import apsw
import psycopg

from tests.contract.test_crash import halves
from tests.services import running_postgres
from torture.harness import require
from torture.server import Place

ENGINES = ("sqlite", "postgres")
DATABASE = "commonplace.sqlite3"
SCHEMA = "commonplace"  # the setting's default


class Engines:
    """Copies of one prepared library. Postgres starts when a round first asks for it."""

    def __init__(self, prepared: Path, token: str, opened: ExitStack) -> None:
        self._prepared, self._token, self._opened = prepared, token, opened
        self._postgres = ""
        self._lock = Lock()  # Postgres copies a template for one at a time

    @contextmanager
    def copy(self, engine: str, folder: Path) -> Iterator[Place]:
        data = folder / "data"
        if engine == "sqlite":
            shutil.copytree(self._prepared, data)
            yield Place(data, token=self._token)
            return
        with self._postgres_copy() as url:
            yield Place(data, {"database_url": url}, self._token)

    @contextmanager
    def _postgres_copy(self) -> Iterator[str]:
        name = f"round_{uuid.uuid4().hex}"
        with self._lock:
            self._start_postgres()
            self._order(f"CREATE DATABASE {name} TEMPLATE prepared")
        try:
            yield database(self._postgres, name)
        finally:
            self._order(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def _start_postgres(self) -> None:
        if self._postgres:
            return
        self._postgres, _ = self._opened.enter_context(running_postgres())
        self._order("CREATE DATABASE prepared")
        backup = self._prepared.with_suffix(".backup")
        Place(self._prepared).json("backup", backup)
        Place(
            self._prepared.with_suffix(".pg"),
            {"database_url": database(self._postgres, "prepared")},
        ).json("restore", backup)

    def _order(self, statement: str) -> None:
        with psycopg.connect(self._postgres, autocommit=True) as connection:
            connection.execute(statement)


@contextmanager
def prepared_engines(folder: Path, source: Path) -> Iterator[Engines]:
    """A library with the Markdown files of `source`."""
    place = Place(folder / "prepared")
    token = place.json("token", "create", "--name", "torture", "--write")["token"]
    place.json("import", source, "--wait")
    with ExitStack() as opened:
        yield Engines(place.data_dir, token, opened)


def database(url: str, name: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


def require_sound(place: Place) -> None:
    """The database is whole, and nothing in it is there by half."""
    url = place.settings.get("database_url")
    if url:
        with psycopg.connect(url, options=f"-c search_path={SCHEMA}") as postgres:
            for what, statement in halves("section_words").items():
                require(not postgres.execute(statement).fetchall(), f"The database has {what}.")
        return
    connection = apsw.Connection(str(place.data_dir / DATABASE))
    try:
        said = connection.execute("PRAGMA integrity_check").fetchall()
        require(said == [("ok",)], f"integrity_check: {said[:5]}")
        require(
            not connection.execute("PRAGMA foreign_key_check").fetchall(),
            "Foreign keys do not hold.",
        )
        for what, statement in halves("section_terms").items():
            require(not connection.execute(statement).fetchall(), f"The database has {what}.")
    finally:
        connection.close()


def write_notes(folder: Path, names: Iterator[str], count: int) -> list[str]:
    """Markdown files for an import; the word that tells each of them."""
    folder.mkdir(parents=True)
    words = [next(names) for _ in range(count)]
    for word in words:
        (folder / f"{word}.md").write_text(
            f"# Note {word}\n\nThe heron {word} stands in the river.\n\n"
            + f"## Second part\n\nIt waits for {word} and for fish.\n" * 3
        )
    return words
