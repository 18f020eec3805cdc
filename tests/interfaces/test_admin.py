"""The operator's list of libraries: names, sizes and jobs, nothing of what is in them, and nobody else's."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from commonplace.core.items.drafts import Draft
from commonplace.errors import ForbiddenScope
from commonplace.model import Caller, Capability, Role
from tests.interfaces.command import Commands
from tests.interfaces.house import House, open_house
from tests.interfaces.test_web_people import browser

pytestmark = pytest.mark.anyio


@pytest.fixture
async def house(data_dir: Path, either_engine: dict[str, str]) -> AsyncIterator[House]:
    async with open_house(data_dir, **either_engine) as opened:
        yield opened


async def test_it_has_sizes_and_jobs_and_no_content(house: House) -> None:
    await house.add("Mine")
    for n in range(3):
        await house.app.library.add(
            house.stranger, Draft("text", f"Secret {n}", f"The hidden zebra {n} grazes.")
        )
    page = await house.app.admin.libraries(house.owner)
    by_email = {row.email: row for row in page.libraries}
    theirs = by_email["stranger@example.org"]
    assert (theirs.usage.items, theirs.usage.sections, theirs.members) == (3, 3, 1)
    assert theirs.usage.size > 60 and theirs.failed_jobs == 0
    mine = next(row for row in page.libraries if row.id == house.owner.library_id)
    assert (mine.usage.items, mine.members) == (1, 2)
    assert page.total == len(page.libraries) and page.after is None
    assert "zebra" not in repr(page) and "Secret" not in repr(page)
    assert [row.id for row in page.libraries] == sorted(
        (row.id for row in page.libraries), reverse=True
    )


async def test_pages_lead_through_all_libraries(house: House) -> None:
    for n in range(5):
        await house.app.people.create(f"Guest {n}", f"guest{n}@example.org")
    seen, after = [], None
    while True:
        page = await house.app.admin.libraries(house.owner, after, 2)
        seen += [row.email for row in page.libraries]
        if (after := page.after) is None:
            break
    assert len(seen) == len({*seen}) == page.total
    async with await browser(house, house.owner.person_id) as client:
        answer = await client.get("/admin")
        assert answer.status_code == 200
        assert "guest4@example.org" in answer.text
        oldest = page.libraries[-1].id if page.libraries else ""
        empty = await client.get("/admin", params={"after": oldest})
        assert "guest4@example.org" not in empty.text
        assert (await client.get("/admin", params={"after": "\0"})).status_code == 422


async def test_only_the_first_person_without_a_token_sees_it(house: House) -> None:
    operator = await house.app.access.identify(house.tokens["owner"])
    host = Caller(
        house.stranger.library_id,
        house.owner.person_id,
        "",
        frozenset(Capability),
        role=Role.MEMBER,
    )
    for caller in (house.stranger, operator, host):
        with pytest.raises(ForbiddenScope):
            await house.app.admin.libraries(caller)
    async with await browser(house, house.stranger.person_id) as client:
        assert (await client.get("/admin")).status_code == 403
        assert "/admin" not in (await client.get("/health")).text


def test_at_the_command_line(data_dir: Path) -> None:
    run = Commands(data_dir)
    run.text("add", "-n", "The zebra grazes by the river.")
    run.text("user", "create", "--name", "Ada", "--email", "ada@example.org")
    found = run.json("admin", "libraries")
    assert found["total"] == 2
    newest, oldest = found["libraries"]
    assert (newest["email"], newest["items"], oldest["items"]) == ("ada@example.org", 0, 1)
    first = run.json("admin", "libraries", "--limit", "1")
    assert (
        run.json("admin", "libraries", "--after", first["after"])["libraries"]
        == found["libraries"][1:]
    )
    assert "zebra" not in run.text("admin", "libraries")
