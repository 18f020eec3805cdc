"""Adding entities: what is refused, what is kept, how it is joined, and what the answer says."""

import pytest

from commonplace.core.entities.candidates import JUDGED as CANDIDATES
from commonplace.core.entities.validation import CHECKS, NewEntity, since
from commonplace.errors import CapabilityDenied, Invalid
from commonplace.interfaces.actions.registry import ACTIONS
from commonplace.model import AUTHORED, EntityType, ItemFilter, Kind, Scope, now
from commonplace.text import front_matter
from tests.interfaces.conftest import OpenHouse
from tests.interfaces.house import House

pytestmark = pytest.mark.anyio


async def project(house: House, title: str = "Auth System") -> str:
    added = await house.app.entities.add(
        house.owner, NewEntity(title, "Backend services.", "project"), sync=True
    )
    return added.item.entity_id


async def count(house: House) -> int:
    return (
        await house.app.store.items.list_page(house.owner.scope, ItemFilter(), limit=1, offset=0)
    )[1]


@pytest.mark.parametrize("name", AUTHORED)
def test_every_authored_field_is_taken_checked_changed_and_exported(name: str) -> None:
    assert name in NewEntity.__dataclass_fields__ and name in CHECKS
    everywhere = ("add", "add_entity", "add_task", "add_epic", "update_entity", "update_task")
    of_memories = ("remember", "update_entity")
    for action in of_memories if name in ("valid_until", "review_by") else everywhere:
        assert name in ACTIONS[action].input.model_fields, action
    assert name in {"tags", *front_matter.FIELDS, *front_matter.ENTITY_FIELDS}


@pytest.mark.parametrize(
    ("new", "sentence"),
    [
        (NewEntity("", "text"), "Title cannot be empty"),
        (NewEntity(" \n", "text"), "Title cannot be empty"),
        (NewEntity("Title", " "), "Content cannot be empty"),
        (NewEntity("x" * 201, "text"), "Title has 201 characters; it may have 200"),
        (NewEntity("Title", "x" * 50_001), "Content has 50,001 characters; it may have 50,000"),
        (NewEntity("Title", "text", "task"), "Tasks require a project"),
        (NewEntity("Title", "text", "epic"), "Epics require a project"),
        (NewEntity("Title", "text", "document"), "add_to_knowledge"),
        (NewEntity("Title", "text", "rule"), "Unknown entity_type 'rule'"),
        (NewEntity("Title", "text", priority="urgent"), "Unknown priority 'urgent'"),
        (NewEntity("Title", "text", due_date="2026-02-30"), "not an ISO date"),
        (NewEntity("Title", "text", due_date="tomorrow"), "not an ISO date"),
        (
            NewEntity("Title", "text", "task", project="project_zzzzzzzzzzzz"),
            "No project 'project_zzzzzzzzzzzz'.",
        ),
        (
            NewEntity("Title", "text", related_to=("episode_zzzzzzzzzzzz",)),
            "There is no entity 'episode_zzzzzzzzzzzz'",
        ),
        (
            NewEntity("Title", "text", related_to=("likes:episode_zzzzzzzzzzzz",)),
            "Unknown relation 'likes'",
        ),
        (
            NewEntity("Title", "text", depends_on=("task_zzzzzzzzzzzz",)),
            "Only tasks and epics can depend on tasks",
        ),
        (
            NewEntity("Title", "text", repository_url="https://example.org/a"),
            "Only projects have a repository_url",
        ),
        (NewEntity("Title", "text", tags=(" ",)), "`tags` takes texts of 1 to 100 characters"),
        (NewEntity("Title", "text", metadata={"a": float("nan")}), "JSON cannot represent"),
        (NewEntity("Title", "text", metadata={"a": [2**70]}), "more than 64 bits"),
        (NewEntity("Title", "text", metadata={"a": "\0"}), "NUL characters"),
        (NewEntity("Title", "text", metadata={"a": "x" * 20_000}), "20,000 characters as JSON"),
    ],
)
async def test_what_is_wrong_is_refused_in_words_and_nothing_is_kept(
    house: House, new: NewEntity, sentence: str
) -> None:
    with pytest.raises(Invalid) as refusal:
        await house.app.entities.add(house.owner, new)
    assert sentence in refusal.value.message
    assert await count(house) == 0


