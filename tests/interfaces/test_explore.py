"""Exploring and joining entities, over MCP and REST."""

from typing import Any

import httpx
import pytest

from commonplace.interfaces.actions.shapes import compact
from commonplace.model import Relation
from tests.interfaces.house import House, call_tool

pytestmark = pytest.mark.anyio


async def entity(
    house: House,
    title: str,
    entity_type: str = "episode",
    *,
    folder: str | None = None,
    **changes: Any,
) -> str:
    """Its entity id."""
    item_id, _ = await house.add(title, folder=folder)
    item = (await house.app.library.read(house.owner, item_id)).item
    await house.app.store.items.update(
        house.owner.scope,
        item_id,
        {"entity_type": entity_type, **changes},
        expected_revision=None,
        sections=None,
        stamp=house.app.embedder.stamp,
        jobs=[],
    )
    return f"{entity_type}_{item.public_id}"


async def join(house: House, *edges: tuple[str, str, str]) -> None:
    ids = {
        name: (await house.app.library.read(house.owner, name)).item.id
        for a, _, b in edges
        for name in (a, b)
    }
    await house.app.store.relations.put(
        house.owner.scope,
        [Relation(house.owner.library_id, ids[a], kind, ids[b]) for a, kind, b in edges],
    )


async def explore(client: httpx.AsyncClient, **arguments: Any) -> Any:
    answer = await call_tool(client, "explore", arguments, path="/mcp/graph")
    assert "error" not in answer, answer
    return answer["result"]["structuredContent"]


async def refused(client: httpx.AsyncClient, **arguments: Any) -> tuple[int, str]:
    error = (await call_tool(client, "explore", arguments))["error"]
    return error["code"], error["message"]


