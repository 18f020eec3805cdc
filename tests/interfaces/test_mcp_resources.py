"""Resources, prompts and completions as MCP clients see them, in both protocol revisions."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from mcp import Client, MCPError
from mcp_types import PromptReference, ResourceTemplateReference

from commonplace.core.memory.token_budget import tokens
from tests.interfaces.house import House, open_house
from tests.interfaces.test_mcp import ERAS, connected

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("era", ERAS)]


@pytest.fixture(scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    async with open_house(tmp_path_factory.mktemp("resources") / "data") as opened:
        yield opened


async def read(client: Client, uri: str) -> str:
    [contents] = (await client.read_resource(uri)).contents
    assert contents.uri == uri
    return contents.text


async def refused(client: Client, uri: str) -> None:
    with pytest.raises(MCPError) as caught:
        await client.read_resource(uri)
    told = caught.value.error
    assert (told.code, told.data) == (-32602, {"error": "not_found", "uri": uri})


async def completed(client: Client, uri: str, name: str, typed: str) -> list[str]:
    ref = ResourceTemplateReference(type="ref/resource", uri=uri)
    answer = await client.complete(ref, {"name": name, "value": typed})
    return answer.completion.values


async def reads_left(house: House) -> int:
    async with house.client("owner") as client:
        return int((await client.get("/api/v1/me")).json()["limits"]["reads"]["remaining"])


async def make_project(client: Client, title: str) -> str:
    made = await client.call_tool(
        "add", {"title": title, "content": "Boats and their crews.", "entity_type": "project"}
    )
    return made.structured_content["id"]


async def test_what_is_listed_can_be_read(house: House, era: str) -> None:
    async with connected(house, "owner", era) as client:
        project = await make_project(client, f"Harbour {era}")
        for kind, title in (("task", "Paint the pier"), ("decision", "Ships moor by length")):
            await client.call_tool(
                "add",
                {
                    "title": f"{title} {era}",
                    "content": title,
                    "entity_type": kind,
                    "project": project,
                },
            )
        item_id, _ = await house.add(f"Lighthouse {era}", folder="Red")
        if era == "2026-07-28":
            capabilities = (await client.session.send_discover(era))["capabilities"]
        else:
            capabilities = client.server_capabilities.model_dump(exclude_none=True)
        listed = (await client.list_resources()).resources
        templates = (await client.list_resource_templates()).resource_templates
        texts = {each.uri: await read(client, each.uri) for each in listed}
        same = {
            word: json.loads(await read(client, f"sibyl://{word}")) for word in ("health", "stats")
        }
    assert capabilities.keys() >= {"resources", "prompts", "completions", "tools"}
    assert [each.uri_template for each in templates] == [
        f"commonplace://{path}"
        for path in ("item/{id}", "project/{id}", "folder/{id}", "disk/{public_id}")
    ]
    items = [each for each in listed if each.uri.startswith("commonplace://item/")]
    assert all(each.size == len(texts[each.uri].encode()) for each in listed)
    assert all(each.annotations.last_modified for each in items)
    lighthouse = next(each for each in items if each.title == f"Lighthouse {era}")
    assert "the zebra grazes" in texts[lighthouse.uri]
    about = texts[f"commonplace://project/{project}"]
    assert about.startswith(f"# Harbour {era}\n") and "Boats and their crews." in about
    assert about.index("Open tasks") < about.index(f"Paint the pier {era}")
    assert about.index("## Decisions") < about.index(f"Ships moor by length {era}")
    assert f"Paint the pier {era}" in texts["commonplace://tasks"]
    assert f"Lighthouse {era}" in texts["commonplace://recent"]
    assert f"Lighthouse {era}" in texts[f"commonplace://folder/{house.folders['Red']}"]
    assert same["health"]["status"] == "ok"
    assert same["stats"] == json.loads(texts["commonplace://stats"])
    assert same["stats"]["by_type"]["project"] >= 1 and item_id


@pytest.mark.parametrize("character", ["one_folder", "kb_only"])
async def test_tokens_see_their_own_only(house: House, era: str, character: str) -> None:
    name = f"{era} for {character}"
    shown, _ = await house.add(f"Shown {name}", folder="Red")
    hidden, _ = await house.add(f"Hidden {name}", folder="Blue", in_kb=False)
    async with connected(house, "owner", era) as client:
        private = await make_project(client, f"Secret {name}")
        if character == "kb_only":
            async with house.client("owner") as http:
                address = f"/api/v1/items/{private}"
                assert (await http.patch(address, json={"in_kb": False})).is_success
        everything = json.loads(await read(client, "commonplace://stats"))
    async with connected(house, character, era) as client:
        listed = (await client.list_resources()).resources
        text = await read(client, f"commonplace://item/{shown}")
        recent = await read(client, "commonplace://recent")
        counted = json.loads(await read(client, "commonplace://stats"))
        for path in (f"item/{hidden}", f"project/{private}", f"disk/{hidden}"):
            await refused(client, f"commonplace://{path}")
        if character == "one_folder":
            await refused(client, f"commonplace://folder/{house.folders['Blue']}")
        ids = await completed(client, "commonplace://item/{id}", "id", name)
        projects = await completed(client, "commonplace://project/{id}", "id", f"Secret {name}")
        disks = await completed(client, "commonplace://disk/{public_id}", "public_id", "Hidden")
        prompts = {each.name for each in (await client.list_prompts()).prompts}
        packed = await client.get_prompt("recall", {"question": f"Hidden {name}"})
    titles = [each.title for each in listed]
    assert f"Shown {name}" in titles and not {f"Hidden {name}", f"Secret {name}"} & {*titles}
    assert f"Shown {name}" in text and f"Hidden {name}" not in recent
    assert counted["items"] < everything["items"]
    assert len(ids) == 1 and not projects and not disks
    assert prompts >= {"start", "recall", "review_memory"}
    assert f"Hidden {name}" not in packed.messages[-1].content.resource.text
    if character == "one_folder":
        await house.app.folders.update(
            house.owner, house.folders["Red"], {"parent_id": house.folders["Blue"]}
        )
        async with connected(house, character, era) as client:
            listed = (await client.list_resources()).resources
            own = await read(client, f"commonplace://folder/{house.folders['Red']}")
        async with connected(house, "owner", era) as client:
            above = await read(client, f"commonplace://folder/{house.folders['Blue']}")
        await house.app.folders.update(house.owner, house.folders["Red"], {"parent_id": None})
        assert f"[Red](commonplace://folder/{house.folders['Red']})" in above
        assert own.startswith("# Red\n")
        folders = [each.title for each in listed if "/folder/" in each.uri]
        assert folders == ["Red"]


async def test_unknown_resources_are_refused(house: House, era: str) -> None:
    task, _ = await house.add(f"No project {era}")
    async with connected(house, "owner", era) as client:
        for uri in (
            "commonplace://nowhere",
            "commonplace://item/nowhere",
            "commonplace://item/",
            f"commonplace://project/{task}",
            "commonplace://folder/nowhere",
            "commonplace://disk/nowhere",
            "sibyl://recent",
            "https://example.org/",
            f"commonplace://item/{'x' * 3000}",
        ):
            await refused(client, uri)
        with pytest.raises(MCPError, match="Unknown cursor"):
            await client.list_resources(cursor="next")
        with pytest.raises(MCPError, match="No template"):
            await completed(client, "commonplace://nowhere/{id}", "id", "x")
        for name, argument in (("nowhere", "project"), ("start", "nothing")):
            with pytest.raises(MCPError, match="No prompt"):
                await client.complete(PromptReference(name=name), {"name": argument, "value": ""})


async def test_long_lists_come_in_pages(tmp_path: Path, era: str) -> None:
    async with open_house(tmp_path / "data", rate_reads_per_hour=1000) as house:
        for number in range(60):
            await house.app.folders.create(house.owner, f"Shelf {number}")
            await house.add(f"Book {number}")
        async with connected(house, "owner", era) as client:
            before = await reads_left(house)
            first = await client.list_resources()
            assert before - await reads_left(house) < 10  # whatever is read for its size
            second = await client.list_resources(cursor=first.next_cursor)
            shelves = await completed(client, "commonplace://folder/{id}", "id", "shelf")
            books = await completed(client, "commonplace://item/{id}", "id", "book 5")
    both = [each.uri for each in (*first.resources, *second.resources)]
    assert len(first.resources) == 100 and second.next_cursor is None
    assert len({*both}) == len(both) and sum("/item/" in each for each in both) == 50
    assert len(shelves) == 20 and len(books) == 11


async def test_disks_are_redacted_as_everywhere(house: House, era: str) -> None:
    item_id, _ = await house.add(f"Reef {era}", text="The private words of the diver. " * 20)
    disk = await house.app.disks.publish(house.owner, item_id)
    public_id = disk.item.public_id if hasattr(disk, "item") else disk.public_id
    async with connected(house, "stranger", era) as client:
        text = await read(client, f"commonplace://disk/{public_id}")
        await refused(client, f"commonplace://item/{item_id}")
    assert json.loads(text)["redacted"] is True
    assert "The private words of the diver. " * 20 not in text


PROMPTS = {
    "start": {"goal": "Paint the pier " * 100},
    "recall": {"question": "Where do zebras graze?"},
    "wrap_up": {"notes": "We painted it. " * 300},
    "decide": {"decision": "We use oil paint."},
    "review_memory": {},
}


async def test_prompts_fit_and_hold_what_the_library_knows(house: House, era: str) -> None:
    async with connected(house, "owner", era) as client:
        project = await make_project(client, f"Pier {era}")
        for number in range(12):
            await house.add(f"Zebras {number} {era}", text="Zebras graze by the river. " * 100)
            dense = f"第{number}匹斑馬在河邊安靜地吃草，{'春夏秋冬東南西北風雨'[number % 10] * 9}。"
            await house.add(f"斑馬 {number} {era}", text=dense * 40)
        listed = (await client.list_prompts()).prompts
        told = {name: await client.get_prompt(name, given) for name, given in PROMPTS.items()}
        told["dense"] = await client.get_prompt("recall", {"question": "斑馬在河邊吃草"})
        started = await client.get_prompt("start", {"goal": "Paint", "project": f"Pier {era}"})
        ref = PromptReference(type="ref/prompt", name="start")
        names = await client.complete(ref, {"name": "project", "value": f"pier {era}"})
        for name, given in (
            ("start", {}),
            ("start", {"goal": "x", "goals": "y"}),
            ("decide", {"decision": "x" * 100_000}),
            ("nothing", {}),
        ):
            with pytest.raises(MCPError) as caught:
                await client.get_prompt(name, given)
            assert caught.value.error.code == -32602
    assert [each.name for each in listed] == [*PROMPTS]
    assert names.completion.values == [f"Pier {era}"]
    for answer in told.values():
        texts = [
            each.content.text if each.content.type == "text" else each.content.resource.text
            for each in answer.messages
        ]
        assert 0 < sum(map(tokens, texts)) <= 4_000
    assert "Zebras graze" in told["recall"].messages[1].content.resource.text
    assert project in started.messages[1].content.resource.text


async def test_readers_are_not_offered_prompts_that_write(house: House, era: str) -> None:
    async with connected(house, "reader", era) as client:
        names = [each.name for each in (await client.list_prompts()).prompts]
        with pytest.raises(MCPError, match="Unknown prompt"):
            await client.get_prompt("decide", {"decision": "x"})
    assert names == ["start", "recall", "review_memory"]


@pytest.mark.parametrize("path", ["/mcp/knowledge", "/mcp/disks", "/mcp/core", "/mcp/graph"])
async def test_prompts_name_only_tools_of_their_endpoint(house: House, era: str, path: str) -> None:
    async with connected(house, "owner", era, path) as client:
        tools = {each.name for each in (await client.list_tools()).tools}
        names = [each.name for each in (await client.list_prompts()).prompts]
        if keeps := {"remember", "manage"} <= tools:
            await client.get_prompt("decide", {"decision": "x"})
        else:
            ref = PromptReference(type="ref/prompt", name="wrap_up")
            for asked in (
                client.get_prompt("decide", {"decision": "x"}),
                client.complete(ref, {"name": "project", "value": ""}),
            ):
                with pytest.raises(MCPError) as caught:
                    await asked
                assert caught.value.error.code == -32602
    assert names == [name for name in PROMPTS if keeps or name not in ("wrap_up", "decide")]
