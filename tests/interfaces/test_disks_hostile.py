"""Somebody who saved a disk, and somebody who only has its address, against sixty texts with secrets in them.

They call every tool and every route with every argument they can think of. What is planted never comes back, nor do thirteen
words of a text in a row. (They never send what is planted: an answer may repeat its question.)
"""

import json
import random
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from commonplace.core.disks.redaction import LONGEST_QUOTATION, spoken
from commonplace.core.items.drafts import Draft
from commonplace.core.transfer.markdown_folder import export_folder
from commonplace.model import Item
from tests.interfaces.house import ADDRESS, House, call_tool, open_house, rpc

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

TEXTS = 60
STREAMS = {"/events", "/connect/live"}  # without an end, and with no more than ids of items
RUN = LONGEST_QUOTATION + 1


def listed(words: str) -> list[str]:
    return words.split()


NOUNS = listed("""river mountain engine library harbour market teacher student garden bridge winter orchard signal battery compass
    lantern meadow village kitchen letter window painter sailor doctor museum forest castle weather journey history music""")
VERBS = listed(
    "finds builds keeps watches carries follows opens measures paints repairs crosses remembers describes teaches sells"
)
OTHERS = listed(
    "quietly near behind the old and with a small under every long slowly before after bright green careful early late"
)


