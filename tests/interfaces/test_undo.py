"""Every action of a person, undone: the state afterwards is the state before."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pytest

from commonplace.core.entities.validation import NewEntity
from commonplace.core.memory.reflection import Notes
from commonplace.core.people.tokens import NewToken
from commonplace.core.services import Services
from commonplace.errors import CapabilityDenied, Conflict, ForbiddenScope, NotFound
from commonplace.model import (
    EVERYTHING,
    Audience,
    Caller,
    Capability,
    Item,
    ItemFilter,
    Json,
    Kind,
    Mode,
    Order,
    Role,
    Step,
)
from commonplace.model.workflow import EPIC, TASK
from tests.interfaces.conftest import Clock, OpenHouse
from tests.interfaces.house import House

pytestmark = pytest.mark.anyio
SOLAR = "The solar panels on the roof feed the battery in the cellar all day."
NOTES = "We decided to use Postgres for the archive. Marta will send the contract on Friday."
ALL = replace(EVERYTHING, notes=None)


@dataclass
class World:
    """What the actions act on, and the person who acts."""

    house: House
    ids: dict[str, str]
    caller: Caller

    @property
    def app(self) -> Services:
        return self.house.app

    async def item(self, name: str) -> Item:
        found = await self.app.library.find(self.caller, self.ids[name])
        assert found is not None
        return found


async def furnish(house: House) -> World:
    app, me = house.app, replace(house.owner)
    ids: dict[str, str] = {}
    ids["note"], _ = await house.add("Roof", folder="Red", text=SOLAR)
    ids["both"], _ = await house.add("Both", text=f"{SOLAR} Twice.")
    await app.folders.file(me, ids["both"], [house.folders["Red"], house.folders["Blue"]])
    await app.library.update(me, ids["note"], {"tags": ["sun", "roof"]})
    await app.library.update(me, ids["both"], {"tags": ["sun"]})
    inner = await app.folders.create(me, "Inner", house.folders["Red"])
    ids["inner"], ids["red"] = inner.id, house.folders["Red"]
    await app.folders.create(me, "inner")  # takes the name that Inner would get
    ids["margin"] = (
        await app.annotations.add(me, ids["note"], "Check it", quote="solar panels")
    ).id

    async def entity(name: str, kind: str, **more: Any) -> None:
        new = NewEntity(name, f"{name} is {SOLAR}", kind, **more)
        ids[name] = (await app.entities.add(me, new, sync=True)).item.id

    await entity("house", "project")
    await entity("plan", "epic", project=ids["house"])
    await entity("wire", "task", project=ids["house"], epic=ids["plan"])
    await entity("drill", "task", project=ids["house"])
    await entity("old", "claim")
    await entity("new", "claim")
    await app.reflection.reflect(me, Notes(NOTES, "Talk", persist=True, review=True))
    found, _ = await app.reflection.candidates(me)
    ids["candidate"] = next(each.id for each in found if each.proposal.kind == "decision")
    await app.people.create_token(me, NewToken("red only", folders=frozenset([ids["red"]])))
    both = frozenset([ids["red"], house.folders["Blue"]])
    await app.people.create_token(me, NewToken("both of them", folders=both))
    ids["published"], _ = await house.add("Poster", text=f"{SOLAR} For all.")
    await app.disks.publish(me, ids["published"], Audience.MEMBERS, "In my words")
    ids["in trash"], _ = await house.add("Gone", folder="Red", text=f"{SOLAR} Away.")
    await app.library.delete(me, ids["in trash"])
    return World(house, ids, me)


def told(item: Item) -> Json:
    """Return an item without what counts its changes. Deriving from the text may add to it."""
    kept = {name: getattr(item, name) for name in item.__slots__}
    for name in ("revision", "updated_at", "changes", "folders"):
        kept.pop(name, None)
    return kept


async def state(world: World) -> Json:
    app, me = world.app, world.house.owner
    items: dict[str, Json] = {}
    for where in (ALL, replace(ALL, notes=True), ItemFilter(archived=True, notes=None)):
        found, _ = await app.library.page(me, where, limit=100, order=Order.OLDEST)
        for item in found:
            full = await app.library.read(me, item.id)
            items[item.id] = told(item) | {
                "folders": sorted(item.folders),
                "text": full.text,
                "passages": [section.text for section in full.sections],
            }
    relations = await app.library.relations(me, sorted(items))
    candidates, _ = await app.reflection.candidates(me, None)
    disks = await app.store.disks.of_items(me.library_id, sorted(items))
    found_by = {}
    for word in ("solar", "sunken", "poster"):
        hits = await app.search.search(me, word, mode=Mode.KEYWORD, limit=50)
        found_by[word] = sorted({hit.passage.item_id for hit in hits.hits})
    return {
        "items": items,
        "relations": sorted(
            (each.from_id, str(each.kind), each.to_id) for each in relations if each.explicit
        ),
        "folders": sorted(
            (each.id, each.name, each.parent_id, each.item_count)
            for each in await app.folders.list_folders(me)
        ),
        "candidates": [(each.id, each.state, each.item_id) for each in candidates],
        "disks": {
            item_id: (each.audience, each.own_summary, each.published_at)
            for item_id, each in disks.items()
        },
        "tokens": sorted(
            (each.name, sorted(each.folders or ()), each.revoked_at is None)
            for each in await app.store.tokens.of_library(me.library_id)
        ),
        "found": found_by,
    }


Do = Callable[[World, Caller], Awaitable[Any]]


def change(**changes: Any) -> Do:
    return lambda w, me: w.app.library.update(me, w.ids["note"], changes)


def task(name: str, *statuses: str) -> Do:
    async def do(w: World, me: Caller) -> None:
        for status in statuses:
            await w.app.tasks.update(me, w.ids[name], TASK, {"status": status})

    return do


async def move(w: World, me: Caller) -> None:
    await w.app.folders.file(me, w.ids["note"], [w.house.folders["Blue"]])
    await w.app.folders.unfile(me, w.ids["note"], w.house.folders["Red"])


async def move_to_new(w: World, me: Caller) -> None:
    folder = await w.app.folders.create(me, "Just made")
    await w.app.folders.file(me, w.ids["note"], [folder.id])


async def accept_and_supersede(w: World, me: Caller) -> None:
    _, kept = await w.app.reflection.accept(me, w.ids["candidate"], {})
    await w.app.memory.supersede(me, w.ids["old"], by=kept.item.entity_id)


async def restore_version(w: World, me: Caller) -> None:
    plain = w.house.owner
    await w.app.library.update(plain, w.ids["note"], {"text": f"{SOLAR} And sunken at night."})
    [version, *_] = await w.app.versions.of(plain, w.ids["note"])
    await w.app.versions.restore(me, w.ids["note"], version.revision)


ACTIONS: dict[str, Do] = {
    "archive": change(archived=True),
    "tag": change(tags=["sun", "roof", "more"]),
    "untag": change(tags=[]),
    "rename": change(title="Ceiling"),
    "category": change(category="homes"),
    "hide from search": change(in_kb=False),
    "edit the text": change(text="A sunken garden, where the panels were.\n\nSecond part."),
    "edit all at once": change(title="Garden", tags=["green"], text="A sunken garden with a pond."),
    "file": lambda w, me: w.app.folders.file(me, w.ids["note"], [w.house.folders["Blue"]]),
    "take out": lambda w, me: w.app.folders.unfile(me, w.ids["note"], w.ids["red"]),
    "move": move,
    "move to a new folder": move_to_new,
    "delete": lambda w, me: w.app.library.delete(me, w.ids["note"]),
    "delete a task of an epic": lambda w, me: w.app.library.delete(me, w.ids["wire"]),
    "delete what is published": lambda w, me: w.app.library.delete(me, w.ids["published"]),
    "delete a highlight": lambda w, me: w.app.library.delete(me, w.ids["margin"]),
    "restore from the trash": lambda w, me: w.app.trash.restore(me, w.ids["in trash"]),
    "rename a tag": lambda w, me: w.app.tags.rename(me, ["sun"], "star"),
    "merge tags": lambda w, me: w.app.tags.rename(me, ["sun", "roof"], "house"),
    "delete a tag": lambda w, me: w.app.tags.delete(me, ["sun"]),
    "create a folder": lambda w, me: w.app.folders.create(me, "Shiny", w.ids["red"]),
    "rename a folder": lambda w, me: w.app.folders.update(me, w.ids["red"], {"name": "Rot"}),
    "nest a folder": lambda w, me: w.app.folders.update(
        me, w.ids["red"], {"parent_id": w.house.folders["Blue"]}
    ),
    "delete a folder": lambda w, me: w.app.folders.delete(me, w.ids["red"]),
    "delete a folder with its items": lambda w, me: w.app.folders.delete(
        me, w.ids["red"], cascade_items=True
    ),
    "publish": lambda w, me: w.app.disks.publish(me, w.ids["note"], Audience.ANYONE, "Mine"),
    "publish otherwise": lambda w, me: w.app.disks.publish(
        me, w.ids["published"], Audience.ANYONE, ""
    ),
    "unpublish": lambda w, me: w.app.disks.unpublish(me, w.ids["published"]),
    "accept": lambda w, me: w.app.reflection.accept(me, w.ids["candidate"], {}),
    "accept with changes": lambda w, me: w.app.reflection.accept(
        me, w.ids["candidate"], {"title": "Another title"}
    ),
    "accept and supersede": accept_and_supersede,
    "reject": lambda w, me: w.app.reflection.reject(me, w.ids["candidate"]),
    "start a task, and its epic": task("wire", "doing"),
    "finish a task, and its epic": task("wire", "doing", "done"),
    "archive a task": task("drill", "archived"),
    "edit a task": lambda w, me: w.app.entities.update(
        me, w.ids["drill"], {"title": "Drill more", "priority": "high", "content": "Ten holes."}
    ),
    "move a task to an epic": lambda w, me: w.app.tasks.update(
        me, w.ids["drill"], TASK, {"epic": w.ids["plan"]}
    ),
    "take a task out of its epic": lambda w, me: w.app.tasks.update(
        me, w.ids["wire"], TASK, {"epic": None}
    ),
    "note on a task": lambda w, me: w.app.tasks.note(me, w.ids["drill"], "The sunken bit broke."),
    "archive an epic": lambda w, me: w.app.tasks.update(
        me, w.ids["plan"], EPIC, {"status": "archived"}
    ),
    "add a dependency": lambda w, me: w.app.graph.link(
        me, w.ids["wire"], Kind.DEPENDS_ON, w.ids["drill"]
    ),
    "create a task": lambda w, me: w.app.entities.add(
        me, NewEntity("Saw", f"Saw {SOLAR}", "task", project=w.ids["house"]), sync=True
    ),
    "highlight": lambda w, me: w.app.annotations.add(me, w.ids["note"], "", quote="the battery"),
    "edit a highlight": lambda w, me: w.app.annotations.change(me, w.ids["margin"], "Sunken?"),
    "supersede": lambda w, me: w.app.memory.supersede(me, w.ids["old"], by=w.ids["new"]),
    "mark wrong": lambda w, me: w.app.memory.mark_wrong(me, w.ids["old"], "It is not so."),
    "add the sample": lambda w, me: w.app.samples.add(me),
}


async def act(world: World, do: Do) -> str:
    step = Step(world.caller.person_id)
    await do(world, replace(world.caller, step=step))
    assert step.recorded
    return step.id


async def test_every_action_is_undone(house_with: OpenHouse, either_engine: dict[str, str]) -> None:
    async with house_with(**either_engine) as house:
        world = await furnish(house)
        before = await state(world)
        wrong = {}
        for name, do in ACTIONS.items():
            step_id = await act(world, do)
            if await state(world) == before:
                wrong[name] = "it changed nothing"
            try:
                stays = await world.app.recent_changes.undo(world.caller, step_id)
            except Conflict as error:
                stays = [error.message]
            after = await state(world)
            if stays or after != before:
                wrong[name] = f"{stays} {differences(before, after)}"
                before = after
                continue
            with pytest.raises(NotFound):
                await world.app.recent_changes.undo(world.caller, step_id)
        assert not wrong, "\n".join(f"{name}: {what}" for name, what in wrong.items())


def differences(before: Any, after: Any, path: str = "") -> str:
    if isinstance(before, dict) and isinstance(after, dict):
        return " ".join(
            differences(before.get(key), after.get(key), f"{path}/{key}")
            for key in {*before, *after}
            if before.get(key) != after.get(key)
        )
    return f"{path}: {before!r} != {after!r}"[:600]


async def undo(world: World, step_id: str, by: Caller | None = None) -> list[str]:
    return await world.app.recent_changes.undo(by or world.caller, step_id)


async def test_an_undo_overwrites_no_newer_change(
    house_with: OpenHouse, either_engine: dict[str, str]
) -> None:
    async with house_with(**either_engine) as house:
        world, me = await furnish(house), house.owner
        app = world.app
        cases: dict[str, tuple[Do, Do]] = {
            "another tag": (change(tags=["mine"]), change(tags=["theirs"])),
            "another text": (change(text="Mine."), change(text="Theirs.")),
            "moved on": (task("wire", "doing"), task("wire", "done")),
            "there and back": (task("drill", "doing"), task("drill", "review", "doing")),
            "another name": (
                lambda w, by: w.app.folders.update(by, w.ids["inner"], {"name": "Mine"}),
                lambda w, by: w.app.folders.update(by, w.ids["inner"], {"name": "Theirs"}),
            ),
            "a folder in use": (
                lambda w, by: w.app.folders.create(by, "Fresh"),
                lambda w, by: file_in(w, by, "Fresh"),
            ),
            "published otherwise": (
                lambda w, by: w.app.disks.publish(by, w.ids["both"], Audience.ANYONE, "Mine"),
                lambda w, by: w.app.disks.publish(by, w.ids["both"], Audience.ANYONE, "Theirs"),
            ),
            "edited since it was made": (
                lambda w, by: w.app.annotations.add(by, w.ids["both"], "Mine"),
                edit_newest_note,
            ),
        }
        for name, (mine, theirs) in cases.items():
            step_id = await act(world, mine)
            await theirs(world, me)
            before = await state(world)
            with pytest.raises(Conflict, match="Nothing was undone"):
                await undo(world, step_id)
            assert await state(world) == before, name
        # Of two who undo at once, one does.
        step_id = await act(world, ACTIONS["tag"])
        twice = await asyncio.gather(
            *(undo(world, step_id) for _ in range(2)), return_exceptions=True
        )
        assert sorted(type(each).__name__ for each in twice) == ["NotFound", "list"]
        # What concerns other fields is no reason to refuse.
        step_id = await act(world, change(archived=True))
        await change(category="theirs")(world, me)
        assert await undo(world, step_id) == []
        item = await world.item("note")
        assert (item.archived, item.category) == (False, "theirs")
        # Of several items, those that nobody else has changed go back.
        for each in ("note", "both"):
            await app.library.update(me, world.ids[each], {"tags": ["sun"]})
        step_id = await act(world, ACTIONS["rename a tag"])
        await app.library.update(me, world.ids["both"], {"tags": ["theirs"]})
        assert await undo(world, step_id) == ["“Both” was changed since."]
        assert (await world.item("note")).tags == ("sun",)
        assert (await world.item("both")).tags == ("theirs",)


async def file_in(world: World, me: Caller, name: str) -> None:
    folders = await world.app.folders.list_folders(me)
    folder_id = next(each.id for each in folders if each.name == name)
    await world.app.folders.file(me, world.ids["both"], [folder_id])


async def edit_newest_note(world: World, me: Caller) -> None:
    notes = await world.app.annotations.of(me, world.ids["both"])
    await world.app.annotations.change(me, notes[-1].item.id, "Theirs")


async def test_steps_are_undone_one_by_one_back_to_the_start(house: House) -> None:
    world = await furnish(house)
    before = await state(world)
    steps = [
        await act(world, do)
        for do in (
            task("wire", "doing"),
            task("wire", "blocked"),
            task("wire", "doing"),
            task("wire", "done"),
            change(text="First."),
            change(text="Second."),
            change(tags=["third"], text="Third."),
        )
    ]
    with pytest.raises(Conflict):
        await undo(world, steps[1])
    for step_id in reversed(steps):
        assert await undo(world, step_id) == []
    assert await state(world) == before


async def test_only_the_person_undoes_and_only_within_a_day(house: House, clock: Clock) -> None:
    world = await furnish(house)
    app, me = world.app, house.owner
    step_id = await act(world, change(archived=True))
    await app.recent_changes.name(me, step_id, "1 item archived.")
    [listed] = await app.recent_changes.list_changes(me)
    assert (listed.id, listed.said) == (step_id, "1 item archived.")
    assert [item.title for item in listed.items] == ["Roof"]
    _, invitation = await app.members.invite(me, Role.MEMBER)
    joined = await app.members.accept(None, invitation, "Bob", "bob@example.org")
    bob = replace(me, person_id=joined.person_id, role=Role.MEMBER)
    for other in (bob, house.stranger):
        assert await app.recent_changes.list_changes(other) == []
        with pytest.raises(NotFound):
            await undo(world, step_id, other)
    with pytest.raises(CapabilityDenied):
        await undo(world, step_id, replace(me, capabilities=frozenset({Capability.READ})))
    some = replace(me, folders=frozenset([world.ids["red"]]))
    with pytest.raises(ForbiddenScope):
        await undo(world, step_id, some)
    with pytest.raises(ForbiddenScope):
        await app.recent_changes.list_changes(some)
    clock.advance(hours=25)
    assert await app.recent_changes.list_changes(me) == []
    with pytest.raises(NotFound):
        await undo(world, step_id)
    await app.store.undo.prune()
    assert (await world.item("note")).archived


async def rows_of(world: World) -> str:
    """Return all that is stored of steps, as text."""

    def read(tx: Any) -> str:
        return repr([tx.tuples(f"SELECT * FROM {name}") for name in ("undo_steps", "undo_rows")])

    return await world.app.store._db.read(read)


async def test_nothing_is_kept_of_what_is_deleted_for_good(
    house_with: OpenHouse, either_engine: dict[str, str]
) -> None:
    async with house_with(**either_engine) as house:
        world = await furnish(house)
        app, me = world.app, house.owner
        for do in (change(title="Secret plan"), change(tags=["secret"]), ACTIONS["delete"]):
            await act(world, do)
        assert len(await app.recent_changes.list_changes(me)) == 3
        accepted = await act(world, ACTIONS["accept"])
        candidate = await app.store.candidates.get(me.library_id, None, world.ids["candidate"])
        assert candidate.item_id
        await app.library.delete(me, candidate.item_id, permanent=True)
        assert accepted not in {each.id for each in await app.recent_changes.list_changes(me)}
        several = await act(world, lambda w, by: w.app.tags.rename(by, ["sun"], "star"))
        await app.recent_changes.name(me, several, "Roof has other tags.")
        await app.library.delete(me, world.ids["both"])
        await app.trash.empty(me)
        assert await app.recent_changes.list_changes(me) == []
        rows = await rows_of(world)
        assert "ecret" not in rows and "Postgres" not in rows and "Roof" not in rows


async def test_without_a_trash_deleting_cannot_be_undone(house_with: OpenHouse) -> None:
    async with house_with(trash_days=0) as house:
        world = World(house, {}, house.owner)
        world.ids["note"], _ = await house.add("Brief")
        await act(world, change(tags=["secret"]))
        step = Step(house.owner.person_id)
        await house.app.library.delete(replace(house.owner, step=step), world.ids["note"])
        assert not step.recorded
        assert await house.app.recent_changes.list_changes(house.owner) == []


async def test_a_sample_is_removed_for_good(house: House) -> None:
    app, me = house.app, house.owner
    await app.samples.add(me)
    step = Step(me.person_id)
    assert await app.samples.remove(replace(me, step=step)) == 6
    assert not step.recorded


async def test_a_token_that_was_revoked_again_stays_revoked(
    house_with: OpenHouse, either_engine: dict[str, str]
) -> None:
    async with house_with(**either_engine) as house:
        world, me = await furnish(house), house.owner
        app = world.app
        red = frozenset([world.ids["red"]])
        leaked, _ = await app.people.create_token(me, NewToken("leaked", folders=red))
        step_id = await act(world, ACTIONS["delete a folder"])
        with suppress(NotFound):  # revoked already
            await app.people.revoke_token(me, leaked.id)
        assert await undo(world, step_id) == []
        tokens = {each.name: each for each in await app.store.tokens.of_library(me.library_id)}
        assert tokens["red only"].revoked_at is None
        assert tokens["leaked"].revoked_at is not None
