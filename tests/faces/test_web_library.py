"""The library's page: what is done to many items at once."""

import pytest

from commonplace.core.entity_rules import NewEntity
from tests.faces.house import House
from tests.faces.test_web_people import browser, csrf

pytestmark = pytest.mark.anyio


async def test_a_task_under_way_is_not_archived_and_does_not_keep_the_others_from_it(house: House) -> None:
    project = (await house.app.entities.add(house.owner, NewEntity("Auth", "The services.", "project"))).item
    task = (await house.app.entities.add(house.owner, NewEntity("Login", "The page.", "task", project=project.id))).item
    await house.app.work.step(house.owner, task.id, "start_task")
    note, _ = await house.add("A note")
    async with await browser(house, house.owner.person_id) as client:
        sent = await client.post("/items", data={"csrf": await csrf(client), "action": "archive", "item": [task.id, note]},
                                 headers={"Accept": "application/json"})
    assert sent.status_code == 422
    assert "is doing, so it cannot become archived" in sent.text and "1 item archived." in sent.text
    items = {item.id: item for item in await house.app.library.recent(house.owner)}
    assert (items[task.id].archived, items[task.id].status, items[note].archived) == (False, "doing", True)