@pytest.mark.parametrize(
    "entity_type", [kind for kind in EntityType if kind != EntityType.DOCUMENT]
)
async def test_every_type_is_kept_and_found_at_once(house: House, entity_type: str) -> None:
    within = await project(house) if entity_type in ("task", "epic") else None
    added = await house.app.entities.add(
        house.owner,
        NewEntity("Otter census", "Count the otters at dawn.", entity_type, project=within),
        sync=True,
    )
    assert added.item.entity_id == f"{entity_type}_{added.item.public_id}"
    assert added.message == "Added: Otter census"
    found = await house.app.search.search(house.owner, "otters")
    assert added.item.id in [hit.passage.item_id for hit in found.hits]
    entity = await house.app.entities.get(house.owner, added.item.entity_id)
    assert entity.text == "Count the otters at dawn."
    assert entity.item.status == {"task": "todo", "epic": "planning"}.get(entity_type, "")
    assert entity.item.priority == ("medium" if within else "")
    assert (entity.project.entity_id if entity.project else None) == within


async def test_two_entities_with_one_title_and_one_text_are_two(house: House) -> None:
    one, two = [
        await house.app.entities.add(house.owner, NewEntity("Same", "The same words."), sync=True)
        for _ in range(2)
    ]
    assert one.item.id != two.item.id
    assert one.conflicts == ()
    assert [(found.item_id, found.score, found.kind) for found in two.conflicts] == [
        (one.item.id, 1.0, "duplicate")
    ]


async def test_a_task_says_what_it_hangs_on(house: House) -> None:
    within = await project(house)
    add, owner = house.app.entities.add, house.owner
    epic = (
        await add(owner, NewEntity("OAuth", "All of it.", "epic", project=within), sync=True)
    ).item
    first = (
        await add(owner, NewEntity("Fix login", "Broken.", "task", project=within), sync=True)
    ).item
    idea = (await add(owner, NewEntity("Idea", "Passkeys perhaps.", "idea"), sync=True)).item
    task = (
        await add(
            owner,
            NewEntity(
                "Implement GitHub OAuth callback",
                "Handle the callback.",
                "task",
                project=within,
                priority="high",
                epic=epic.public_id,
                depends_on=(first.id, first.entity_id),
                related_to=(idea.public_id, f"supports:{epic.id}"),
                due_date="2026-03-31",
                technologies=("python", "fastapi"),
                assignees=("alice",),
                metadata={"status": "backlog", "points": 3},
            ),
            sync=True,
        )
    ).item
    entity = await house.app.entities.get(owner, task.id)
    assert entity.epic and entity.epic.id == epic.id
    assert [item.id for item in entity.depends_on] == [first.id]
    assert (entity.item.status, entity.item.metadata) == (
        "backlog",
        {"points": 3, "task_type": "feature"},
    )
    assert entity.item.tags == ("backend", "security")
    joined = {
        (relation.kind, relation.to_id, relation.explicit)
        for relation in await house.app.store.relations.of_items(owner.scope, [task.id])
        if relation.from_id == task.id
    }
    assert {
        ("RELATED_TO", idea.id, True),
        ("SUPPORTS", epic.id, True),
        ("DEPENDS_ON", first.id, True),
    } <= joined
    assert first.metadata["task_type"] == "bug"


async def test_what_was_superseded_says_so_at_once_and_is_no_conflict(house: House) -> None:
    add, owner = house.app.entities.add, house.owner
    old = (
        await add(owner, NewEntity("Retries", "We retry three times.", "decision"), sync=True)
    ).item
    new = await add(
        owner,
        NewEntity(
            "Retries",
            "We retry five times.",
            "decision",
            related_to=(f"supersedes:{old.entity_id}",),
        ),
        sync=True,
    )
    assert new.conflicts == ()
    assert (await house.app.entities.get(owner, old.id)).item.status == "superseded"
    hits = (await house.app.search.search(owner, "We retry three times")).hits
    assert [hit.passage.item_id for hit in hits] == [new.item.id, old.id]


async def test_what_was_corrected_is_no_conflict_and_hides_none(house: House) -> None:
    add, memory, owner = house.app.entities.add, house.app.memory, house.owner
    new = NewEntity("Retries", "We retry three times.", "decision")
    wrong = [
        (await add(owner, new, sync=True, check_conflicts=False)).item for _ in range(CANDIDATES)
    ]
    holds, replaced = [
        (await add(owner, new, sync=True, check_conflicts=False)).item for _ in range(2)
    ]
    for item in wrong:
        await memory.mark_wrong(owner, item.id)
    await memory.supersede(owner, replaced.id, by=holds.id)
    assert [found.item_id for found in (await add(owner, new, sync=True)).conflicts] == [holds.id]


