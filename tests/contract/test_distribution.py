"""The schema and its statements, spread over nodes by library: what deploy/citus does on Citus."""

import re
from collections import defaultdict
from contextlib import closing
from importlib import import_module
from typing import Any

import apsw
import psycopg
import pytest

from commonplace.settings import Settings
from commonplace.store import make_store
from tests.distribution import (
    EVERY_NODE,
    SCRIPT,
    distributed,
    problems,
    reference_tables,
)

pytestmark = pytest.mark.anyio

# As Citus defines them; these note their calls.
_STUBS = """
    CREATE TABLE calls (n SERIAL, name TEXT, relation TEXT);
    CREATE FUNCTION create_distributed_table(relation regclass, key text, colocate_with text)
      RETURNS void LANGUAGE sql AS $$ INSERT INTO calls (name, relation) VALUES (key, relation::text) $$;
    CREATE FUNCTION create_reference_table(relation regclass)
      RETURNS void LANGUAGE sql AS $$ INSERT INTO calls (name, relation) VALUES ('', relation::text) $$;
    CREATE FUNCTION create_distributed_function(called regprocedure) RETURNS void LANGUAGE sql AS '';
"""
_KEYS = """SELECT t.relname, i.relname, array_agg(a.attname::text) FROM pg_index AS x
           JOIN pg_class AS t ON t.oid = x.indrelid JOIN pg_class AS i ON i.oid = x.indexrelid
           LEFT JOIN pg_attribute AS a ON a.attrelid = t.oid AND a.attnum = ANY(x.indkey)
           WHERE x.indisunique AND t.relnamespace = current_schema()::regnamespace GROUP BY 1, 2"""
_REFERENCES = """SELECT t.relname, f.relname, c.confdeltype::text,
                        ARRAY(SELECT attname::text FROM unnest(c.conkey) WITH ORDINALITY AS k (n, o)
                              JOIN pg_attribute ON attrelid = t.oid AND attnum = k.n ORDER BY o),
                        ARRAY(SELECT attname::text FROM unnest(c.confkey) WITH ORDINALITY AS k (n, o)
                              JOIN pg_attribute ON attrelid = f.oid AND attnum = k.n ORDER BY o)
                 FROM pg_constraint AS c JOIN pg_class AS t ON t.oid = c.conrelid
                 JOIN pg_class AS f ON f.oid = c.confrelid
                 WHERE c.contype = 'f' AND t.relnamespace = current_schema()::regnamespace"""


@pytest.fixture
async def schema(data_dir: Any, postgres_url: str, new_schema: str) -> Any:
    """A connection to a database as a first start leaves it."""
    place = Settings(data_dir=data_dir, database_url=postgres_url, database_schema=new_schema)
    store = make_store(place)
    await store.open()
    await store.close()
    with psycopg.connect(
        postgres_url, options=f"-c search_path={new_schema},public", autocommit=True
    ) as connection:
        yield connection


def tables(connection: Any) -> set[str]:
    found = connection.execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
    )
    return {name for (name,) in found}


async def test_the_script_runs_and_knows_every_table(schema: Any) -> None:
    assert distributed().keys() | reference_tables() == tables(schema) - {"schema_version"}
    schema.execute(_STUBS)
    schema.execute(SCRIPT.read_text().replace('SET search_path = :"schema", public;', ""))
    calls = dict(schema.execute("SELECT relation, name FROM calls ORDER BY n").fetchall())
    assert calls == {table: by.column for table, by in distributed().items()} | {
        table: "" for table in reference_tables()
    }
    # A table that another refers to comes first.
    order = list(calls)
    for table, other, *_ in schema.execute(_REFERENCES):
        assert order.index(other) <= order.index(table)
    assert not schema.execute(
        """SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgrelid IN
           (SELECT oid FROM pg_class WHERE relnamespace = current_schema()::regnamespace)"""
    ).fetchall()


async def test_every_key_holds_what_its_table_is_distributed_by(schema: Any) -> None:
    keys = defaultdict(list)
    for table, index, columns in schema.execute(_KEYS):
        keys[table].append((index, columns))
    for table, by in distributed().items():
        assert table == "events" or table == "trash_rows" or keys[table], f"{table} has no key"
        for index, columns in keys[table]:
            assert by.column in columns, f"{index} of {table}"


async def test_references_stay_on_one_node(schema: Any) -> None:
    for table, other, on_delete, columns, others in schema.execute(_REFERENCES):
        if other in reference_tables():
            continue
        assert table in distributed(), f"{table} is on every node, {other} is not"
        mine, theirs = distributed()[table], distributed()[other]
        assert mine.group == theirs.group, f"{table} refers to {other}"
        assert columns.index(mine.column) == others.index(theirs.column), f"{table} to {other}"
        assert on_delete in "ac", f"{table} to {other}: Citus sets no key to NULL"


