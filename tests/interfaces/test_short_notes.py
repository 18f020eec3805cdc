"""Notes of people: short ones, and what their front matter says, in the box, in files and in the
command line alike."""

from pathlib import Path
from typing import Any

import pytest

from commonplace.core.items.drafts import note_draft
from commonplace.errors import Invalid
from commonplace.model import FullItem
from commonplace.text import front_matter
from tests.interfaces.command import Commands
from tests.interfaces.house import House
from tests.interfaces.test_web_people import browser, csrf

pytestmark = pytest.mark.anyio

BODY = "- Ask Marta\n- Book the room\n"
NOTE = f"""---
title: Weekly planning
tags: [planning, work]
date: 2024-03-01
author: Ada
mood: calm
---
{BODY}"""


async def work(house: House) -> None:
    while await house.app.worker.run_once():
        pass


async def add(house: House, **sent: Any) -> FullItem:
    async with await browser(house, house.owner.person_id) as client:
        files = {"file": sent.pop("file")} if "file" in sent else None
        answer = await client.post("/add", data={"csrf": await csrf(client), **sent}, files=files)
        assert answer.status_code == 303, answer.text
    await work(house)
    item = (await house.app.library.recent(house.owner))[0]
    return await house.app.library.read(house.owner, item.id)


@pytest.mark.parametrize("text", ["Buy milk", "x", "✓"])
async def test_a_note_needs_one_character(house: House, text: str) -> None:
    added = await add(house, text=text)
    assert (added.item.title, added.text, added.item.state) == (text, text, "ready")
    assert (added.item.summary, added.item.tags) == ("", ())


async def test_an_empty_note_and_one_that_is_too_long_are_refused(house: House) -> None:
    async with await browser(house, house.owner.person_id) as client:
        token = await csrf(client)
        for text, said in (
            ("", "Write something"),
            ("---\ntitle: x\n---\n", "Write something"),
            ("x" * 500_001, "500,001 characters"),
        ):
            answer = await client.post(
                "/add",
                data={"csrf": token, "text": text},
                headers={"Accept": "application/json"},
            )
            assert answer.status_code == 422 and said in answer.json()["message"]
    assert await house.app.library.recent(house.owner) == []


async def test_programs_still_send_twenty_characters(house: House) -> None:
    async with house.client("owner") as owner:
        short = {"kind": "text", "title": "Milk", "text": "Buy milk"}
        assert (await owner.post("/api/v1/ingest", json=short)).status_code == 422


async def test_front_matter_is_read_in_notes_and_files_alike(house: House) -> None:
    async def check(added: FullItem, text: str) -> None:
        item = added.item
        assert added.text == text
        assert (item.title, item.own_tags) == ("Weekly planning", ("planning", "work"))
        assert item.published_at and item.published_at.date().isoformat() == "2024-03-01"
        assert (item.author, item.metadata["front_matter"]["mood"]) == ("Ada", "calm")
        async with house.client("owner") as owner:
            await owner.delete(f"/api/v1/items/{item.id}")

    await check(await add(house, text=NOTE), BODY.strip())
    await check(await add(house, file=("weekly.md", NOTE.encode())), BODY.strip())


async def test_what_is_no_front_matter_stays_text(house: House) -> None:
    text = "---\nnot: [closed\n---\nThe text."
    added = await add(house, text=text)
    assert added.text == text
    file = await add(house, file=("open.md", b"---\ntitle: x\nNever closed"))
    assert file.text.startswith("---\ntitle: x")


async def test_deep_front_matter_is_refused_by_no_crash(house: House) -> None:
    text = f"---\na: {'[' * 100_000}\n---\nThe text."
    assert front_matter.parse(text, "name").text == text
    added = await add(house, file=("deep.md", text.encode()))
    assert added.item.state == "ready"


async def test_a_date_outside_all_calendars_is_ignored() -> None:
    draft = note_draft(front_matter.parse("---\ndate: 0001-01-01T00:00:00+14:00\n---\nText", ""))
    assert "published_at" not in draft.metadata
    with pytest.raises(Invalid):
        front_matter.parse('---\ntitle: "\\0"\n---\nText', "")


async def test_the_summary_does_not_repeat_the_title(house: House) -> None:
    first = "I met Marta about the new contract today"
    rest = "She sends the signed copy on Friday, and the landlord wants to see it first. " * 6
    added = await add(house, text=f"{first}\n\n{rest}")
    assert added.item.title == first
    assert added.item.summary and first not in added.item.summary


def test_the_command_line_adds_a_note(data_dir: Path) -> None:
    cli = Commands(data_dir)
    added = cli.json("add", "-n", "Buy milk", "--tag", "home")
    assert (added["title"], added["status"]) == ("Buy milk", "ready")
    assert cli.json("get", added["user_item_id"])["tags"] == ["home"]
    cli.json("add", "-n", NOTE)
    assert cli.json("search", "Marta", "--mode", "keyword")["hits"][0]["title"] == "Weekly planning"
    assert "add -n TEXT" in cli.fails("add")
    assert "has no text" in cli.fails("add", "-n", " ")