async def test_the_projects_own_tags_are_used_where_the_text_names_them(house: House) -> None:
    within = await project(house)
    for title in ("Print it", "Send it"):
        await house.app.entities.add(
            house.owner, NewEntity(title, "Soon.", "task", project=within, tags=("invoice", "rush"))
        )
    task = (
        await house.app.entities.add(
            house.owner, NewEntity("Number the invoices", "By year.", "task", project=within)
        )
    ).item
    assert task.tags == ("invoice",)


async def test_what_is_alike_is_linked_both_ways_round(house: House) -> None:
    add, owner = house.app.entities.add, house.owner
    episode = (
        await add(
            owner,
            NewEntity(
                "Redis connection pool exhausted",
                "Requests to Redis block until they time out when the connection pool is "
                "exhausted; the pool size must be at least the number of workers.",
                technologies=("redis",),
            ),
            sync=True,
        )
    ).item
    await add(
        owner, NewEntity("Bread", "Let the dough rest overnight in the cold.", "pattern"), sync=True
    )
    pattern = await add(
        owner,
        NewEntity(
            "Sizing connection pools",
            "Make the connection pool of Redis at least as large as the number of workers, else "
            "requests block until they time out.",
            "pattern",
        ),
        sync=True,
    )
    assert pattern.message == "Added: Sizing connection pools (linked: 1)"
    (relation,) = await house.app.store.relations.of_items(owner.scope, [pattern.item.id])
    assert (relation.from_id, relation.kind, relation.explicit) == (
        episode.id,
        Kind.RELATED_TO,
        False,
    )
    assert 0.75 <= relation.weight <= 1
    later = await add(
        owner,
        NewEntity(
            "Connection pool too small again",
            "Redis requests block until they time out: the "
            "pool is smaller than the number of workers.",
        ),
        sync=True,
    )
    assert later.linked == 1


async def test_without_sync_a_worker_does_the_rest(house_with: OpenHouse) -> None:
    async with house_with(own={"workers": 1}) as house:
        add, owner = house.app.entities.add, house.owner
        await add(
            owner,
            NewEntity("Cold dough", "Let the bread dough rise in the cold overnight.", "pattern"),
            sync=True,
        )
        added = await add(
            owner,
            NewEntity("Flat bread", "The bread dough had no time to rise overnight in the cold."),
            check_conflicts=False,
        )
        assert (added.message, added.queued) == (
            "Queued: Flat bread (processing in background)",
            True,
        )
        keyword = await house.app.store.sections.keyword(owner.scope, _words("Flat"), 5)
        assert keyword, "its words are found before any worker has seen it"
        while (await house.app.store.jobs.count_open("link", owner.scope))[0]:
            await house.app.worker.run_once()
        assert len(await house.app.store.relations.of_items(owner.scope, [added.item.id])) == 1
        assert await house.app.store.sections.coverage(owner.scope, house.app.embedder.stamp) == (
            2,
            2,
        )


def _words(query: str) -> object:
    from commonplace.text import query_terms

    return query_terms.parse_query(query)


async def test_with_nobody_to_work_on_jobs_all_is_done_in_the_call(house: House) -> None:
    added = await house.app.entities.add(house.owner, NewEntity("Otters", "They swim."))
    assert added.message == "Added (sync fallback): Otters"
    assert not (await house.app.store.jobs.count_open("link", house.owner.scope))[0]
    await house.add(
        "Long", text="\n\n".join(f"Paragraph {n} about rivers." * 30 for n in range(60))
    )
    assert await house.app.worker.run_once() > 0
    added = await house.app.entities.add(house.owner, NewEntity("Herons", "They wade."))
    assert added.message == "Queued: Herons (processing in background)", (
        "a worker was seen a moment ago"
    )


async def test_a_lost_redis_means_sync_fallback(house_with: OpenHouse) -> None:
    async with house_with(redis_url="redis://127.0.0.1:1/0", rate_requests_per_minute=0) as house:
        added = await house.app.entities.add(house.owner, NewEntity("Otters", "They swim."))
        assert added.message == "Added (sync fallback): Otters"


KILN = (
    "The kiln is heated to 1240 degrees over nine hours, held there for twenty minutes, and must cool for a whole day before the "
    "door is opened, because the glaze of the stoneware cracks when cold air reaches the shelves too early. The cone on the "
    "middle shelf tells whether it was hot enough; the pyrometer by the door reads thirty degrees too low and is not trusted."
)
OTHER = (
    "Clay number {n} arrives in boxes of ten kilos. It is wedged by hand, rested under plastic for {n} days, thrown on the wheel, "
    "trimmed when it is leather hard, and dried slowly on wooden boards near the window of room {n}, away from the radiator. "
    "Handles are pulled and joined on day {n}, with slip made of the same clay and a scored seam that is pressed together. "
)


