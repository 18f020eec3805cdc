"""Views for others: derived once, and together never more of the source than a short quotation."""

import asyncio
import random
from typing import Any

import httpx
import pytest

from commonplace.core.disks import publishing
from commonplace.core.disks.publishing import Publisher
from commonplace.model import Annotation, Item, ItemRef, RedactedDisk
from tests.core.test_redaction import quoted_words
from tests.interfaces.house import House, call_tool
from tests.interfaces.test_disks import ask, keep, publish

pytestmark = pytest.mark.anyio

NOUNS = [
    f"{first}{last}"
    for first in ("ow", "fo", "ba", "ri", "sno", "mou", "ti", "lan")
    for last in ("l", "x", "rn", "ver", "w", "se", "de", "tern")
]


def story(seed: int, words: int = 800) -> str:
    chance = random.Random(seed)
    found = [chance.choice(NOUNS) for _ in range(words)]
    return "\n\n".join(" ".join(found[at : at + 8]) + "." for at in range(0, words, 8))


@pytest.fixture
def derivations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The titles of items whose views were derived."""
    made: list[str] = []
    redacted = publishing.redacted

    def counted(item: Item, *rest: Any) -> RedactedDisk:
        made.append(item.title)
        return redacted(item, *rest)

    monkeypatch.setattr(publishing, "redacted", counted)
    return made


async def test_a_preview_is_derived_once_for_each_revision(
    owner: httpx.AsyncClient, derivations: list[str]
) -> None:
    disk = await keep(owner)
    seen = [(await owner.get(f"/api/v1/disks/{disk}/preview")).json() for _ in range(3)]
    assert seen[0] == seen[1] == seen[2] and derivations == ["Memory Systems"]
    await owner.patch(f"/api/v1/items/{disk}", json={"title": "Changed"})
    assert [
        (await owner.get(f"/api/v1/disks/{disk}/preview")).json()["title"] for _ in range(2)
    ] == ["Changed", "Changed"]
    assert derivations == ["Memory Systems", "Changed"]
    await publish(owner, disk)
    assert (await owner.get(f"/api/v1/disks/{disk}/preview")).json()["title"] == "Changed"
    assert derivations == ["Memory Systems", "Changed"]  # what was previewed is what is published


async def test_a_kept_preview_is_for_its_owner_alone_and_goes_with_the_item(house: House) -> None:
    async with (
        house.client("owner") as owner,
        house.client("stranger") as stranger,
        house.client() as nobody,
    ):
        disk = await keep(owner)
        before = await ask(owner, "list_disks")
        assert (await owner.get(f"/api/v1/disks/{disk}/preview")).status_code == 200
        assert await ask(owner, "list_disks") == before
        assert (await ask(owner, "get_disk", disk_id=disk))["redacted"] is False
        assert (await stranger.get(f"/api/v1/disks/{disk}")).status_code == 404
        assert (await stranger.post(f"/api/v1/disks/{disk}/save")).status_code == 404
        assert (await nobody.get(f"/d/{disk}")).status_code == 404
        await owner.delete(f"/api/v1/items/{disk}")
        assert await house.app.store._db.read(lambda tx: tx.all("SELECT * FROM published")) == []  # type: ignore[attr-defined]


async def test_a_token_derives_one_view_at_a_time_and_other_tokens_do_not_wait(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    derive, begun, release = Publisher.derive, asyncio.Event(), asyncio.Event()
    running: list[str] = []
    most = 0

    async def held(publisher: Publisher, item: Item, summary: str = "") -> RedactedDisk:
        nonlocal most
        running.append(item.title)
        most = max(most, len(running))
        if item.title.startswith("Slow"):
            begun.set()
            await release.wait()
        view = await derive(publisher, item, summary)
        running.remove(item.title)
        return view

    monkeypatch.setattr(Publisher, "derive", held)
    async with house.client("owner") as owner, house.client("reader") as reader:
        slow = [await keep(owner, f"Slow {n}", story(n, 80)) for n in range(4)]
        quick = await keep(owner, "Quick", story(9, 80))
        waiting = [asyncio.create_task(owner.get(f"/api/v1/disks/{disk}/preview")) for disk in slow]
        await begun.wait()
        assert (await reader.get(f"/api/v1/disks/{quick}/preview")).status_code == 200
        assert len(running) == 1 and not any(task.done() for task in waiting)
        release.set()
        assert [answer.status_code for answer in await asyncio.gather(*waiting)] == [200] * 4
    assert most == 2  # one of each token


async def test_readers_of_a_changed_disk_wait_for_one_derivation(
    house: House, derivations: list[str]
) -> None:
    async with house.client("owner") as owner, house.client("stranger") as stranger:
        disk = await keep(owner)
        await publish(owner, disk)
        await owner.patch(f"/api/v1/items/{disk}", json={"title": "Changed"})
        seen = await asyncio.gather(*(stranger.get(f"/api/v1/disks/{disk}") for _ in range(8)))
        assert {answer.json()["title"] for answer in seen} == {"Changed"}
        assert derivations.count("Changed") == 1


async def test_the_owner_gives_a_summary_in_their_own_words(house: House) -> None:
    async with house.client("owner") as owner, house.client("stranger") as stranger:
        text = story(1)
        disk = await keep(owner, "A story", text)
        await publish(owner, disk, summary="What I made of it. Write to me@example.org.")
        shown = await ask(stranger, "get_disk", disk_id=disk)
        assert shown["summary"] == "What I made of it. Write to [email]."
        assert shown["summary"] in (await stranger.get(f"/d/{disk}")).text
        await publish(owner, disk, access="members")
        assert (await ask(stranger, "get_disk", disk_id=disk))["summary"] == shown[
            "summary"
        ]  # left out: as it was
        await owner.patch(f"/api/v1/items/{disk}", json={"title": "Another name"})
        assert (await ask(stranger, "get_disk", disk_id=disk))["summary"] == shown["summary"]
        await publish(owner, disk, summary="")
        assert (await ask(stranger, "get_disk", disk_id=disk))["summary"] != shown["summary"]


async def test_a_preview_that_ends_late_does_not_replace_the_published_view(house: House) -> None:
    own = "How we keep what we have learnt."
    item_id, _ = await house.add("Heron")
    item = await house.app.store.items.get(house.owner.scope, ItemRef(id=item_id))
    late = RedactedDisk("Heron", "", "", (), None, False, 7)
    await house.app.disks.publish(house.owner, item_id, summary=own)
    await house.app.store.disks.save_preview(house.owner.scope, item, late)
    published, _ = await house.app.disks.public(item.public_id, None)
    assert published.view.summary == own


async def test_a_summary_that_quotes_the_source_is_refused(house: House) -> None:
    async with house.client("owner") as owner, house.client("stranger") as stranger:
        text = story(2)
        words = text.replace(".", " ").split()
        disk = await keep(owner, "A story", text)
        pieces = " -- ".join(" ".join(words[at : at + 10]) for at in range(0, 140, 20))
        for summary, said in ((pieces, "70 words"), (" ".join(words[:13]), "13 words")):
            refused = await owner.post(f"/api/v1/disks/{disk}/publish", json={"summary": summary})
            assert (refused.status_code, refused.json()["error"]) == (422, "invalid_request")
            assert said in refused.json()["message"] and "own words" in refused.json()["message"]
        assert (
            await owner.post(f"/api/v1/disks/{disk}/publish", json={"summary": "x" * 2_001})
        ).status_code == 422
        assert (
            await stranger.get(f"/api/v1/disks/{disk}")
        ).status_code == 404  # nothing was published
        await publish(owner, disk, summary=" ".join(words[:10]))
        shown = await ask(stranger, "get_disk", disk_id=disk)
        assert shown["summary"] == " ".join(words[:10])


async def test_a_model_that_quotes_everywhere_shows_no_more_than_the_allowance(
    house: House,
) -> None:
    """Over MCP and REST, whatever is asked: the union of all that anybody is shown."""
    async with house.client("owner") as owner, house.client("stranger") as stranger:
        for seed, size in ((3, 120), (4, 400), (5, 1_600)):
            text = story(seed, size)
            disk = await keep(owner, f"Story {seed}", text)
            await quote_everywhere(house, disk, text)
            await publish(owner, disk)
            await stranger.post(f"/api/v1/disks/{disk}/save")
            shown = set[str]()
            for client in (owner, stranger):
                one = await ask(client, "get_disk", disk_id=disk)
                shown |= {
                    one["summary"],
                    *(point for section in one["sections"] for point in section["key_points"]),
                }
                shown |= {
                    line["summary"]
                    for line in (await ask(client, "list_disks"))["disks"]
                    if line["public_id"] == disk
                }
            for query in [*NOUNS[::4], *text.split("\n\n")[::5]]:
                for hit in (
                    await call_tool(owner, "search_knowledge", {"query": query, "limit": 25})
                )["result"]["structuredContent"]["results"]:
                    if hit["disk_public_id"] == disk:
                        assert hit["redacted"] is True
                        shown |= {hit["snippet"], *hit["key_points"]}
            assert 0 < quoted_words(text, sorted(shown)) <= min(60, size // 10)


async def quote_everywhere(house: House, disk: str, text: str) -> None:
    """As a careless model would: every sentence is short, and all together they are the text."""
    item = await house.app.store.items.get(house.owner.scope, ItemRef.parse(disk))
    sections = await house.app.store.sections.of_item(item)
    said = [text.split("\n\n")[n :: len(sections)] for n in range(len(sections))]
    await house.app.store.items.set_derived(
        [
            Annotation(
                item,
                {
                    "summary": " ".join(text.split("\n\n")),
                    "key_points": tuple(said[0]),
                    "metadata": {"ai_generated": True},
                },
                tuple(map(tuple, said)),
            )
        ]
    )
