"""Every public method for a caller says what it needs, and checks it before it runs."""

from collections.abc import Iterator
from dataclasses import fields
from inspect import getmembers, iscoroutinefunction, signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_type_hints

import pytest

from commonplace.core.people.authorization import (
    ADMIN,
    FULL_SCOPE,
    FULL_WRITE,
    READ,
    WRITE,
    Needs,
    Requirement,
    verb,
)
from commonplace.core.services import Services
from commonplace.errors import CapabilityDenied, ForbiddenScope
from commonplace.model import Caller, Capability
from tests.interfaces.house import House, open_house

pytestmark = pytest.mark.anyio

ADMITS_ITSELF = {
    "Disks.public",  # also without a caller
    "Members.accept",  # also without a caller
    "Reflection.reflect",  # a read, or a write if it persists
}
ADMITTED_BY_ANOTHER = {
    "Disks.find",  # by the search
    "Disks.search",  # by the search
    "EntitySearch.search",  # by the search
    "Uploads.add_file",  # by announcing and finishing it
    "Uploads.submit_file",  # by announcing it
    "PageUpdates.refresh_all",  # by refreshing each
    "Sessions.import_sessions",  # by importing the file that they are in
    "Events.cursor",  # where the stream of a page begins; the stream is a verb
}
AUTHORIZED_ALREADY = {  # parts of other methods
    "Disks.hits",
    "Entities.described",
    "Entities.keep",
    "Entities.find_project",
    "Entities.project_id",
    "Entities.rewrite",
    "Entities.with_text",
    "Library.add_existing",
    "Library.keep",
    "Library.renew",
    "Library.reread",
    "Memory.extend",
    "Memory.keep",
    "Originals.draw_page",
    "People.folder_ids",
    "QueuedItems.enqueue",
    "QueuedItems.file_existing",
    "RecentChanges.name",
    "Reflection.compare",
    "Reflection.queue",
    "Search.find",
    "Search.rank",
    "Tasks.apply",
    "Tasks.change",
    "Tasks.find",
    "Trash.put_back",
}


def methods() -> Iterator[tuple[str, Any]]:
    types = get_type_hints(Services)
    for field in fields(Services):
        service = types[field.name]
        if service.__module__.startswith("commonplace.core") and field.name != "access":
            for name, method in getmembers(service, iscoroutinefunction):
                named = signature(method).parameters
                if not name.startswith("_") and "caller" in named:
                    yield f"{service.__name__}.{name}", method


def test_every_method_for_a_caller_says_what_it_needs() -> None:
    without = {name for name, method in methods() if not hasattr(method, "needs")}

    assert without == ADMITS_ITSELF | ADMITTED_BY_ANOTHER | AUTHORIZED_ALREADY


def test_needs_are_readable_from_the_method() -> None:
    needs = dict((name, method.needs) for name, method in methods() if hasattr(method, "needs"))

    assert needs["Library.read"] == Needs(READ, "read")
    assert needs["Folders.create"] == Needs(WRITE, "create_folder", FULL_WRITE)
    assert needs["Folders.create"].capability is Capability.WRITE
    assert needs["People.tokens"] == Needs(READ, "list_tokens", FULL_WRITE)
    assert needs["People.tokens"].capability is Capability.WRITE  # though it counts as a read
    assert needs["Overview.report"].requirement is FULL_SCOPE
    assert needs["Overview.report"].capability is Capability.READ
    assert needs["Members.invite"].requirement is ADMIN
    assert needs["Library.read"].requirement is Requirement.NONE


class Desk:
    """A service that only records."""

    def __init__(self) -> None:
        self._access = self
        self.seen: list[Any] = []

    async def admit(self, caller: Caller, needs: Needs, target: str | None = None) -> None:
        self.seen.append((needs.name, target))

    @verb(READ, target="item_id")
    async def read(self, caller: Caller, item_id: str, limit: int = 3) -> str:
        """Read."""
        self.seen.append("ran")
        return item_id * limit

    @verb(WRITE, "stamp", target=lambda about, title: title or about.title)
    async def write(self, caller: Caller, title: str = "", *, about: Any = None) -> None:
        self.seen.append("ran")

    @verb(WRITE, lambda action: f"{action}_it")
    async def act(self, caller: Caller, action: str) -> None:
        self.seen.append("ran")


CALLER = Caller("library", "person", "name", frozenset(Capability))


async def test_the_caller_is_admitted_first_with_the_target_of_the_arguments() -> None:
    desk = Desk()

    assert await desk.read(CALLER, "ab", limit=2) == "abab"
    assert await desk.read(CALLER, item_id="c") == "ccc"
    await desk.write(CALLER, "first")
    await desk.write(CALLER, about=SimpleNamespace(title="second"))
    await desk.act(CALLER, action="start")

    assert [one for one in desk.seen if one != "ran"] == [
        ("read", "ab"),
        ("read", "c"),
        ("stamp", "first"),
        ("stamp", "second"),
        ("start_it", None),
    ]
    assert desk.seen[1::2] == ["ran"] * 5
    assert Desk.read.needs == desk.read.needs == Needs(READ, "read")
    assert Desk.read.__doc__ == "Read."


def test_a_target_that_is_no_parameter_is_refused_at_once() -> None:
    async def read(self: Any, caller: Caller) -> None: ...

    with pytest.raises(AssertionError, match="item_id"):
        verb(READ, target="item_id")(read)


async def test_require_refuses_without_spending_a_use(data_dir: Path) -> None:
    async with open_house(data_dir) as house:
        await refuse(house)


async def refuse(house: House) -> None:
    access = house.app.access
    reader = await access.identify(house.tokens["reader"])
    one = await access.identify(house.tokens["one_folder"])

    for _ in range(100):  # more than the writes of an hour
        with pytest.raises(CapabilityDenied):
            access.require(reader, Needs(WRITE, "add"), "target")
    with pytest.raises(ForbiddenScope):
        access.require(one, Needs(WRITE, "create_folder", FULL_WRITE))
    access.require(one, Needs(WRITE, "add"))
    await access.flush()

    assert reader.token_id is not None
    events = await house.app.store.tokens.activity(reader.library_id, reader.token_id, 3)
    assert {(event.action, event.target, event.ok) for event in events} == {
        ("add", "target", False)
    }
