"""What the web app was given is kept before it is read: nothing is lost, and nothing is there twice."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import hypothesis
import pytest
from hypothesis import strategies as st

from commonplace.app import open_app
from commonplace.core.items.drafts import Draft
from commonplace.core.transfer.markdown_folder import export_folder
from commonplace.errors import NotFound, StorageFailed
from commonplace.model import ItemFilter, JobState, Role, Scope, new_id, no_advance, now
from tests.interfaces.house import House, call_tool, open_house
from tests.interfaces.test_ingest import ARTICLE
from tests.interfaces.test_uploads import finish, send
from tests.interfaces.test_web_people import browser, csrf
from tests.webserver import WebServer, page, web_server

pytestmark = pytest.mark.anyio

NOTE = "Herons at the weir\n\nThe heron stands by the weir at dawn and waits for eels."


@pytest.fixture
def web() -> Iterator[WebServer]:
    with web_server() as server:
        server.pages |= {
            "/otters": page(ARTICLE),
            "/gone": page("Gone", status=404),
            "/busy": page("Busy", status=503),
        }
        yield server


@pytest.fixture
async def house(
    either_engine: dict[str, str], data_dir: Path, web: WebServer
) -> AsyncIterator[House]:
    async with open_house(data_dir, fetch_allow_hosts=web.host, **either_engine) as opened:
        yield opened


@pytest.fixture
async def visitor(house: House) -> AsyncIterator[httpx.AsyncClient]:
    """The owner's browser, as scripts on its pages ask."""
    async with await browser(house, house.owner.person_id) as client:
        client.headers.update({"X-CSRF-Token": await csrf(client), "Accept": "application/json"})
        yield client


@pytest.fixture
async def owner(house: House) -> AsyncIterator[httpx.AsyncClient]:
    async with house.client("owner") as client:
        yield client


async def add(visitor: httpx.AsyncClient, text: str, **form: str) -> str:
    answer = await visitor.post("/add", data={"text": text, **form})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


async def drop(
    visitor: httpx.AsyncClient, name: str, content: bytes, **body: Any
) -> httpx.Response:
    """As far as the page gets when it is closed after the last byte."""
    promised = await visitor.post(
        "/uploads", json={"name": name, "type": "text/plain", "size": len(content), **body}
    )
    assert promised.status_code == 200, promised.text
    return await visitor.put(promised.json()["url"], content=content)


async def read(owner: httpx.AsyncClient, item_id: str) -> Any:
    return (await owner.get(f"/api/v1/items/{item_id}")).json()


async def items(owner: httpx.AsyncClient) -> list[Any]:
    return list((await owner.get("/api/v1/items")).json()["items"])


async def found(owner: httpx.AsyncClient, query: str) -> list[str]:
    hits = (await owner.post("/api/v1/search", json={"query": query})).json()["results"]
    return [hit["item_id"] for hit in hits]


async def work(house: House) -> None:
    while await house.app.worker.run_once():
        pass


async def blobs(house: House) -> list[Path]:
    folder = house.app.settings.data_dir / "blobs" / "uploads"
    return [path for path in folder.rglob("*") if path.is_file()]


async def test_a_note_is_kept_before_it_is_read(
    house: House, visitor: httpx.AsyncClient, owner: httpx.AsyncClient
) -> None:
    red = house.folders["Red"]
    item_id = await add(visitor, NOTE, folder=red)
    before = await read(owner, item_id)
    assert (before["status"], before["status_reason"], before["folder_ids"]) == (
        "queued",
        None,
        [red],
    )
    assert await found(owner, "heron weir eels") == []
    said = await call_tool(owner, "list_recent", {})
    assert "queued" in said["result"]["content"][0]["text"]
    assert (
        "Status: queued"
        in (await call_tool(owner, "get_item", {"item_id": item_id}))["result"]["content"][0][
            "text"
        ]
    )
    await work(house)
    after = await read(owner, item_id)
    assert (after["status"], after["title"], after["word_count"] > 10) == (
        "ready",
        "Herons at the weir",
        True,
    )
    assert set(await found(owner, "heron weir eels")) == {item_id}