class Planted:
    """Texts of all shapes, each with secrets of all kinds: in sentences, headings, lists, code, said once or again and again."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.secrets: set[str] = set()
        self.runs: set[tuple[str, ...]] = set()
        self.titles: list[str] = []

    def draft(self, number: int) -> Draft:
        choose = self._random.choice
        subject = choose(NOUNS)
        parts: list[str] = []
        secrets = [self._secret() for _ in range(3)]
        for part in range(self._random.randint(1, 6)):
            if self._random.random() < 0.5:
                parts.append(
                    f"# The {choose(NOUNS)} {part}"
                    + (f" of {choose(secrets)}" if self._random.random() < 0.3 else "")
                )
            sentences = [self._sentence(subject) for _ in range(self._random.randint(2, 8))]
            for _ in range(choose([1, 1, 5])):
                at = self._random.randrange(len(sentences))
                sentences.insert(
                    at,
                    choose(
                        [
                            "The password is {}.",
                            "Write to {} at once.",
                            "{}",
                            "Only {} opens the {n}.",
                        ]
                    ).format(choose(secrets), n=choose(NOUNS)),
                )
            parts.append(choose([" ", "\n- ", "\n\n"]).join(sentences))
        text = "\n\n".join(parts)
        words = spoken(text)
        self.runs.update(tuple(words[at : at + RUN]) for at in range(len(words) - RUN + 1))
        self.titles.append(f"About the {subject} {number}")
        # Some give a sentence of the text as the title.
        return Draft(
            "text",
            self.titles[-1] if number % 10 else f"{subject}: {' '.join(text.split()[:40])}"[:400],
            text,
        )

    def _sentence(self, subject: str) -> str:
        choose = self._random.choice
        middle = " ".join(choose([*OTHERS, *NOUNS]) for _ in range(self._random.randint(4, 18)))
        return f"The {choose([subject, choose(NOUNS)])} {choose(VERBS)} {middle}.".capitalize()

    def _secret(self) -> str:
        bits, choose = self._random.getrandbits, self._random.choice
        made = choose(
            [
                f"agent{bits(20)}@hidden.example",
                f"sk_live_{bits(96):x}",
                f"ORCHID-{bits(14)}-XK{bits(10)}",
                f"{bits(128):x}",
                f"+49 30 {bits(20) + 1_000_000}",
                f"Tr0ub4dor{bits(16)}",
                f"ghp_{bits(144):x}",
                f"hunter{bits(12)}fox",
            ]
        )
        self.secrets.add(made.lower())
        return made

    def given_away(self, answer: str) -> list[str]:
        text = answer.lower()
        words = spoken(re.sub(r'[{}\[\]":,]|\\n', " ", answer))
        return [secret for secret in self.secrets if secret in text] + [
            " ".join(words[at : at + RUN])
            for at in range(len(words) - RUN + 1)
            if tuple(words[at : at + RUN]) in self.runs
        ]


class Spy:
    def __init__(self, planted: Planted) -> None:
        self.planted = planted
        self.answers = 0

    def hear(self, what: object, answer: str) -> None:
        self.answers += 1
        assert self.planted.given_away(answer) == [], what


@pytest.fixture(scope="module")
async def stage(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[tuple[House, Planted, list[Item]]]:
    """All published by the owner; every second one saved by the stranger."""
    planted = Planted(7)
    async with open_house(tmp_path_factory.mktemp("hostile") / "data") as house:
        items = []
        for number in range(TEXTS):
            item = (await house.app.library.add(house.owner, planted.draft(number))).item
            await house.app.disks.publish(house.owner, item.id)
            if number % 2:
                await house.app.disks.save(house.stranger, item.public_id)
            items.append(item)
        await house.app.library.add(
            house.stranger,
            Draft("text", "Mine", "The engine of the old harbour is mine, and so is the river."),
        )
        yield house, planted, items


def guesses(items: list[Item], planted: Planted) -> list[str]:
    """Ids in all spellings, words that will be in there, and what breaks out of queries."""
    some = items[1], items[2]
    names = [
        name
        for item in some
        for name in (item.id, item.public_id, item.entity_id, item.content_id, item.library_id)
    ]
    return [
        *names,
        planted.titles[1],
        "password",
        "secret key",
        "The password is",
        "write to",
        "*",
        "%",
        "' OR 1=1 --",
        "url:",
        "document",
    ]


def arguments(
    schema: dict[str, Any], strings: list[str], defs: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """One field after the other takes all that it can take, beside what is required."""
    fields = schema.get("properties", {})
    required = {
        name: next(iter(values(fields[name], strings, defs)), None)
        for name in schema.get("required", ())
    }
    yield required
    for name, field in fields.items():
        for value in values(field, strings, defs):
            yield required | {name: value}


def values(field: dict[str, Any], strings: list[str], defs: dict[str, Any]) -> list[Any]:
    if "$ref" in field:
        return values(defs[field["$ref"].rsplit("/", 1)[-1]], strings, defs)
    if "anyOf" in field or "oneOf" in field:
        return [
            value
            for option in field.get("anyOf", field.get("oneOf"))
            for value in values(option, strings, defs)
        ]
    if "enum" in field:
        return list(field["enum"])
    match field.get("type"):
        case "integer" | "number":
            return [field.get("minimum", 0), field.get("maximum", 100)]
        case "boolean":
            return [True, False]
        case "array":
            return [[value] for value in values(field.get("items", {}), strings, defs)]
        case "object":
            return (
                list(arguments(field, strings, defs))
                if "properties" in field
                else [{}, {"title": strings[0]}]
            )
        case "string":
            return strings
    return [None]


async def test_every_tool_with_every_argument(stage: tuple[House, Planted, list[Item]]) -> None:
    house, planted, items = stage
    spy, strings = Spy(planted), guesses(items, planted)
    async with house.client("stranger") as client:
        for tool in (await rpc(client, "tools/list"))["result"]["tools"]:
            schema = tool["inputSchema"]
            for given in arguments(schema, strings, schema.get("$defs", {})):
                spy.hear(
                    (tool["name"], given),
                    json.dumps(await call_tool(client, tool["name"], given), ensure_ascii=False),
                )
        for item in items:
            for tool_name, field in (("get_disk", "disk_id"), ("get_item", "item_id")):
                answer = await call_tool(client, tool_name, {field: item.public_id})
                spy.hear((tool_name, item.title), json.dumps(answer, ensure_ascii=False))
                if tool_name == "get_item":
                    assert answer["error"]["data"]["error"] == "not_found"
        for scope in ("all", "saved"):
            answer = await call_tool(client, "list_disks", {"scope": scope, "limit": 100})
            spy.hear(scope, json.dumps(answer, ensure_ascii=False))
        assert answer["result"]["structuredContent"]["total"] == TEXTS // 2
    assert spy.answers > 2 * TEXTS + 100


async def test_every_route_with_every_argument(stage: tuple[House, Planted, list[Item]]) -> None:
    house, planted, items = stage
    spy, strings = Spy(planted), guesses(items, planted)
    async with house.client("stranger") as client:
        schema = (await client.get("/openapi.json")).json()
        defs = schema["components"]["schemas"]
        for path, operations in schema["paths"].items():
            for method, operation in operations.items():
                if path == "/metrics" or (method == "delete" and path.endswith("/save")):
                    continue
                for request in requests(path, operation, strings, defs):
                    answer = await client.request(method, **request)
                    spy.hear((method, request), answer.text)
        for item in items:
            for path in (
                f"/api/v1/disks/{item.entity_id}",
                f"/api/v1/disks/{item.id}/preview",
                f"/api/v1/items/{item.id}",
            ):
                answer = await client.get(path)
                assert answer.status_code == (200 if path.endswith(item.entity_id) else 404)
                spy.hear(path, answer.text)
    assert spy.answers > 3 * TEXTS + 100


def requests(
    path: str, operation: dict[str, Any], strings: list[str], defs: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    named = re.findall(r"\{(\w+)\}", path)
    paths = (
        [
            re.sub(
                r"\{\w+\}",
                httpx.URL(f"/{text}").raw_path.decode()[1:].replace("/", "%2F") or "x",
                path,
            )
            for text in strings
        ]
        if named
        else [path]
    )
    queries: list[dict[str, Any]] = [{}]
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "query":
            queries += [
                {parameter["name"]: value}
                for value in values(parameter["schema"], strings, defs)
                if value is not None
            ]
    body = (
        operation.get("requestBody", {})
        .get("content", {})
        .get("application/json", {})
        .get("schema")
    )
    bodies = values(body, strings, defs) if body else [None]
    for place in paths:
        yield {"url": place, "params": queries[0], "json": bodies[0]}
    for query in queries[1:]:
        yield {"url": paths[0], "params": query, "json": bodies[0]}
    for given in bodies[1:]:
        yield {"url": paths[0], "json": given}


@pytest.mark.parametrize("signed_in", [False, True])
async def test_every_page(stage: tuple[House, Planted, list[Item]], signed_in: bool) -> None:
    house, planted, items = stage
    spy = Spy(planted)
    transport = httpx.ASGITransport(house.asgi)
    async with httpx.AsyncClient(
        transport=transport, base_url=ADDRESS, headers={"Accept": "text/html"}
    ) as client:
        if signed_in:
            client.cookies.set(
                "commonplace_8642",
                await house.app.accounts.open_session(house.stranger.person_id, ""),
                domain="127.0.0.1",
            )
        for door in house.asgi.api.state.pages.routes:
            if door.path in STREAMS:
                continue
            for text in guesses(items, planted):
                place = re.sub(
                    r"\{\w+\}",
                    httpx.URL(f"/{text}").raw_path.decode()[1:].replace("/", "%2F") or "x",
                    door.path,
                )
                answer = await client.request(door.method, place, params={"q": text, "part": "1"})
                spy.hear((door.method, place), page_text(answer.text))
        for item in items:
            answer = await client.get(f"/d/{item.public_id}")
            assert answer.status_code == 200
            spy.hear(item.title, page_text(answer.text))


def page_text(html: str) -> str:
    """As it is read, and with all that is in attributes."""
    return html + " " + re.sub(r"<[^>]*>", " ", html)


def files_in(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in folder.rglob("*") if file.is_file()}


async def test_what_is_exported_is_ones_own(
    stage: tuple[House, Planted, list[Item]], tmp_path: Path
) -> None:
    house, planted, _ = stage
    spy = Spy(planted)
    app = house.app
    await export_folder(
        app.library, app.versions, app.folders, house.stranger, tmp_path, lambda done, total: None
    )
    exported = files_in(tmp_path)
    assert exported
    for name, text in exported.items():
        spy.hear(name, text)


async def test_taking_back_is_at_once_and_for_everybody(
    stage: tuple[House, Planted, list[Item]],
) -> None:
    """The last of the tests: afterwards nothing is published."""
    house, _, items = stage
    async with house.client("stranger") as client, house.client(token=None) as nobody:
        saved = {
            line["public_id"]
            for offset in (0, 100)
            for line in (
                await client.get(
                    "/api/v1/disks", params={"scope": "saved", "limit": 100, "offset": offset}
                )
            ).json()["disks"]
        }
        assert len(saved) >= TEXTS // 2
        for number, item in enumerate(items):
            assert (await client.get(f"/api/v1/disks/{item.public_id}")).status_code == 200
            if number % 4 < 2:
                await house.app.disks.unpublish(house.owner, item.id)
            else:
                await house.app.library.delete(house.owner, item.id)
            for name in (item.id, item.public_id, item.entity_id):
                assert (await client.get(f"/api/v1/disks/{name}")).status_code == 404
            assert (await nobody.get(f"/d/{item.public_id}")).status_code == 404
            saved.discard(item.public_id)
            assert (await client.get("/api/v1/disks", params={"scope": "saved"})).json()[
                "total"
            ] == len(saved)
