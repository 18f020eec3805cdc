"""The disks door as its clients see it: the same answers over MCP and REST."""

import json
import re
from typing import Any

import httpx
import pytest

from commonplace.core.disks.publishing import Publisher
from commonplace.core.ingest.pipeline import described
from commonplace.core.items.drafts import Draft
from commonplace.errors import NotFound
from commonplace.model import Caller, Capability, Item, ItemRef, RedactedDisk, Transformed
from tests.interfaces.house import House, call_tool, rpc

pytestmark = pytest.mark.anyio

MEMORY = """Spaced repetition works because every review happens shortly before we would forget what we learned.

The forgetting curve shows how memory fades. Each review flattens the forgetting curve, so intervals may grow. Learners who
study with flashcards and grow their intervals remember more, and memory of a lesson stays with students for years."""
DISK = {
    "public_id",
    "title",
    "summary",
    "category",
    "word_count",
    "visibility",
    "relationship",
    "source_url",
    "ai_generated",
    "redacted",
    "tags",
    "sections",
    "next_section",
    "related_disks",
    "created_at",
}
LINE = {
    "public_id",
    "title",
    "summary",
    "category",
    "visibility",
    "relationship",
    "owner_user_id",
    "owner_display_name",
    "word_count",
    "tags",
    "saved_at",
    "created_at",
}
HIT = {"disk_public_id", "disk_title", "section_index", "similarity", "key_points", "redacted"}
HIT |= {"created_at", "published_at", "origin", "added_by"}
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
NOT_FOUND = {"error": "not_found", "message": "Disk not found"}


async def ask(
    client: httpx.AsyncClient, name: str, path: str = "/mcp/disks", **arguments: Any
) -> Any:
    """What the text says; the structured content says the same."""
    answer = (await call_tool(client, name, arguments, path))["result"]
    text = answer["content"][0]["text"]
    said = json.loads(text)
    assert text == json.dumps(said, separators=(",", ":"), ensure_ascii=False)
    structured = answer["structuredContent"]
    assert (structured["results"] if isinstance(said, list) else structured) == said
    return said


async def keep(client: httpx.AsyncClient, title: str = "Memory Systems", text: str = MEMORY) -> str:
    kept = (
        await client.post("/api/v1/ingest", json={"kind": "text", "title": title, "text": text})
    ).json()
    return str((await client.get(f"/api/v1/items/{kept['user_item_id']}")).json()["public_id"])


async def publish(client: httpx.AsyncClient, disk: str, **body: Any) -> dict[str, Any]:
    answer = await client.post(f"/api/v1/disks/{disk}/publish", json=body or None)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


@pytest.mark.parametrize("path", ["/mcp/disks", "/mcp", "/api/mcp"])
async def test_the_tools_are_at_all_three_addresses(owner: httpx.AsyncClient, path: str) -> None:
    tools = {
        tool["name"]: tool
        for tool in (await rpc(owner, "tools/list", path=path))["result"]["tools"]
    }
    assert {"search_knowledge", "get_disk", "list_disks"} <= set(tools)
    assert all(
        tools[name]["annotations"]["readOnlyHint"]
        for name in ("search_knowledge", "get_disk", "list_disks")
    )
    assert (await ask(owner, "list_disks", path)) == {"scope": "all", "total": 0, "disks": []}


async def test_what_is_wrong_or_was_replaced_is_not_recommended(
    house: House, owner: httpx.AsyncClient
) -> None:
    old, false, new = [
        await keep(owner, title, f"{MEMORY} {title}.") for title in ("Old", "False", "New")
    ]
    disk = await keep(owner)

    async def related() -> set[str]:
        return {
            one["title"] for one in (await ask(owner, "get_disk", disk_id=disk))["related_disks"]
        }

    assert await related() == {"Old", "False", "New"}
    await house.app.memory.supersede(house.owner, old, by=new)
    await house.app.memory.mark_wrong(house.owner, false)
    assert await related() == {"New"}