async def test_an_address_is_kept_before_it_is_fetched(
    house: House, visitor: httpx.AsyncClient, owner: httpx.AsyncClient, web: WebServer
) -> None:
    item_id = await add(visitor, f"{web.url}/otters")
    assert (await read(owner, item_id))["status"] == "queued"
    assert web.requests == []
    await work(house)
    after = await read(owner, item_id)
    assert (after["status"], after["title"], after["url"]) == (
        "ready",
        "About otters",
        f"{web.url}/otters",
    )
    assert set(await found(owner, "otter crayfish")) == {item_id}


async def test_a_file_is_queued_when_its_last_byte_arrives(
    house: House, visitor: httpx.AsyncClient, owner: httpx.AsyncClient
) -> None:
    blue = house.folders["Blue"]
    assert (await drop(visitor, "herons.txt", NOTE.encode(), folder=blue)).status_code == 200
    [item] = await items(owner)
    assert (item["title"], item["status"], item["folder_ids"]) == ("herons", "queued", [blue])
    await house.app.uploads.cleanup()
    assert len(await blobs(house)) == 1, "what is still to be read is not tidied away"
    await work(house)
    [item] = await items(owner)
    assert item["status"] == "ready"
    assert set(await found(owner, "heron weir eels")) == {item["id"]}
    assert len(await blobs(house)) == 1, "originals are kept by default"


async def test_a_folder_that_went_away_meanwhile_does_not_cost_the_file(
    house: House, visitor: httpx.AsyncClient, owner: httpx.AsyncClient
) -> None:
    promised = (
        await visitor.post(
            "/uploads",
            json={
                "name": "a.txt",
                "type": "text/plain",
                "size": len(NOTE),
                "folder": house.folders["Green"],
            },
        )
    ).json()
    await house.app.folders.delete(house.owner, house.folders["Green"])
    assert (await visitor.put(promised["url"], content=NOTE.encode())).status_code == 200
    assert [item["folder_ids"] for item in await items(owner)] == [[]]


