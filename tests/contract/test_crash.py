"""kill -9 in the middle of writing: what was acknowledged is there whole, and nothing is there by half."""

import random
from contextlib import closing

import apsw
import psycopg
import pytest

from commonplace.errors import NotFound
from commonplace.model import ItemRef
from commonplace.settings import Settings
from commonplace.store import Store, make_store
from tests.contract.library import Library
from tests.contract.test_store_processes import writer
from tests.contract.writer import telling_word

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

KILLS = 5  # `make torture` kills as often as there is time

HALVES = {
    "a section without its item": """SELECT s.id FROM sections AS s LEFT JOIN items AS i
                                     ON i.library_id = s.library_id AND i.id = s.item_id WHERE i.id IS NULL""",
    "an item without its sections": """SELECT i.id FROM items AS i LEFT JOIN sections AS s
                                       ON s.library_id = i.library_id AND s.item_id = i.id WHERE s.id IS NULL""",
    "an item without its content": "SELECT i.id FROM items AS i LEFT JOIN contents AS c ON c.library_id = i.library_id AND c.id = i.content_id WHERE c.id IS NULL",
    "a content without an item": """SELECT c.id FROM contents AS c LEFT JOIN items AS i
                                    ON i.library_id = c.library_id AND i.content_id = c.id
                                    WHERE i.id IS NULL AND NOT EXISTS
                                    (SELECT 1 FROM trash_rows AS t
                                     WHERE t.library_id = c.library_id AND t.content_id = c.id)""",
    "a source without its text": """SELECT s.key FROM source_libraries AS s LEFT JOIN contents AS c
                                    ON c.library_id = s.library_id AND c.id = s.content_id
                                    WHERE c.id IS NULL""",
    "a vector without its section": """SELECT v.section_id FROM vectors AS v LEFT JOIN sections AS s ON s.id = v.section_id
                                       WHERE s.id IS NULL""",
    "a section without its terms": """SELECT s.id FROM sections AS s LEFT JOIN {terms} AS t ON t.section_id = s.id
                                      WHERE t.section_id IS NULL""",
    "a section without its sequence": """SELECT s.id FROM sections AS s LEFT JOIN sequences AS q ON q.section_id = s.id
                                         WHERE q.section_id IS NULL""",
    "terms without their section": """SELECT t.section_id FROM {terms} AS t LEFT JOIN sections AS s
                                      ON s.id = t.section_id WHERE s.id IS NULL""",
    "an item without its event": """SELECT i.id FROM items AS i LEFT JOIN event_log AS e
                                    ON e.item_id = i.id AND e.type = 'item.added' WHERE e.seq IS NULL""",
    "an event of what did not happen": """SELECT e.item_id FROM event_log AS e LEFT JOIN items AS i ON i.id = e.item_id
                                          GROUP BY e.item_id, i.id HAVING
                                          sum(CASE e.type WHEN 'item.deleted' THEN 1 ELSE 0 END)
                                          <> CASE WHEN i.id IS NULL THEN 1 ELSE 0 END""",
}


@pytest.mark.timeout(600)
async def test_nothing_acknowledged_is_lost_and_nothing_half_written_is_found(
    place: Settings,
) -> None:
    told: list[str] = []
    for _ in range(KILLS):
        with writer(place, clients=6, rounds=0) as process:
            assert process.stdout is not None
            for _ in range(random.randint(1, 40)):
                told.append(process.stdout.readline().strip())
            process.kill()
            told += process.stdout.read().split("\n")[:-1]  # the last line may be torn
    store = make_store(place)
    await store.open()
    await check_acknowledged(store, [line for line in told if line])
    await store.close()
    check_halves(place)


async def check_acknowledged(store: Store, told: list[str]) -> None:
    added, asked, deleted = ({line[1:] for line in told if line[0] == mark} for mark in "+?-")
    assert added and deleted
    for person in await store.people.all():
        library = Library(store, person.id)
        for item_id in sorted(added):
            try:
                item = await store.items.get(library.scope(), ItemRef(id=item_id))
            except NotFound:
                continue
            added.remove(item_id)
            assert item_id not in deleted
            assert item.summary == "whole"
            assert (await store.items.text(item)).endswith("second part")
            assert len(await store.sections.of_item(item)) == 2
            assert await library.found(telling_word(item_id)) == [item.title] * 2
    assert added <= asked, "an acknowledged item is lost"
    assert deleted <= added, "a deleted item is back"


def halves(terms: str) -> dict[str, str]:
    """`terms`: the table that has the terms of sections."""
    return {what: statement.format(terms=terms) for what, statement in HALVES.items()}


def check_halves(place: Settings) -> None:
    if place.database_url:
        with psycopg.connect(
            place.database_url, options=f"-c search_path={place.database_schema}"
        ) as postgres:
            for what, statement in halves("section_words").items():
                assert postgres.execute(statement).fetchall() == [], what
        return
    with closing(apsw.Connection(str(place.data_dir / "commonplace.sqlite3"))) as connection:
        for what, statement in halves("section_terms").items():
            assert connection.execute(statement).fetchall() == [], what
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