async def test_a_private_disk_comes_with_its_text(owner: httpx.AsyncClient) -> None:
    disk = await keep(owner)
    await keep(
        owner,
        "Forgetting Curves",
        "The forgetting curve says how memory fades without a review of what was learned.",
    )
    item = (await owner.get(f"/api/v1/items/{disk}")).json()
    for spelling in (item["id"], disk, item["entity_id"]):
        shown = await ask(owner, "get_disk", disk_id=spelling)
        assert set(shown) == DISK | {"text"}
        assert (await owner.get(f"/api/v1/disks/{spelling}")).json() == shown
    assert (
        shown["visibility"],
        shown["relationship"],
        shown["redacted"],
        shown["ai_generated"],
    ) == ("private", "owned", False, False)
    assert (shown["text"], shown["title"], shown["category"]) == (
        MEMORY,
        "Memory Systems",
        "Learning",
    )
    assert [set(section) for section in shown["sections"]] == [
        {"index", "word_count", "key_points", "text"}
    ]
    assert (
        shown["sections"][0]["index"] == 1
        and shown["sections"][0]["word_count"] == shown["word_count"] > 40
    )
    [related] = shown["related_disks"]
    assert related["title"] == "Forgetting Curves" and 0.2 < related["similarity"] <= 1
    assert MOMENT.fullmatch(shown["created_at"])


async def test_a_published_disk_is_redacted_also_for_its_owner(owner: httpx.AsyncClient) -> None:
    disk = await keep(owner)
    [before] = await ask(owner, "search_knowledge", query="how does spaced repetition work?")
    assert set(before) == HIT | {"section_text"} and before["section_index"] == 1
    assert (before["section_text"], before["redacted"], before["disk_public_id"]) == (
        MEMORY,
        False,
        disk,
    )
    preview = (await owner.get(f"/api/v1/disks/{disk}/preview")).json()
    await publish(owner, disk)
    shown = await ask(owner, "get_disk", disk_id=disk)
    assert set(shown) == DISK
    assert [set(section) for section in shown["sections"]] == [
        {"index", "word_count", "key_points"}
    ]
    assert (shown["visibility"], shown["relationship"], shown["redacted"]) == (
        "published",
        "owned",
        True,
    )
    assert preview | {"relationship": "owned"} == shown
    [hit] = await ask(owner, "search_knowledge", query="how does spaced repetition work?")
    assert (
        set(hit) == HIT | {"snippet"}
        and hit["redacted"] is True
        and "forgetting curve" in hit["snippet"]
    )
    # The knowledge door is the owner's own: there the text is.
    assert (await owner.get(f"/api/v1/items/{disk}")).json()["text"] == MEMORY


async def test_others_find_a_published_disk_and_save_it(house: House) -> None:
    async with house.client("owner") as owner, house.client("stranger") as stranger:
        disk = await keep(owner)
        assert await ask(stranger, "get_disk", disk_id=disk) == NOT_FOUND
        assert (await stranger.post(f"/api/v1/disks/{disk}/save")).status_code == 404
        published = await publish(owner, disk)
        assert published["path"] == f"/d/{disk}" and published["access"] == "anyone"
        shown = await ask(stranger, "get_disk", disk_id=disk)
        assert (shown["relationship"], shown["redacted"]) == ("public", True)
        assert (await ask(stranger, "list_disks"))["total"] == 0
        saved = (await stranger.post(f"/api/v1/disks/{disk}/save")).json()
        assert await ask(stranger, "get_disk", disk_id=disk) == shown | {"relationship": "saved"}
        listed = await ask(stranger, "list_disks")
        [line] = listed["disks"]
        assert set(line) == LINE and listed["total"] == 1
        assert (line["saved_at"], line["relationship"], line["owner_display_name"]) == (
            saved["saved_at"],
            "saved",
            "Owner",
        )
        assert line["owner_user_id"] == house.owner.person_id
        assert MOMENT.fullmatch(line["saved_at"])
        # Saved disks are listed and read, but never searched.
        assert (
            await ask(stranger, "search_knowledge", query="how does spaced repetition work?") == []
        )


async def test_unpublishing_and_deleting_take_effect_at_once_for_every_saver(house: House) -> None:
    async with house.client("owner") as owner, house.client("stranger") as stranger:
        disk = await keep(owner)
        await publish(owner, disk)
        await stranger.post(f"/api/v1/disks/{disk}/save")
        back = (await owner.delete(f"/api/v1/disks/{disk}/publish")).json()
        assert (back["visibility"], back["access"]) == ("private", None)
        assert await ask(stranger, "get_disk", disk_id=disk) == NOT_FOUND
        assert (await ask(stranger, "list_disks"))["disks"] == []
        assert (await ask(owner, "get_disk", disk_id=disk))["text"] == MEMORY
        await publish(owner, disk)
        assert [
            line["relationship"]
            for line in (await ask(stranger, "list_disks", scope="saved"))["disks"]
        ] == ["saved"]
        await owner.delete(f"/api/v1/items/{disk}")
        assert await ask(stranger, "get_disk", disk_id=disk) == NOT_FOUND
        assert (await ask(stranger, "list_disks"))["total"] == 0
        assert (await stranger.delete(f"/api/v1/disks/{disk}/save")).status_code == 404


