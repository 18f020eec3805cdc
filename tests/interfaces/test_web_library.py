"""The library's pages: what is done to many items at once, and what a page must not cost others."""

import threading
from typing import Any

import pytest

from commonplace.core.entities.validation import NewEntity
from commonplace.core.people.accounts import LIFETIME
from commonplace.core.people.authorization import digest
from commonplace.interfaces.web import markdown_html
from commonplace.interfaces.web.pages import reader
from commonplace.model import Job, new_id, now
from tests.interfaces.house import House
from tests.interfaces.test_web_people import browser, csrf

pytestmark = pytest.mark.anyio


async def test_a_task_under_way_is_not_archived_and_does_not_keep_the_others_from_it(
    house: House,
) -> None:
    project = (
        await house.app.entities.add(house.owner, NewEntity("Auth", "The services.", "project"))
    ).item
    task = (
        await house.app.entities.add(
            house.owner, NewEntity("Login", "The page.", "task", project=project.id)
        )
    ).item
    await house.app.tasks.step(house.owner, task.id, "start_task")
    note, _ = await house.add("A note")
    async with await browser(house, house.owner.person_id) as client:
        sent = await client.post(
            "/items",
            data={"csrf": await csrf(client), "action": "archive", "item": [task.id, note]},
            headers={"Accept": "application/json"},
        )
    assert sent.status_code == 422
    assert "is doing, so it cannot become archived" in sent.text and "1 item archived." in sent.text
    items = {item.id: item for item in await house.app.library.recent(house.owner)}
    assert (items[task.id].archived, items[task.id].status, items[note].archived) == (
        False,
        "doing",
        True,
    )


async def test_a_page_that_has_become_empty_leads_to_the_last_one(house: House) -> None:
    notes = [await house.add(f"Note {number:02}") for number in range(31)]
    async with await browser(house, house.owner.person_id) as client:
        sent = await client.post(
            "/items",
            data={"csrf": await csrf(client), "action": "archive", "item": notes[-1][0]},
            headers={"Referer": f"{client.base_url}/?order=title&page=2"},
        )
        assert (sent.status_code, sent.headers["location"]) == (303, "/?order=title&page=2")
        back = await client.get(sent.headers["location"])
        assert (back.status_code, back.headers["location"]) == (303, "/?order=title&page=1")
        shown = await client.get(back.headers["location"])
        assert "1 item archived." in shown.text and "Note 29" in shown.text


async def test_a_browser_stays_signed_in_for_as_long_after_its_last_visit(house: House) -> None:
    async with await browser(house, house.owner.person_id) as client:
        assert "set-cookie" not in (await client.get("/")).headers
        secret = client.cookies["commonplace_8642"]
        await house.app.store.accounts.extend_session(digest(secret), now() + LIFETIME / 2)
        renewed = (await client.get("/")).headers["set-cookie"]
        assert (
            renewed.startswith(f"commonplace_8642={secret};")
            and f"Max-Age={LIFETIME.days * 86400}" in renewed
        )
        assert "set-cookie" not in (await client.get("/")).headers


@pytest.mark.parametrize("in_kb", [True, False])
async def test_others_do_not_wait_while_a_book_is_set(
    house: House, monkeypatch: pytest.MonkeyPatch, in_kb: bool
) -> None:
    set_by, rendered = set(), markdown_html.rendered

    def noting(*text: Any) -> Any:
        set_by.add(threading.current_thread())
        return rendered(*text)

    for module in (reader, markdown_html):
        monkeypatch.setattr(module, "rendered", noting)
    item, _ = await house.add("A book", in_kb=in_kb)
    async with await browser(house, house.owner.person_id) as client:
        assert "the zebra grazes" in (await client.get(f"/items/{item}")).text
    assert set_by and threading.main_thread() not in set_by


async def test_the_report_passes_over_what_is_deleted_meanwhile(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    stays, _ = await house.add("Stays")
    goes, _ = await house.add("Goes")
    await house.app.store.jobs.enqueue(
        [Job(new_id(), house.owner.library_id, item_id, "embed") for item_id in (stays, goes)]
    )
    within = house.app.store.jobs.list_jobs

    async def late(*args: Any, **kwargs: Any) -> Any:
        found = await within(*args, **kwargs)
        if found:
            await house.app.library.delete(house.owner, goes)
        return found

    monkeypatch.setattr(house.app.store.jobs, "list_jobs", late)
    assert [title for _, title in (await house.app.overview.report(house.owner)).open] == ["Stays"]


async def test_near_duplicates_share_a_place_on_the_search_page(house: House) -> None:
    text = "The zebra grazes by the river at dawn, and rests in the shade of the fig trees at noon."
    for title in ("Zebra notes", "Zebra notes, copied"):
        await house.add(title, text=text)
    await house.add("Zebras at dusk", text=text.replace("at noon", "at noon, never alone"))
    async with await browser(house, house.owner.person_id) as client:
        page = (await client.get("/search?q=where+does+the+zebra+graze")).text
    assert page.count('<li class="row">') == 2
    also = page[page.index("Also in") :].split("</p>")[0]
    assert also.count("<a ") == 1 and "Zebra notes" in also
    assert "2 results" in page