async def test_both_engines_have_the_same_keys(schema: Any, data_dir: Any) -> None:
    store = make_store(Settings(data_dir=data_dir))
    await store.open()
    await store.close()
    primary = {
        table: set(columns)
        for table, index, columns in schema.execute(_KEYS)
        if index.endswith("_pkey") and table in distributed()
    }
    with closing(apsw.Connection(str(data_dir / "commonplace.sqlite3"))) as connection:
        for table, columns in primary.items():
            found = connection.execute(
                "SELECT name FROM pragma_table_info(?) WHERE pk > 0", (table,)
            ).fetchall()
            if found and table not in ("sections", "sequences"):  # by ids of the file
                assert {name for (name,) in found} == columns, table


def test_each_exception_is_a_function_of_the_product() -> None:
    for name in EVERY_NODE:
        path = re.split(r"\.(?=[A-Z_])", name, maxsplit=1)
        module, _, function = name.rpartition(".") if len(path) == 1 else (path[0], "", path[1])
        found = import_module(f"commonplace.{module}")
        for part in function.split("."):
            found = getattr(found, part)
        assert callable(found), name


ONE = "library_id = %(library_id)s"


@pytest.mark.parametrize(
    "statement",
    [
        f"SELECT * FROM items WHERE {ONE} AND id = ANY(%(ids)s)",
        f"SELECT * FROM items WHERE {ONE} FOR UPDATE SKIP LOCKED",
        f"""SELECT i.id FROM items AS i JOIN folder_items AS f ON f.library_id = i.library_id
            AND f.item_id = i.id WHERE i.{ONE} AND (i.archived = 0 OR EXISTS (SELECT 1
            FROM jobs AS j WHERE j.library_id = i.library_id AND j.item_id = i.id))""",
        f"WITH a AS (SELECT library_id, id FROM items WHERE {ONE}) SELECT * FROM a JOIN jobs USING (library_id)",
        f"SELECT p.name FROM people AS p JOIN tokens AS t ON t.person_id = p.id WHERE t.{ONE}",
        "SELECT * FROM items WHERE library_id = ANY(%(libraries)s)",
        "INSERT INTO jobs (library_id, id) VALUES (%s, %s) ON CONFLICT (library_id, id) DO NOTHING",
        "SELECT library_id FROM directory WHERE key = %(key)s",
    ],
)
def test_what_says_its_library_goes_to_one_node(statement: str) -> None:
    assert problems(statement) == ()


@pytest.mark.parametrize(
    ("statement", "refused"),
    [
        ("SELECT * FROM items WHERE id = %(id)s", False),
        (f"SELECT * FROM items WHERE {ONE} OR id = %(id)s", False),
        (f"DELETE FROM items WHERE NOT {ONE}", False),
        ("SELECT * FROM jobs WHERE kind = 'embed' FOR UPDATE SKIP LOCKED", True),
        (
            f"SELECT 1 FROM items AS i WHERE i.{ONE} AND EXISTS (SELECT 1 FROM jobs AS j WHERE j.item_id = i.id)",
            True,
        ),
        ("SELECT 1 FROM items AS i JOIN jobs AS j ON j.item_id = i.id", True),
        (
            "SELECT 1 FROM items AS i, saves AS s WHERE i.library_id = %(a)s AND s.library_id = %(b)s",
            True,
        ),
        (
            "WITH a AS (SELECT library_id FROM items LIMIT 9) SELECT * FROM a JOIN jobs USING (library_id)",
            True,
        ),
        (
            "WITH a AS (DELETE FROM jobs RETURNING library_id) DELETE FROM items USING a WHERE items.library_id = a.library_id",
            True,
        ),
        ("INSERT INTO items (library_id, id) VALUES (%s, %s) ON CONFLICT (id) DO NOTHING", True),
        ("INSERT INTO items (id) VALUES (%s)", True),
        (f"UPDATE items SET library_id = %(other)s WHERE {ONE}", True),
        (
            "SELECT * FROM directory AS d JOIN tokens AS t USING (library_id) WHERE d.key = %(key)s",
            True,
        ),
        (f"DELETE FROM people WHERE id IN (SELECT person_id FROM tokens WHERE {ONE})", True),
        (
            f"INSERT INTO directory (key, library_id) SELECT id, library_id FROM items WHERE {ONE}",
            True,
        ),
    ],
)
def test_what_asks_all_nodes_is_seen(statement: str, refused: bool) -> None:
    found = problems(statement)
    assert found and any(problem.refused for problem in found) == refused, found