def alike(full: Any, brief: Any) -> tuple[Any, Any]:
    """Return the parts that a full and a brief answer share, times to the second."""
    if isinstance(full, dict):
        both = {name: alike(full[name], brief[name]) for name in full if name in brief}
        return {n: pair[0] for n, pair in both.items()}, {n: pair[1] for n, pair in both.items()}
    if isinstance(full, list):
        pairs = [alike(*pair) for pair in zip(full, brief, strict=True)]
        return [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    is_time = isinstance(full, str) and full[10:11] == "T"
    return (full[:19], brief[:19]) if is_time else (full, brief)


def names(answer: Any) -> list[str]:
    return [found["title"] for found in answer["entities"]]


async def test_list_by_type_project_and_status_newest_first(
    house: House, owner: httpx.AsyncClient
) -> None:
    project, other = await entity(house, "Auth", "project"), await entity(house, "Other", "project")
    first = await entity(house, "First", "task", status="todo")
    second, third = (
        await entity(house, "Second", "task", status="doing"),
        await entity(house, "Third", "task", status="done"),
    )
    await join(
        house,
        (first, "BELONGS_TO", project),
        (second, "BELONGS_TO", project),
        (third, "BELONGS_TO", other),
    )
    answer = await explore(owner, mode="list", types=["project"])
    assert (names(answer), answer["total"], answer["has_more"]) == (["Other", "Auth"], 2, False)
    assert answer["entities"][1]["id"] == project and answer["entities"][1]["type"] == "project"
    assert names(await explore(owner, types=["task"], project=project)) == ["Second", "First"]
    assert names(await explore(owner, types=["task"], status="doing")) == ["Second"]
    assert names(await explore(owner, status="todo,done")) == ["Third", "First"]
    page = await explore(owner, types=["task"], limit=2)
    assert (names(page), page["total"], page["has_more"]) == (["Third", "Second"], 3, True)
    rest = await explore(owner, types=["task"], limit=2, offset=2)
    assert (names(rest), rest["has_more"]) == (["First"], False)


async def test_related_says_how_and_traverse_how_far(
    house: House, owner: httpx.AsyncClient
) -> None:
    a, b, c, d = [await entity(house, name) for name in "abcd"]
    await join(house, (a, "REQUIRES", b), (c, "SUPPORTS", a), (b, "RELATED_TO", d))
    related = await explore(owner, mode="related", entity_id=a)
    assert {
        found["title"]: (found["relationship"], found["direction"], found["distance"], found["via"])
        for found in related["entities"]
    } == {"b": ("REQUIRES", "outgoing", 1, a), "c": ("SUPPORTS", "incoming", 1, a)}
    assert {(r["from"], r["type"], r["to"]) for r in related["relations"]} == {
        (a, "REQUIRES", b),
        (c, "SUPPORTS", a),
    }
    assert names(
        await explore(owner, mode="related", entity_id=a, relationship_types=["SUPPORTS"])
    ) == ["c"]
    far = await explore(owner, mode="traverse", entity_id=a, depth=2)
    assert {found["title"]: found["distance"] for found in far["entities"]} == {
        "b": 1,
        "c": 1,
        "d": 2,
    }
    assert (far["entity"]["id"], far["total"], "truncated" in far) == (a, 3, False)
    assert far["mode"] == "traverse"


async def test_dependencies_come_in_the_order_to_do_them_and_cycles_are_named(
    house: House, owner: httpx.AsyncClient
) -> None:
    a, b, c, d = [await entity(house, name, "task", status="todo") for name in "abcd"]
    await join(
        house,
        (a, "DEPENDS_ON", b),
        (a, "DEPENDS_ON", c),
        (b, "DEPENDS_ON", d),
        (c, "DEPENDS_ON", d),
    )
    answer = await explore(owner, mode="dependencies", entity_id=a)
    order = names(answer)
    assert order[0] == "d" and order[-1] == "a" and set(order) == set("abcd")
    assert (
        {found["title"]: found["distance"] for found in answer["entities"]},
        answer["cycles"],
    ) == ({"a": 0, "b": 1, "c": 1, "d": 2}, [])
    ids = [(await house.app.library.read(house.owner, name)).item.id for name in (d, a)]
    # What is refused at every door may still come in a backup of an older version.
    await house.app.store._db.write(
        lambda tx: tx.run(  # type: ignore[attr-defined]
            """INSERT INTO relations (library_id, from_id, kind, to_id, weight, explicit, created_at)
           VALUES (:library_id, :a, 'DEPENDS_ON', :b, 1, 1, 0)""",
            library_id=house.owner.library_id,
            a=ids[0],
            b=ids[1],
        )
    )
    again = await explore(owner, mode="dependencies", entity_id=a)
    assert set(names(again)) == set("abcd")
    assert again["cycles"] and all(
        cycle[0] == cycle[-1] and {a, d} < set(cycle) for cycle in again["cycles"]
    )
    assert {
        item.title for cycle in await house.app.graph.cycles(house.owner.scope) for item in cycle
    } >= {"a", "d"}


async def test_what_cannot_be_asked_is_said_in_words(
    house: House, owner: httpx.AsyncClient
) -> None:
    there = await entity(house, "there")
    for arguments, code, words in (
        ({"mode": "related"}, -32602, "entity_id required"),
        ({"mode": "dependencies"}, -32602, "entity_id required"),
        ({"mode": "list", "entity_id": "task_zzzzzzzzzzzz"}, -32602, "mode=list"),
        ({"mode": "fly"}, -32602, "list, related, traverse or dependencies"),
        ({"types": ["fish"]}, -32602, "types"),
        ({"mode": "traverse", "entity_id": there, "depth": 4}, -32602, "at most 3"),
        ({"mode": "traverse", "entity_id": there, "depth": 0}, -32602, "at least 1"),
        (
            {"mode": "related", "entity_id": there, "relationship_types": ["LIKES"]},
            -32602,
            "relationship_types",
        ),
        ({"status": "lost"}, -32602, "todo"),
        ({"limit": 201}, -32602, "at most 200"),
        ({"limit": 0}, -32602, "limit"),
        ({"project": there}, -32602, "is an episode, not a project"),
        ({"epic": there}, -32602, "Unknown field"),
        ({"mode": "related", "entity_id": "task_nowhere"}, -32603, "No entity 'task_nowhere'."),
        ({"project": "project_nowhere"}, -32602, "No project 'project_nowhere'."),
    ):
        found = await refused(owner, **arguments)
        assert found[0] == code and words in found[1], (arguments, found)


async def test_no_hop_leads_out_of_scope(house: House, owner: httpx.AsyncClient) -> None:
    a, c = await entity(house, "a", folder="Red"), await entity(house, "c", folder="Red")
    b = await entity(house, "b", folder="Green")
    await join(house, (a, "RELATED_TO", b), (b, "RELATED_TO", c))
    assert names(await explore(owner, mode="traverse", entity_id=a, depth=2)) == ["b", "c"]
    async with house.client("one_folder") as client:
        for mode in ("related", "traverse", "dependencies"):
            answer = await explore(client, mode=mode, entity_id=a, depth=3)
            assert (
                set(names(answer)) <= {"a"} and answer["total"] <= 1 and not answer.get("relations")
            )
            assert b not in str(answer) and c not in str(answer)
        assert set(names(await explore(client))) == {"a", "c"}
        relations = (await client.get(f"/api/entities/{a}/relations")).json()
        assert (relations["relations"], relations["total"]) == ([], 0)
        for method in ("POST", "DELETE"):
            response = await client.request(
                method,
                f"/api/entities/{a}/relations",
                **({"json": {"to": b}} if method == "POST" else {"params": {"to": b}}),
            )  # type: ignore[arg-type]
            told = response.status_code, response.json()["message"]
            assert told == (404, f"No entity {b!r}.")


async def test_entities_are_linked_listed_and_unlinked(
    house: House, owner: httpx.AsyncClient
) -> None:
    a, b = (
        await entity(house, "a", "task", status="todo"),
        await entity(house, "b", "task", status="todo"),
    )
    path = f"/api/entities/{a}/relations"
    made = await owner.post(path, json={"to": b, "type": "DEPENDS_ON"})
    assert (made.status_code, made.json()["from"], made.json()["to"]) == (201, a, b)
    assert (
        await owner.post(path, json={"to": b.partition("_")[2], "type": "DEPENDS_ON"})
    ).status_code == 200
    listed = (await owner.get(path)).json()
    assert [(r["from"], r["type"], r["to"], r["explicit"]) for r in listed["relations"]] == [
        (a, "DEPENDS_ON", b, True)
    ]
    assert (names(listed), listed["total"], listed["has_more"]) == (["b"], 1, False)
    assert (await owner.get(path, params={"relationship_types": "REQUIRES"})).json()[
        "relations"
    ] == []
    back = await owner.post(f"/api/entities/{b}/relations", json={"to": a, "type": "DEPENDS_ON"})
    assert (back.status_code, back.json()["cycle"]) == (422, ["b", "a", "b"])
    assert "b -> a -> b" in back.json()["message"]
    gone = {"to": b, "type": "DEPENDS_ON"}
    assert (await owner.delete(path, params=gone)).json() == {"ok": True}
    assert (await owner.delete(path, params=gone)).status_code == 404
    assert (await owner.get(path)).json()["relations"] == []


async def test_what_cannot_be_joined(house: House, owner: httpx.AsyncClient) -> None:
    task, note = await entity(house, "task", "task"), await entity(house, "note")
    for one, other, kind, words in (
        (note, note, "RELATED_TO", "itself"),
        (task, note, "DEPENDS_ON", "note is an episode"),
        (note, task, "DEPENDS_ON", "note is an episode"),
        (task, note, "BELONGS_TO", "not a project"),
        (task, note, "PART_OF", "not an epic"),
    ):
        response = await owner.post(
            f"/api/entities/{one}/relations", json={"to": other, "type": kind}
        )
        assert response.status_code == 422 and words in response.json()["message"], response.text
    assert (
        await owner.post(f"/api/entities/{note}/relations", json={"to": task, "type": "LIKES"})
    ).status_code == 422
    assert (await owner.get(f"/api/entities/{note}/relations")).json()["total"] == 0


async def test_rest_explores_as_mcp_does(house: House, owner: httpx.AsyncClient) -> None:
    a, b = await entity(house, "a", "task", status="todo"), await entity(house, "b", "pattern")
    await join(house, (a, "REQUIRES", b))
    for arguments in (
        {"mode": "list", "types": ["task", "pattern"], "limit": 1},
        {"mode": "related", "entity_id": a},
        {"mode": "traverse", "entity_id": b, "depth": 3, "relationship_types": ["REQUIRES"]},
    ):
        by_rest = (await owner.get("/api/explore", params=arguments)).json()
        by_mcp = await explore(owner, **arguments)
        one, other = alike(compact(by_rest), by_mcp)
        assert one == other and one["entities"] and {"id", "title"} <= one["entities"][0].keys()
    assert (await owner.get("/api/explore", params={"mode": "related"})).status_code == 422


async def test_what_is_deleted_is_gone_from_every_walk(
    house: House, owner: httpx.AsyncClient
) -> None:
    a, b, c = [await entity(house, name, "task") for name in "abc"]
    await join(house, (a, "DEPENDS_ON", b), (b, "DEPENDS_ON", c))
    await house.app.library.delete(house.owner, b)
    assert names(await explore(owner, mode="traverse", entity_id=a, depth=3)) == []
    assert names(await explore(owner, mode="dependencies", entity_id=a)) == ["a"]
    assert sorted(names(await explore(owner, types=["task"]))) == ["a", "c"]
    code, _ = await refused(owner, mode="related", entity_id=b)
    assert code == -32603