@pytest.mark.parametrize("place", [1, 4, 7])
async def test_conflicts_are_found_in_all_parts_of_a_long_text(house: House, place: int) -> None:
    old = await house.app.entities.add(
        house.owner, NewEntity("Firing stoneware", KILN, "procedure"), sync=True
    )
    parts = [
        f"## Part {n}\n\n" + (KILN if n == place else OTHER.format(n=n) * 2) for n in range(14)
    ]
    added = await house.app.entities.add(
        house.owner, NewEntity("Pottery handbook", "\n\n".join(parts))
    )
    assert [found.item_id for found in added.conflicts] == [old.item.id]
    changed = [part.replace("1240 degrees", "1190 degrees") for part in parts]
    again = await house.app.entities.add(
        house.owner, NewEntity("Firing stoneware, and all the rest", "\n\n".join(changed))
    )
    assert (old.item.id, "near_duplicate", "1240 degrees against 1190 degrees") in [
        (found.item_id, found.kind, found.difference) for found in again.conflicts
    ]


async def test_siblings_of_a_project_do_not_contradict_each_other(house: House) -> None:
    within = await project(house)
    texts = [f"The limit of exports is {n} rows." for n in (10, 20)]
    for where, kinds in ((within, []), (None, ["contradiction"])):
        for text in texts:
            added = await house.app.entities.add(
                house.owner, NewEntity("Exports", text, "decision", project=where), sync=True
            )
            others = [each for each in added.conflicts if each.kind != "duplicate"]
        assert sorted({each.kind for each in others}) == kinds


async def test_conflicts_stay_within_the_scope(house: House) -> None:
    one = await house.app.access.identify(house.tokens["one_folder"])
    await house.app.entities.add(
        house.owner, NewEntity("Secret", "The zebra grazes by the river."), sync=True
    )
    added = await house.app.entities.add(
        one, NewEntity("Secret", "The zebra grazes by the river."), sync=True
    )
    assert added.conflicts == () and added.linked == 0
    assert added.item.folders == (house.folders["Red"],)
    again = await house.app.entities.add(
        one, NewEntity("Secret", "The zebra grazes by the river."), sync=True
    )
    assert [found.item_id for found in again.conflicts] == [added.item.id]
    with pytest.raises(Invalid):
        hidden = await project(house)
        await house.app.entities.add(one, NewEntity("T", "text", "task", project=hidden))
    reader = await house.app.access.identify(house.tokens["reader"])
    with pytest.raises(CapabilityDenied):
        await house.app.entities.add(reader, NewEntity("", ""))


async def test_a_token_of_two_folders_adds_what_it_does_not_see_yet(house: House) -> None:
    two = await house.app.access.identify(house.tokens["two_folder"])
    added = await house.app.entities.add(two, NewEntity("Otters", "They swim."), sync=True)
    assert (
        await house.app.store.items.list_page(
            Scope(two.library_id), ItemFilter(), limit=1, offset=0
        )
    )[0][0].id == added.item.id


def test_since() -> None:
    at = now()
    assert (at - since("7d", at)).days == 7
    assert (at - since("2w", at)).days == 14
    assert since("2026-03-01").isoformat() == "2026-03-01T00:00:00+00:00"
    assert since("2026-03-01T02:00:00+02:00").isoformat() == "2026-03-01T00:00:00+00:00"
    for bad in ("", "7", "d", "-7d", "7y", "2026-02-30", "٧d", "99999d"):
        with pytest.raises(Invalid):
            since(bad)


async def test_a_new_text_makes_the_automatic_tags_of_a_task_anew(house: House) -> None:
    async with house.client("owner") as owner:
        project = {"entity_type": "project", "title": "Harbour", "content": "Boats."}
        project_id = (await owner.post("/api/entities?sync=true", json=project)).json()["id"]
        task = {
            "entity_type": "task",
            "title": "Cache the tide API",
            "content": "Tides change slowly. One docker image is enough.",
            "project": project_id,
            "tags": ["mine"],
        }
        task_id = (await owner.post("/api/entities?sync=true", json=task)).json()["id"]
        path = f"/api/entities/{task_id}"
        assert (await owner.get(path)).json()["tags"] == ["mine", "backend", "performance"]
        changed = await owner.patch(path, json={"title": "Migrate the tides", "content": "Docker."})
        assert changed.json()["tags"] == ["mine", "database", "devops"]
        await owner.patch(path, json={"tags": ["mine", "devops"]})
        changed = await owner.patch(path, json={"title": "Migrate and test the tides"})
        assert changed.json()["tags"] == ["mine", "devops", "testing"]  # database was removed