async def test_what_is_deleted_while_its_view_is_derived_is_not_there_and_harms_no_list(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def deleted(publisher: Publisher, item: Item, summary: str = "") -> RedactedDisk:
        await house.app.library.delete(house.owner, item.id)
        raise NotFound("Item not found")

    async with house.client("owner") as owner, house.client("stranger") as stranger:
        for reader, path in (
            (stranger, "/api/v1/disks?scope=saved"),
            (owner, "/api/v1/disks"),
            (stranger, "/api/v1/disks/{}"),
            (owner, "/api/v1/disks/{}"),
            (owner, "/api/v1/search"),
        ):
            disk = await keep(owner, "Short-lived")
            await publish(owner, disk)
            await stranger.post(f"/api/v1/disks/{disk}/save")
            await owner.patch(f"/api/v1/items/{disk}", json={"title": "Short-lived and changed"})
            with monkeypatch.context() as patched:
                patched.setattr(Publisher, "derive", deleted)
                answer = await (
                    reader.post(path, json={"query": "short-lived"})
                    if "search" in path
                    else reader.get(path.format(disk))
                )
            if "{}" in path:
                assert (answer.status_code, answer.json()) == (404, NOT_FOUND), path
            else:
                assert answer.status_code == 200, path
                assert answer.json().get("disks", answer.json().get("results")) == [], path


async def test_what_the_owner_changes_others_see_changed(house: House) -> None:
    async with house.client("owner") as owner, house.client("stranger") as stranger:
        disk = await keep(owner)
        await publish(owner, disk)
        await stranger.post(f"/api/v1/disks/{disk}/save")
        await owner.patch(
            f"/api/v1/items/{disk}",
            json={"title": "New name", "tags": ["by hand"], "category": "My own"},
        )
        [line] = (await ask(stranger, "list_disks", tag="by hand", category="My own"))["disks"]
        assert (line["title"], line["tags"], line["category"]) == (
            "New name",
            ["by hand"],
            "My own",
        )
        assert (await ask(stranger, "get_disk", disk_id=disk))["title"] == "New name"
        assert (await ask(stranger, "list_disks", tag="memory"))["total"] == 0


async def test_scopes_of_lists(house: House) -> None:
    async with house.client("owner") as owner, house.client("stranger") as stranger:
        private, published = await keep(owner, "Private one"), await keep(owner, "Published one")
        theirs = await keep(stranger, "Theirs")
        await publish(owner, published)
        await publish(stranger, theirs)
        await owner.post(f"/api/v1/disks/{theirs}/save")
        for scope, expected in {
            "all": [theirs, published, private],
            "owned": [published, private],
            "saved": [theirs],
            "private": [private],
            "published": [published],
        }.items():
            said = await ask(owner, "list_disks", scope=scope)
            assert (
                [line["public_id"] for line in said["disks"]],
                said["total"],
                said["scope"],
            ) == (expected, len(expected), scope)
            by_rest = (await owner.get("/api/v1/disks", params={"scope": scope})).json()
            assert by_rest == said | {"next": None}
        pages = [
            (await owner.get("/api/v1/disks", params={"limit": 1, "offset": n})).json()
            for n in range(4)
        ]
        assert [[line["public_id"] for line in page["disks"]] for page in pages] == [
            [theirs],
            [published],
            [private],
            [],
        ]
        assert [page["total"] for page in pages] == [3, 3, 3, 3]
        found = (await owner.get("/api/v1/disks", params={"search": "their"})).json()
        assert found["scope"] == "owned"
        assert {line["public_id"] for line in found["disks"]} == {published, private}


async def test_category_and_tag_are_exact(owner: httpx.AsyncClient) -> None:
    disk = await keep(owner)
    await owner.patch(
        f"/api/v1/items/{disk}", json={"tags": ["learning", "spaced repetition", 'the "curve']}
    )
    for asked, count in (
        ({"tag": "learning"}, 1),
        ({"tag": "learn"}, 0),
        ({"tag": "Learning"}, 0),
        ({"tag": 'the "curve'}, 1),
        ({"tag": "curve"}, 0),
        ({"category": "Learning"}, 1),
        ({"category": "Learn"}, 0),
        ({"category": "Learning", "tag": "spaced repetition"}, 1),
    ):
        assert (await ask(owner, "list_disks", **asked))["total"] == count, asked


async def test_tasks_and_the_like_are_no_disks(house: House) -> None:
    async with house.client("owner") as owner:
        disk = await keep(owner)
        for kind in ("task", "epic", "project", "session"):
            added = await house.app.library.add(
                house.owner, Draft("text", f"A {kind}", MEMORY, entity_type=kind)
            )
            assert await ask(owner, "get_disk", disk_id=added.item.public_id) == NOT_FOUND
            assert (
                await owner.post(f"/api/v1/disks/{added.item.public_id}/publish")
            ).status_code == 404
        assert [line["public_id"] for line in (await ask(owner, "list_disks"))["disks"]] == [disk]
        assert [
            hit["disk_public_id"]
            for hit in await ask(owner, "search_knowledge", query="forgetting curve", limit=25)
        ] == [disk]
        shown = await ask(owner, "get_disk", disk_id=disk)
        assert shown["related_disks"] == []
        found = (await owner.post("/api/v1/search", json={"query": "forgetting curve"})).json()
        assert disk in {result["disk_public_id"] for result in found["results"]}
        assert len(found["results"]) == 5


async def test_batches_are_of_owned_disks(house: House) -> None:
    async with house.client("owner") as owner, house.client("stranger") as stranger:
        mine, other = await keep(owner, "One"), await keep(owner, "Two")
        theirs = await keep(stranger, "Theirs")
        await publish(stranger, theirs)
        answer = (
            await owner.post(
                "/api/v1/disks/batch", json={"ids": [mine, theirs, "nowhere", other, mine]}
            )
        ).json()
        assert [disk["title"] for disk in answer["disks"]] == ["One", "Two"]
        assert answer["not_found"] == [theirs, "nowhere"]
        assert (
            await owner.post("/api/v1/disks/batch", json={"ids": [mine] * 11})
        ).status_code == 400


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("search_knowledge", {"query": "x", "limit": 0}),
        ("search_knowledge", {"query": "x", "limit": 26}),
        ("search_knowledge", {}),
        ("search_knowledge", {"query": " "}),
        ("get_disk", {}),
        ("list_disks", {"scope": "mine"}),
        ("list_disks", {"limit": 101}),
        ("list_disks", {"limit": "20"}),
        ("list_disks", {"offset": 1}),
    ],
)
async def test_limits_and_names_are_kept(
    owner: httpx.AsyncClient, tool: str, arguments: dict[str, Any]
) -> None:
    assert (await call_tool(owner, tool, arguments))["error"]["code"] == -32602


