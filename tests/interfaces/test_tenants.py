"""What a caller, a probe or an idle worker reads on Postgres does not grow with the other libraries."""

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from commonplace.core.items.drafts import Draft
from commonplace.core.search import search
from commonplace.database.postgres import PostgresTx, _statement
from commonplace.model import Caller, Capability, Role
from tests.interfaces.house import House, call_tool, open_house

pytestmark = pytest.mark.anyio

FEW, MANY = 4, 64  # other libraries
OWN = 30  # rows by which the reader's own library grows during the test
CALLS = [
    ("POST", "/api/v1/search", {"query": "zebra river"}),
    ("GET", "/api/v1/items", None),
    ("GET", "/api/v1/items/{item}", None),
    ("GET", "/api/v1/folders", None),
    ("GET", "/api/v1/tokens", None),
    ("GET", "/api/v1/me", None),
    ("GET", "/api/v1/events", None),
    ("GET", "/api/v1/disks", None),
    ("GET", "/api/tasks", None),
    ("POST", "/api/search", {"query": "zebra river"}),
    ("POST", "/api/v1/ingest", {"kind": "text", "text": "The okapi hides in forest {turn}.", "title": "Okapi {turn}"}),
    ("POST", "/api/entities", {"title": "Okapis hide {turn}", "content": "They hide by day {turn}."}),
    ("PATCH", "/api/v1/items/{item}", {"tags": ["t{turn}"]}),
    ("GET", "/readyz", None),
]  # fmt: skip

TOOLS: list[tuple[str, dict[str, Any]]] = [
    ("context", {"goal": "Watch the zebra by the river"}),
    ("explore", {"mode": "list"}),
    ("list_disks", {}),
]


class Reads(Counter[str]):
    """Rows that each statement has read, those that it dropped included."""

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("all", "tuples", "one", "run"):
            monkeypatch.setattr(PostgresTx, name, self._explained(getattr(PostgresTx, name)))

    def _explained(self, method: Any) -> Any:
        def run(tx: PostgresTx, statement: str, /, **values: Any) -> Any:
            connection = tx._connection
            if statement.lstrip(" (").startswith(("SELECT", "WITH", "UPDATE", "DELETE")):
                connection.execute("SAVEPOINT explained")
                asked = f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {_statement(statement)}"
                [plan] = connection.execute(asked, values).fetchone().values()
                connection.execute("ROLLBACK TO explained")
                self[statement] = max(self[statement], _rows(plan[0]["Plan"]))
            return method(tx, statement, **values)

        return run


def _rows(plan: dict[str, Any]) -> int:
    read = sum(_rows(each) for each in plan.get("Plans", ()))
    if "Relation Name" in plan:
        dropped = (value for name, value in plan.items() if name.startswith("Rows Removed"))
        read += round((plan["Actual Rows"] + sum(dropped)) * plan["Actual Loops"])
    return read


@pytest.fixture
async def house(data_dir: Path, postgres_url: str, new_schema: str) -> AsyncIterator[House]:
    """Tables of a few hundred rows are read whole, whatever their indexes: here they are not."""
    url = postgres_url + ("&" if "?" in postgres_url else "?")
    async with open_house(
        data_dir,
        database_url=f"{url}options=-c%20enable_seqscan%3Doff",
        database_schema=new_schema,
        embedder="static",
    ) as opened:
        yield opened


async def settle(house: House, libraries: range) -> None:
    """Other people with items, whose vectors are of another model, and with open and failed jobs."""
    for n in libraries:
        person, _ = await house.app.people.create_with_token(f"Guest {n}", f"guest{n}@example.org")
        guest = Caller(person.id, person.id, person.name, frozenset(Capability), role=Role.OWNER)
        for part in range(3):
            await house.app.library.add(
                guest, Draft("text", f"Zebra {part}", f"The zebra {part} grazes by the river.")
            )


async def read_all(house: House, monkeypatch: pytest.MonkeyPatch, turn: int) -> Reads:
    reads = Reads()
    item, _ = await house.add(f"Zebra of the house {turn}")
    monkeypatch.setattr(search, "RECHECK_SECONDS", -1)
    with monkeypatch.context() as patch:
        reads.watch(patch)
        async with house.client("owner") as client:
            for method, path, body in CALLS:
                body = body and {
                    key: value.replace("{turn}", str(turn)) if isinstance(value, str) else value
                    for key, value in body.items()
                }
                answer = await client.request(method, path.replace("{item}", item), json=body)
                assert answer.status_code < 300, (path, answer.text)
            for tool, arguments in TOOLS:
                assert "result" in await call_tool(client, tool, arguments)
        assert await house.app.overview.report(house.owner)
    return reads


async def test_what_calls_read_does_not_grow_with_the_other_libraries(
    house: House, postgres_url: str, new_schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def others(libraries: range) -> None:
        await settle(house, libraries)
        while await house.app.worker.run_once():
            pass
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(f"SET search_path = {new_schema}, public")
            connection.execute(
                "UPDATE vectors SET stamp = 'other/256' WHERE library_id <> %s",
                [house.owner.library_id],
            )
            for state in ("queued", "running", "done"):
                connection.execute(
                    """INSERT INTO jobs (library_id, id, item_id, kind, state, attempts, run_after,
                                         progress, created_at, updated_at, error, payload)
                       SELECT library_id, gen_random_uuid(), id, 'embed', %s, 1, 0,
                              0, 0, 0, CASE WHEN library_id <> %s THEN 'Failed.' END, '{}'
                       FROM items""",
                    [state, house.owner.library_id],
                )
            connection.execute("ANALYZE")

    await others(range(FEW))
    few = await read_all(house, monkeypatch, 1)
    await others(range(FEW, MANY))
    many = await read_all(house, monkeypatch, 2)
    grown = {
        statement: (few[statement], rows)
        for statement, rows in many.items()
        if statement in few and rows > few[statement] + OWN
    }
    assert not grown, "\n".join(f"{rows} {statement}" for statement, rows in grown.items())
    assert len(few) > 60