async def test_bytes_that_arrived_before_a_crash_are_queued_at_the_next_start(
    house: House,
    visitor: httpx.AsyncClient,
    owner: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def crash(*_: object) -> None:
        raise RuntimeError("The process ends here.")

    for place in ("enqueue", "put"):  # after the bytes were stored, and before
        with monkeypatch.context() as patch:
            patch.setattr(
                house.app.queued_items if place == "enqueue" else house.app.uploads._blobs,
                place,
                crash,
            )
            assert (
                await drop(visitor, f"{place}.txt", f"{place}: {NOTE}".encode())
            ).status_code == 500
    assert await items(owner) == []
    await house.app.uploads.cleanup()
    assert sorted(item["title"] for item in await items(owner)) == ["enqueue", "put"]
    await work(house)
    await house.app.uploads.cleanup()
    assert {item["status"] for item in await items(owner)} == {"ready"}
    assert (len(await items(owner)), len(await blobs(house))) == (2, 2)


async def test_the_page_is_answered_though_queueing_failed_after_the_last_byte(
    house: House,
    visitor: httpx.AsyncClient,
    owner: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(*_: object) -> None:
        raise StorageFailed("The disk is full.")

    body = {"name": "note.txt", "type": "text/plain", "size": len(NOTE)}
    promised = (await visitor.post("/uploads", json=body)).json()
    with monkeypatch.context() as patch:
        patch.setattr(house.app.queued_items, "enqueue", fail)
        assert (await visitor.put(promised["url"], content=NOTE.encode())).status_code == 503
    answer = await visitor.post("/add", data={"upload": promised["upload"]})
    assert answer.status_code == 200, answer.text
    assert [item["id"] for item in await items(owner)] == [answer.json()["id"]]


async def test_a_queued_item_that_is_restored_gives_way_to_what_is_there_by_then(
    house: House, visitor: httpx.AsyncClient, owner: httpx.AsyncClient, web: WebServer
) -> None:
    queued = await add(visitor, f"{web.url}/otters")
    await owner.delete(f"/api/v1/items/{queued}")
    there = (
        await owner.post("/api/v1/ingest", json={"kind": "url", "url": f"{web.url}/otters"})
    ).json()["user_item_id"]
    await work(house)
    assert (await owner.get(f"/api/v1/items/{queued}")).status_code == 404
    await owner.post(f"/api/v1/trash/{queued}/restore")
    await work(house)
    assert (await read(owner, queued))["id"] == there
    assert [item["id"] for item in await items(owner)] == [there]


async def test_what_cannot_be_read_stays_and_says_why_until_it_is_retried(
    house: House, visitor: httpx.AsyncClient, owner: httpx.AsyncClient, web: WebServer
) -> None:
    item_id = await add(visitor, f"{web.url}/gone")
    await drop(visitor, "broken.pdf", b"%PDF-1.7 and then nothing")
    await work(house)
    failed = {item["title"]: item for item in await items(owner)}
    assert {item["status"] for item in failed.values()} == {"failed"}
    assert "404" in failed["gone"]["status_reason"]
    assert "PDF" in failed["broken"]["status_reason"]
    shown = (await visitor.get("/", headers={"Accept": "text/html"})).text
    assert "404" in shown and f'formaction="/items/{failed["gone"]["public_id"]}/retry"' in shown
    assert await house.app.store.jobs.lease("w", "ingest", limit=9, seconds=9) == [], (
        "final failures are not tried again"
    )
    web.pages["/gone"] = page(ARTICLE)
    again = (await owner.post(f"/api/v1/items/{item_id}/retry")).json()
    assert (again["status"], again["status_reason"]) == ("queued", None)
    await work(house)
    assert (await read(owner, item_id))["status"] == "ready"
    gone = f"/api/v1/items/{failed['broken']['id']}?permanent=true"
    assert (await owner.delete(gone)).status_code == 200
    await house.app.uploads.cleanup()
    assert await blobs(house) == []


async def test_a_server_that_is_busy_is_asked_again_later(
    house: House, visitor: httpx.AsyncClient, owner: httpx.AsyncClient, web: WebServer
) -> None:
    item_id = await add(visitor, f"{web.url}/busy")
    await work(house)
    assert (await read(owner, item_id))["status"] == "queued"
    [job] = await house.app.store.jobs.list_jobs(
        Scope(house.owner.library_id), states=[JobState.QUEUED], limit=9
    )
    assert (job.attempts, job.run_after > now()) == (0, True)
    assert "503" in (job.error or "")


async def test_what_is_added_twice_is_one_item(
    house: House, visitor: httpx.AsyncClient, owner: httpx.AsyncClient, web: WebServer
) -> None:
    for _ in range(2):  # unread, then read
        first = [await add(visitor, NOTE), await add(visitor, f"{web.url}/otters")]
        assert first == [await add(visitor, NOTE), await add(visitor, f"{web.url}/otters#top")]
        await asyncio.gather(
            *(drop(visitor, f"{n}.txt", b"A file that is sent three times over.") for n in range(3))
        )
        assert len(await items(owner)) == 3
        await work(house)
    assert {item["status"] for item in await items(owner)} == {"ready"}
    await house.app.uploads.cleanup()
    assert len(await blobs(house)) == 1, "of the same file, one is kept"


async def test_a_queued_source_that_others_add_meanwhile_ends_as_their_item(
    house: House, visitor: httpx.AsyncClient, owner: httpx.AsyncClient, web: WebServer
) -> None:
    red = house.folders["Red"]
    await drop(visitor, "file.txt", b"A file that is uploaded over REST as well.")
    [queued_file] = [item["id"] for item in await items(owner)]
    queued = [
        await add(visitor, NOTE, folder=red),
        await add(visitor, f"{web.url}/otters", folder=red),
        queued_file,
    ]
    title, _, _ = NOTE.partition("\n")
    theirs = [
        (await owner.post("/api/v1/ingest", json=body)).json()
        for body in (
            {"kind": "text", "title": title, "text": NOTE},
            {"kind": "url", "url": f"{web.url}/otters"},
        )
    ]
    theirs.append(
        (
            await finish(
                owner,
                await send(
                    house,
                    owner,
                    b"A file that is uploaded over REST as well.",
                    "file.txt",
                    "text/plain",
                ),
            )
        ).json()
    )
    assert [added["status"] for added in theirs] == ["ready"] * 3, (
        "reading within the call never waits for the queue"
    )
    assert {added["user_item_id"] for added in theirs}.isdisjoint(queued)
    await work(house)
    assert {item["id"] for item in await items(owner)} == {
        added["user_item_id"] for added in theirs
    }
    for item_id, added in zip(queued, theirs, strict=True):
        there = await read(owner, item_id)
        assert (there["id"], there["status"]) == (added["user_item_id"], "ready")
        assert there["folder_ids"] == ([red] if item_id != queued_file else [])
    await owner.delete(f"/api/v1/items/{queued[0]}")
    assert (await owner.get(f"/api/v1/items/{queued[0]}")).status_code == 404
    assert (await owner.get(f"/api/v1/items/{theirs[0]['user_item_id']}")).status_code == 404


async def test_the_ids_of_a_merged_item_lead_to_its_place_in_the_graph(
    house: House, visitor: httpx.AsyncClient, owner: httpx.AsyncClient, web: WebServer
) -> None:
    queued = await add(visitor, f"{web.url}/otters")
    public_id = (await read(owner, queued))["public_id"]
    there = (
        await owner.post("/api/v1/ingest", json={"kind": "url", "url": f"{web.url}/otters"})
    ).json()["user_item_id"]
    await work(house)
    assert (await read(owner, queued))["id"] == there
    for name in (queued, public_id, f"document_{public_id}"):
        assert (
            await visitor.get(f"/graph/{name}", headers={"Accept": "text/html"})
        ).status_code == 200
        for mode in ("related", "traverse", "dependencies"):
            asked, meant = [
                (await call_tool(owner, "explore", {"mode": mode, "entity_id": each}))["result"][
                    "structuredContent"
                ]
                for each in (name, there)
            ]
            assert asked | {"filters": {}} == meant | {"filters": {}}, (mode, name)
    wrong = await call_tool(owner, "explore", {"mode": "related", "entity_id": f"task_{public_id}"})
    assert wrong["error"]["data"] == {"error": "not_found"}


async def test_what_somebody_wrote_on_a_queued_item_is_not_merged_away(
    house: House, visitor: httpx.AsyncClient, owner: httpx.AsyncClient, web: WebServer
) -> None:
    item_id = await add(visitor, f"{web.url}/otters")
    await house.app.annotations.add(house.owner, item_id, "Ask Ann about this one.")
    await owner.post("/api/v1/ingest", json={"kind": "url", "url": f"{web.url}/otters"})
    await work(house)
    assert (await read(owner, item_id))["id"] == item_id
    assert [note.text for note in await house.app.annotations.of(house.owner, item_id)] == [
        "Ask Ann about this one."
    ]


async def test_changes_made_while_it_waits_stay(
    house: House, visitor: httpx.AsyncClient, owner: httpx.AsyncClient, web: WebServer
) -> None:
    item_id = await add(visitor, f"{web.url}/otters")
    changed = await owner.patch(
        f"/api/v1/items/{item_id}", json={"title": "My otters", "tags": ["rivers"]}
    )
    assert changed.status_code == 200, changed.text
    await work(house)
    after = await read(owner, item_id)
    assert (after["title"], after["tags"], after["status"]) == ("My otters", ["rivers"], "ready")
    await drop(visitor, "herons.md", f"# {NOTE}".encode())
    tagged = (await items(owner))[0]["id"]
    await owner.patch(f"/api/v1/items/{tagged}", json={"tags": ["birds"]})
    await work(house)
    after = await read(owner, tagged)
    assert (after["title"], after["tags"], after["status"]) == (
        "Herons at the weir",
        ["birds"],
        "ready",
    )


async def test_what_is_deleted_while_it_is_read_stays_deleted(
    house: House,
    visitor: httpx.AsyncClient,
    owner: httpx.AsyncClient,
    web: WebServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    item_id, fetch = await add(visitor, f"{web.url}/otters"), house.app.library._sources.read

    async def deleting(*args: Any, **options: Any) -> Any:
        source = await fetch(*args, **options)
        assert (await owner.delete(f"/api/v1/items/{item_id}")).status_code == 200
        return source

    monkeypatch.setattr(house.app.library._sources, "read", deleting)
    await work(house)
    assert (await items(owner), await found(owner, "otter crayfish")) == ([], [])
    with pytest.raises(NotFound):
        await house.app.library.read(house.owner, item_id)


async def test_an_unread_item_cannot_be_published_and_only_its_own_words_are_exported(
    house: House, visitor: httpx.AsyncClient, owner: httpx.AsyncClient, tmp_path: Path
) -> None:
    note, item_id = await add(visitor, NOTE), await add(visitor, "https://example.org/later")
    refused = await owner.post(f"/api/v1/disks/{item_id}/publish")
    assert (refused.status_code, "not been read" in refused.json()["message"]) == (422, True)
    assert (
        await export_folder(
            house.app.library,
            house.app.versions,
            house.app.folders,
            house.owner,
            tmp_path / "out",
            no_advance,
        )
        == 1
    )
    [exported] = (tmp_path / "out").glob("*.md")
    assert NOTE in exported.read_text() and note in exported.read_text()
    page_of_it = await visitor.get(f"/items/{item_id}", headers={"Accept": "text/html"})
    assert (page_of_it.status_code, "Queued" in page_of_it.text) == (200, True)


async def test_a_backup_carries_what_is_unread(
    house: House, visitor: httpx.AsyncClient, owner: httpx.AsyncClient, tmp_path: Path
) -> None:
    note = await add(visitor, NOTE)
    await drop(visitor, "herons.txt", NOTE.encode())
    await house.app.store.dump(tmp_path / "backup")
    await house.app.store.load(tmp_path / "backup", replace=True)
    assert (await read(owner, note))["status"] == "queued"
    await work(house)
    assert [item["status"] for item in await items(owner)] == ["ready"] * 2


async def test_somebody_who_was_removed_meanwhile_adds_nothing(
    house: House, owner: httpx.AsyncClient
) -> None:
    await house.join("Bob")
    [bob] = [member for member in await house.app.members.all(house.owner) if member.name == "Bob"]
    session = await house.app.accounts.open_session(
        bob.person_id, "test", library_id=house.owner.library_id
    )
    async with await browser(house) as client:
        client.cookies.set("commonplace_8642", session, domain="127.0.0.1")
        client.headers.update({"X-CSRF-Token": await csrf(client), "Accept": "application/json"})
        promised = (
            await client.post(
                "/uploads", json={"name": "a.txt", "type": "text/plain", "size": len(NOTE)}
            )
        ).json()
        await house.app.members.change_role(house.owner, bob.person_id, Role.VIEWER)
        assert (await client.put(promised["url"], content=NOTE.encode())).status_code == 403
    await house.app.uploads.cleanup()
    assert await items(owner) == []


STEPS = st.lists(
    st.tuples(st.sampled_from(["web", "rest", "read"]), st.sampled_from(["note", "file", "page"])),
    min_size=6,
    max_size=12,
)


@hypothesis.settings(max_examples=hypothesis.settings.default.max_examples // 3)
@hypothesis.given(STEPS)
@pytest.mark.parametrize("house", ["sqlite"], indirect=True)
async def test_in_any_order_each_source_is_one_item_and_each_id_that_was_given_works(
    house: House,
    visitor: httpx.AsyncClient,
    owner: httpx.AsyncClient,
    web: WebServer,
    steps: list[tuple[str, str]],
) -> None:
    run, given = new_id(), dict[str, set[str]]()
    before = {item["id"] for item in await all_items(owner)}
    for by, kind in steps:
        text, path = f"The {kind} of {run}: the heron stands by the weir at dawn.", f"/{run}"
        web.pages[path] = page(ARTICLE.replace("About otters", f"About {run}"))
        if by == "read":
            await house.app.worker.run_once()
        elif kind == "file" and by == "web":
            there = {item["id"] for item in await all_items(owner)}
            await drop(visitor, "a.txt", text.encode())
            given.setdefault(kind, set()).update(
                {item["id"] for item in await all_items(owner)} - there
            )
        elif kind == "file":
            sent = await finish(
                owner, await send(house, owner, text.encode(), "a.txt", "text/plain")
            )
            given.setdefault(kind, set()).add(sent.json()["user_item_id"])
        elif by == "web":
            given.setdefault(kind, set()).add(
                await add(visitor, text if kind == "note" else web.url + path)
            )
        else:
            body = (
                {"kind": "text", "title": text[:120], "text": text}
                if kind == "note"
                else {"kind": "url", "url": web.url + path}
            )
            sent = await owner.post("/api/v1/ingest", json=body)
            assert sent.json()["status"] == "ready"
            given.setdefault(kind, set()).add(sent.json()["user_item_id"])
    await work(house)
    after = {
        item["id"]: item["status"] for item in await all_items(owner) if item["id"] not in before
    }
    assert (len(after), set(after.values()) <= {"ready"}) == (len(given), True)
    for ids in given.values():
        assert len({(await read(owner, item_id))["id"] for item_id in ids}) == 1


async def all_items(owner: httpx.AsyncClient) -> list[Any]:
    first = (await owner.get("/api/v1/items", params={"per_page": 100})).json()
    more = [
        (await owner.get("/api/v1/items", params={"per_page": 100, "page": n})).json()["items"]
        for n in range(2, -(-first["total"] // 100) + 1)
    ]
    return [*first["items"], *(item for lot in more for item in lot)]


async def test_one_library_with_many_adds_does_not_keep_others_waiting(house: House) -> None:
    unread = house.app.queued_items
    for n in range(20):
        await unread.submit(house.owner, Draft("text", f"Mine {n}", f"Note {n}. {NOTE}"))
    theirs = (await unread.submit(house.stranger, Draft("text", "Theirs", NOTE))).item.id
    lease = house.app.store.jobs.lease
    await lease("first", "ingest", limit=1, seconds=60)
    [second] = await lease("second", "ingest", limit=1, seconds=60)
    assert second.item_id == theirs


async def test_finalizing_again_answers_with_the_first_answer(
    house: House, owner: httpx.AsyncClient
) -> None:
    long = "\n\n".join(
        f"# Part {n}\n\n{'The heron stands by the weir. ' * 60}" for n in range(20)
    ).encode()
    upload = await send(house, owner, long, "long.md", "text/markdown")
    first = await finish(owner, upload)
    assert first.json()["job_id"], "a job is left to do"
    await work(house)
    assert (await finish(owner, upload)).json() == first.json()
    copy = await send(house, owner, long, "copy.md", "text/markdown")
    known = await finish(owner, copy)
    assert known.json()["user_item_id"] == first.json()["user_item_id"]
    assert (await finish(owner, copy)).json() == known.json()


async def test_two_replicas_that_finalize_one_upload_give_one_answer(
    house: House, owner: httpx.AsyncClient
) -> None:
    caller = await house.app.access.identify(house.tokens["owner"])
    async with open_app(house.app.settings) as other:
        for n in range(3):
            upload = await send(
                house, owner, f"File {n}. {NOTE}".encode(), f"{n}.txt", "text/plain"
            )
            both = await asyncio.gather(
                *(app.uploads.finish(caller, upload) for app in (house.app, other))
            )
            assert (
                len(
                    {
                        (added.status, added.item.id, added.item.content_id, added.job_id)
                        for added in both
                    }
                )
                == 1
            )
    assert (await house.app.library.page(house.owner, ItemFilter()))[1] == 3


async def test_a_crash_in_finalize_leaves_an_item_and_its_answer_or_neither(
    house: House, owner: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def crash(*_: object) -> None:
        raise RuntimeError("The process ends here.")

    upload = await send(house, owner, NOTE.encode(), "herons.txt", "text/plain")
    with monkeypatch.context() as patch:
        for part, verb in (
            (house.app.store.uploads, "finish"),
            (house.app.originals, "settle"),
        ):
            patch.setattr(part, verb, crash)
        assert (await finish(owner, upload)).status_code == 500
    [item] = await items(owner)
    again = await finish(owner, upload)
    assert (again.json()["user_item_id"], again.json()["status"]) == (item["id"], "ready")
    assert (await finish(owner, upload)).json() == again.json()
    assert len(await items(owner)) == 1