async def test_only_the_beginning_of_a_long_question_counts(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    query = house.app.embedder.query

    async def listen(text: str) -> Any:
        asked.append(text)
        return await query(text)

    monkeypatch.setattr(type(house.app.embedder), "query", lambda self, text: listen(text))
    async with house.client("owner") as owner:
        await ask(owner, "search_knowledge", query="memory " * 300)
    assert [len(text) <= 1_000 for text in asked if "memory" in text] == [True]


async def test_tokens_of_folders_and_of_the_kb_see_no_saved_disks(house: House) -> None:
    async with house.client("stranger") as stranger, house.client("owner") as owner:
        theirs = await keep(stranger)
        await publish(stranger, theirs)
        await owner.post(f"/api/v1/disks/{theirs}/save")
        assert (await ask(owner, "list_disks"))["total"] == 1
    for character in ("one_folder", "two_folder", "kb_only"):
        async with house.client(character) as client:
            assert (await ask(client, "list_disks"))["total"] == 0
            assert await ask(client, "get_disk", disk_id=theirs) == NOT_FOUND
            assert (await client.post(f"/api/v1/disks/{theirs}/save")).json()[
                "error"
            ] == "forbidden_scope"


async def test_members_only_is_for_people_with_an_account(house: House) -> None:
    async with house.client("owner") as owner, house.client("stranger") as stranger:
        disk = await keep(owner)
        await publish(owner, disk, access="members")
        assert (await ask(stranger, "get_disk", disk_id=disk))["relationship"] == "public"
        assert (await publish(owner, disk, access="anyone"))["access"] == "anyone"
        refused = await owner.post(f"/api/v1/disks/{disk}/publish", json={"access": "nobody"})
        assert refused.status_code == 422


async def test_ones_own_disk_is_not_saved(owner: httpx.AsyncClient) -> None:
    disk = await keep(owner)
    await publish(owner, disk)
    refused = await owner.post(f"/api/v1/disks/{disk}/save")
    assert (refused.status_code, refused.json()["error"]) == (422, "invalid_request")


async def test_a_member_of_a_team_may_publish_what_is_the_teams(house: House) -> None:
    item, _ = await house.add("Shared", text=MEMORY)
    writer = Caller(
        house.owner.library_id, house.stranger.person_id, "Member", frozenset(Capability)
    )
    published = await house.app.disks.publish(writer, item)
    assert published.owner_id == house.owner.person_id


async def test_what_the_transform_says_later_does_not_replace_a_chosen_category(
    house: House,
) -> None:
    item, _ = await house.add("Chosen", text=MEMORY)
    await house.app.library.update(house.owner, item, {"category": "My own"})
    await house.app.library.update(house.owner, item, {"in_kb": False})
    changed = (await house.app.library.read(house.owner, item)).item
    made = described(changed, Transformed("S", (), (), ("t",), "Science"), MEMORY)
    assert "category" not in made and made["metadata"]["category_given"] is True


async def test_automatic_tags_do_not_come_back_once_somebody_has_chosen(house: House) -> None:
    text = f"{MEMORY} {MEMORY} Reviews are short."
    item, _ = await house.add("Memory", text=text)
    library, owner = house.app.library, house.owner
    before = (await library.read(owner, item)).item
    assert before.tags and before.tags == before.auto_tags
    for chosen in ((before.tags[0],), ()):
        await library.update(owner, item, {"tags": chosen})
        changed = (await library.read(owner, item)).item
        made = described(changed, Transformed("S", (), (), before.tags, "Science"), text)
        assert changed.own_tags == chosen and made["tags"] == chosen


async def test_callers_cannot_say_that_a_model_wrote_the_summary(owner: httpx.AsyncClient) -> None:
    """What a model wrote is shown to others; what was picked out of the text is the text."""
    content = "Retry with backoff and jitter. Queues drain slowly. Alarms ring at night."
    body = {
        "entity_type": "pattern",
        "title": "Queues",
        "content": content,
        "metadata": {"ai_generated": True, "team": "ops"},
    }
    added = (await owner.post("/api/entities?sync=true", json=body)).json()
    for change in (
        {},
        {"metadata": {"ai_generated": True}},
        {"content": content + " Alarms stop.", "metadata": {"ai_generated": True}},
    ):
        if change:
            assert (
                await owner.patch(f"/api/entities/{added['id']}", json=change)
            ).status_code == 200
        shown = (await owner.get(f"/api/v1/disks/{added['id']}/preview")).json()
        assert shown["ai_generated"] is False
        assert "Retry with backoff" not in json.dumps(shown)
    assert (await owner.get(f"/api/entities/{added['id']}")).json()["metadata"]["team"] == "ops"


async def test_an_entity_whose_text_changes_no_longer_has_what_a_model_wrote(house: House) -> None:
    async with house.client("owner") as owner:
        body = {
            "entity_type": "pattern",
            "title": "Queues",
            "content": "Retry with backoff and jitter.",
        }
        added = (await owner.post("/api/entities?sync=true", json=body)).json()
        item = await house.app.store.items.get(house.owner.scope, ItemRef.parse(added["id"]))
        made = Transformed("Waiting longer helps.", (), ((),), (), "Technology", by_model=True)
        await house.app.store.items.update(
            house.owner.scope,
            item.id,
            described(item, made, body["content"]),
            expected_revision=None,
            sections=None,
            stamp="",
            jobs=(),
        )
        assert (await owner.get(f"/api/v1/disks/{added['id']}/preview")).json()[
            "summary"
        ] == "Waiting longer helps."
        await owner.patch(
            f"/api/entities/{added['id']}",
            json={"content": "Alarms ring at night. Nobody hears them ring."},
        )
        shown = (await owner.get(f"/api/v1/disks/{added['id']}/preview")).json()
        assert shown["ai_generated"] is False and "Alarms ring at night" not in json.dumps(shown)
