"""The versions of a database: made once, migrated once, refused when they cannot be read."""

import shutil
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

from commonplace.database import migrations
from commonplace.errors import ConfigurationError
from commonplace.settings import Settings
from commonplace.store import make_store
from tests.contract.library import Library

pytestmark = pytest.mark.anyio


def run_sql(place: Settings, statement: str) -> list[tuple[Any, ...]]:
    if place.database_url:
        options = f"-c search_path={place.database_schema}"
        with psycopg.connect(place.database_url, options=options) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []
    with closing(apsw.Connection(str(place.data_dir / "commonplace.sqlite3"))) as connection:
        return connection.execute(statement).fetchall()


def columns(place: Settings) -> set[tuple[str, str]]:
    return set(
        run_sql(
            place,
            f"""SELECT table_name, column_name FROM information_schema.columns
                WHERE table_schema = '{place.database_schema}'"""
            if place.database_url
            else """SELECT t.name, c.name FROM sqlite_master AS t, pragma_table_info(t.name) AS c
                    WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'""",
        )
    )


def everything(place: Settings) -> dict[str, list[tuple[Any, ...]]]:
    tables = {table for table, _ in columns(place)}
    return {table: sorted(run_sql(place, f"SELECT * FROM {table}"), key=repr) for table in tables}


def versions(place: Settings) -> list[int]:
    found = run_sql(place, "SELECT version FROM schema_version ORDER BY version")
    return [version for (version,) in found]


async def start(place: Settings) -> None:
    store = make_store(place)
    try:
        await store.open()
    finally:
        await store.close()


async def test_a_database_of_an_earlier_version_is_refused_and_left_alone(
    new_place: Settings,
) -> None:
    store = make_store(new_place)
    await store.open()
    await (await Library.create(store)).add("quartz", title="Stones")
    await store.close()
    run_sql(new_place, "UPDATE schema_version SET version = 42")
    run_sql(new_place, "INSERT INTO schema_version VALUES (43)")
    run_sql(new_place, "DROP TABLE sequences")
    before = everything(new_place)
    with pytest.raises(ConfigurationError) as refusal:
        await start(new_place)
    assert str(refusal.value) == (
        "This database was made by an earlier version of Commonplace (schema 43). "
        "Export it with that version: commonplace export DIR; then import it here, into a new "
        "data folder or database schema: commonplace import DIR. Nothing was changed."
    )
    assert everything(new_place) == before
    assert len(before["items"]) == 1


async def test_a_migration_runs_once_and_versions_without_it_refuse_the_database(
    new_place: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await start(new_place)
    assert versions(new_place) == [100]
    schema = tmp_path / "schema"
    shutil.copytree(str(files("commonplace.database").joinpath("schema")), schema)
    for engine in ("sqlite", "postgres"):
        (schema / f"0102_index.{engine}.sql").write_text("CREATE INDEX later_id ON later (id);")
        (schema / f"0101_later.{engine}.sql").write_text(
            "CREATE TABLE later (id TEXT);\nINSERT INTO later VALUES ('once');"
        )
    with monkeypatch.context() as later:
        later.setattr(migrations, "files", lambda _: tmp_path)
        await start(new_place)
        await start(new_place)
    assert versions(new_place) == [100, 101, 102]
    assert run_sql(new_place, "SELECT id FROM later") == [("once",)]
    with pytest.raises(ConfigurationError, match=r"newer Commonplace \(schema 102; .* knows 100"):
        await start(new_place)


async def test_a_migration_that_fails_leaves_nothing_behind(
    new_place: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    await start(new_place)
    known = migrations.migrations
    with monkeypatch.context() as later:
        broken = (101, "CREATE TABLE later (id TEXT); INSERT INTO nowhere VALUES (1)")
        later.setattr(migrations, "migrations", lambda engine: [*known(engine), broken])
        with pytest.raises((apsw.SQLError, psycopg.errors.UndefinedTable)):
            await start(new_place)
    assert versions(new_place) == [100]
    assert "later" not in {table for table, _ in columns(new_place)}


async def test_both_engines_have_the_same_tables_columns_and_versions(
    new_data_dir: Path, postgres_url: str, new_schema: str
) -> None:
    places = [
        Settings(data_dir=new_data_dir),
        Settings(data_dir=new_data_dir, database_url=postgres_url, database_schema=new_schema),
    ]
    for place in places:
        await start(place)
    on_sqlite, on_postgres = map(columns, places)
    # Each engine has its own search index.
    of_index = {"section_terms", "changes", "forgotten", "checkpoints", "vectors", "sequences"}
    of_index |= {"section_words", "scope_sizes", "term_counts"}
    assert {table for table, _ in on_sqlite ^ on_postgres} <= of_index
    numbers = [[n for n, _ in migrations.migrations(engine)] for engine in ("sqlite", "postgres")]
    assert numbers[0] == numbers[1] == sorted(set(numbers[0]))
