"""An embedder that is down delays vectors and says so; what can never succeed is given up after some attempts."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from commonplace.adapters.embed.service import OpenAIEmbedder, RemoteEmbedder
from commonplace.core.ingest import pipeline
from commonplace.core.ingest.pipeline import TransformJobs
from commonplace.core.jobs import worker
from commonplace.core.search import search
from commonplace.model import JobState
from tests.embedding_service import EmbeddingService, embedding_service
from tests.interfaces.house import House, call_tool, open_house
from tests.stub_service import KEY, Mishap

pytestmark = pytest.mark.anyio

TURNS = 3 * worker.ATTEMPTS


@pytest.fixture
def service() -> Iterator[EmbeddingService]:
    with embedding_service() as service:
        yield service


@pytest.fixture
async def house(
    data_dir: Path, service: EmbeddingService, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[House]:
    """A server whose embedder is a service, and that waits for nothing."""
    monkeypatch.setitem(RemoteEmbedder.__init__.__kwdefaults__, "pauses", ())
    for name in ("SHORTEST_PAUSE", "LONGEST_PAUSE", "LONGEST_WAIT"):
        monkeypatch.setattr(worker, name, 0)
    monkeypatch.setattr(search, "RECHECK_SECONDS", -1)
    async with open_house(
        data_dir, embedder="openai", embedder_url=f"{service.url}/v1", embedder_key=KEY
    ) as house:
        yield house


def take_down(service: EmbeddingService) -> None:
    service.mishaps += [Mishap(503)] * 100_000


async def coverage(house: House) -> tuple[int, int]:
    return await house.app.store.sections.coverage(house.owner.scope, house.app.embedder.stamp)


async def degraded(house: House, character: str) -> str | None:
    """What the search of this token says; its own question is answered."""
    async with house.client(character) as client:
        answer = (await client.post("/api/v1/search", json={"query": "zebra"})).json()
    said: str | None = answer["degraded"]
    return said


async def ready(house: House) -> Any:
    async with house.client() as nobody:
        return (await nobody.get("/readyz")).json()


async def work_off(house: House) -> None:
    while await house.app.worker.run_once():
        pass


async def test_vectors_are_made_however_long_the_embedder_was_down(
    house: House, service: EmbeddingService
) -> None:
    await work_off(house)
    take_down(service)
    for n in range(70):  # more than a worker takes at once
        await house.add(f"Zebra {n}")
    for _ in range(TURNS):
        await house.app.worker.run_once()
    jobs = await house.app.store.jobs.list_jobs(
        house.owner.scope, states=list(JobState), kinds=["embed"], limit=200
    )
    waiting = [job for job in jobs if job.state is not JobState.DONE]
    assert {(job.state, job.attempts) for job in waiting} == {(JobState.QUEUED, 0)} and len(
        waiting
    ) == 70
    assert "HTTP 503" in str(waiting[0].error)
    done, total = await coverage(house)
    assert total - done == 70
    service.mishaps.clear()
    await work_off(house)
    assert await coverage(house) == (total, total)


async def test_an_outage_costs_few_requests(house: House, service: EmbeddingService) -> None:
    """One for all that were taken up together, and one to see whether it was the fault of the first."""
    await work_off(house)
    take_down(service)
    for n in range(60):
        await house.add(f"Zebra {n}")
    before = len(service.bodies)
    await house.app.worker.run_once()
    assert len(service.bodies) - before == 2


async def test_it_is_said_what_waits_for_the_embedder(
    house: House, service: EmbeddingService
) -> None:
    await work_off(house)
    assert await degraded(house, "owner") is None and (await ready(house))["degraded"] is None
    take_down(service)
    for n in range(3):
        await house.add(f"Zebra {n}", folder="Red" if n else "Green")
    await house.app.worker.run_once()
    service.mishaps.clear()  # it answers questions, but nothing was done again yet
    said = await degraded(house, "owner")
    assert said is not None and said.startswith(
        "Semantic search is incomplete: 3 items are waiting for the embedder ("
    )
    assert "HTTP 503" in said
    public = await ready(house)
    assert public.keys() == {"status", "embedder", "degraded"}, (
        "no counts for those without a token"
    )
    assert (
        public["degraded"].startswith("Semantic search is incomplete: items are waiting")
        and "503" not in public["degraded"]
    )
    assert (await house.app.overview.report(house.owner)).incomplete == said
    one = await degraded(house, "one_folder")
    assert one is not None and "2 items are" in one, "a token of a folder counts what it sees"
    await work_off(house)
    assert await degraded(house, "owner") is None and (await ready(house))["degraded"] is None


async def test_a_folders_token_is_not_told_what_waits_elsewhere(
    house: House, service: EmbeddingService
) -> None:
    await work_off(house)
    take_down(service)
    await house.add("Zebra", folder="Green")
    await house.app.worker.run_once()
    service.mishaps.clear()
    assert await degraded(house, "one_folder") is None
    assert await degraded(house, "owner") is not None


async def test_sections_without_vectors_and_without_a_job_are_found(house: House) -> None:
    for n in range(3):
        await house.add(f"Zebra {n}")
    await work_off(house)
    done, total = await coverage(house)
    assert done == total > 0
    await house.app.store._db.write(lambda tx: tx.run("DELETE FROM vectors"))  # type: ignore[attr-defined]
    working = asyncio.create_task(house.app.worker.run())
    async with asyncio.timeout(60):
        while await coverage(house) != (total, total):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    working.cancel()
    assert await house.app.store.jobs.enqueue_missing() == (0, ("", ""))


async def test_what_the_service_refuses_fails_with_the_reason_and_harms_no_other(
    house: House, service: EmbeddingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    await work_off(house)
    take_down(service)
    for n in range(5):
        await house.add(f"Zebra {n}")
    service.mishaps.clear()
    answer = service.answer
    monkeypatch.setattr(
        service,
        "answer",
        lambda path, body: answer("", {}) if "Zebra 3" in str(body) else answer(path, body),
    )
    for _ in range(TURNS):
        await house.app.worker.run_once()
    jobs = await house.app.store.jobs.list_jobs(
        house.owner.scope, states=[JobState.FAILED, JobState.QUEUED], limit=20
    )
    [failed] = [job for job in jobs if job.kind == "embed"]
    assert (failed.state, failed.attempts) == (
        JobState.FAILED,
        worker.ATTEMPTS,
    ) and "HTTP 400" in str(failed.error)
    done, total = await coverage(house)
    assert total - done == 1
    assert await house.app.store.jobs.enqueue_missing() == (0, ("", "")), (
        "what has failed for good is not tried again unasked"
    )


async def test_an_unforeseen_failure_of_any_job_is_bounded(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of a handler that does not say what became of its jobs."""
    await work_off(house)
    await house.add("Zebra", text="The zebra grazes by the river. " * 2_000)

    async def fail(*args: Any) -> Any:
        raise RuntimeError("a bug")

    monkeypatch.setattr(TransformJobs, "_try", fail)
    for _ in range(TURNS):
        await house.app.worker.run_once()
    [job] = await house.app.store.jobs.list_jobs(
        house.owner.scope, states=[JobState.FAILED], kinds=["transform"], limit=9
    )
    assert (
        job.attempts == worker.ATTEMPTS
        and job.error == "Unexpected RuntimeError. See the server's log for details."
    )


async def test_calls_do_not_wait_for_an_embedder_that_hangs(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(*_: Any) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr(pipeline, "CALL_SECONDS", 0.05)
    with monkeypatch.context() as patch:
        patch.setattr(OpenAIEmbedder, "documents", hang)
        async with house.client("owner") as client:
            for tool, arguments in (
                (
                    "add_to_knowledge",
                    {"kind": "text", "title": "Herons", "text": "The heron stands by the weir."},
                ),
                (
                    "remember",
                    {"title": "Weir", "content": "The weir is opened in May.", "kind": "decision"},
                ),
                ("reflect", {"content": "We decided to open the weir in May."}),
            ):
                async with asyncio.timeout(60):
                    assert "result" in await call_tool(client, tool, arguments), tool
    assert await degraded(house, "owner") is not None, "their vectors are left to jobs"


async def test_a_context_pack_goes_by_words(house: House, service: EmbeddingService) -> None:
    await house.add("Zebras", text="The zebra grazes by the river at dawn.")
    await house.add("Bread", text="The dough rests overnight.")
    take_down(service)
    for goal, titles in (("where does the zebra graze", ["Zebras"]), ("paint the fence", [])):
        async with house.client("owner") as client:
            pack = (await client.post("/api/v1/memory/context", json={"goal": goal})).json()
        shown = [line["title"] for part in pack["sections"] for line in part["items"]]
        assert shown == titles and "by keyword only" in pack["degraded"]
