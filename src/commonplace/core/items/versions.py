"""Earlier versions of an item, and word-level diffs between them."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from commonplace.core.items.text_editor import TextEditor
from commonplace.core.people.authorization import READ, WRITE, Service, verb
from commonplace.errors import NotFound
from commonplace.model import Caller, Item, ItemRef, Version
from commonplace.store.optimistic import retry_on_conflict

AROUND = 2  # unchanged lines shown around a change
MOST_LINES = 20_000  # of both texts together; longer ones take too long to compare
MOST_WORDS = 2_000  # of a line
MOST_CHARACTERS = 50_000  # of lines compared word by word, in total
_WORDS = re.compile(r"\s+|[^\s]+")

Sign = Literal["-", "+", " ", "…"]
Part = tuple[str, bool]  # a piece of a line, and whether it changed


@dataclass(frozen=True, slots=True)
class Line:
    sign: Sign  # removed, added, unchanged; "…": unchanged lines left out
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class VersionDiff:
    item: Item
    version: Version
    followed_by: Version | None  # None: the current text
    lines: tuple[Line, ...] | None  # None: too long to compare


@dataclass(eq=False)
class Versions(Service):
    _editor: TextEditor

    @verb(READ, "versions", target="item_id")
    async def of(self, caller: Caller, item_id: str) -> list[Version]:
        """Return versions newest first, without their texts."""
        item = await self._store.items.get(caller.scope, ItemRef.parse(item_id))
        return await self._store.versions.of_item(caller.scope, item.id)

    @verb(READ, "versions", target="item_id")
    async def get(self, caller: Caller, item_id: str, revision: int) -> Version:
        item = await self._store.items.get(caller.scope, ItemRef.parse(item_id))
        return await self._store.versions.get(caller.scope, item.id, revision)

    @verb(READ, "versions", target="item_id")
    async def text_at(self, caller: Caller, item_id: str, revision: int) -> str | None:
        """Return the text that an item had at a revision; None if it is no longer kept."""
        item = await self._store.items.get(caller.scope, ItemRef.parse(item_id))
        later = [
            each.revision
            for each in await self._store.versions.of_item(caller.scope, item.id)
            if each.revision >= revision
        ]
        if not later:
            return await self._store.items.text(item)
        try:
            return (await self._store.versions.get(caller.scope, item.id, min(later))).text
        except NotFound:
            return None

    @verb(WRITE, "restore_version", target="item_id")
    async def restore(
        self, caller: Caller, item_id: str, revision: int, expected_revision: int | None = None
    ) -> Item:
        """Make the text of a version the item's text again."""

        async def restore_text() -> Item:
            item = await self._store.items.get(caller.scope, ItemRef.parse(item_id))
            version = await self._store.versions.get(caller.scope, item.id, revision)
            return await self._editor.restore(
                caller.scope, item, version, expected_revision or item.revision
            )

        return await retry_on_conflict(restore_text, guarded=expected_revision is not None)

    @verb(READ, "versions", target="item_id")
    async def compare(self, caller: Caller, item_id: str, revision: int) -> VersionDiff:
        """Compare a version with the one that replaced it."""
        item = await self._store.items.get(caller.scope, ItemRef.parse(item_id))
        version = await self._store.versions.get(caller.scope, item.id, revision)
        later = [
            each
            for each in await self._store.versions.of_item(caller.scope, item.id)
            if each.revision > revision
        ]
        followed_by = None
        if later:
            with suppress(NotFound):  # only the newest versions are kept
                followed_by = await self._store.versions.get(
                    caller.scope, item.id, later[-1].revision
                )
        text = followed_by.text if followed_by else await self._store.items.text(item)
        return VersionDiff(
            item, version, followed_by, await asyncio.to_thread(difference, version.text, text)
        )


def difference(before: str, after: str) -> tuple[Line, ...] | None:
    old, new = before.splitlines(), after.splitlines()
    if len(old) + len(new) > MOST_LINES:
        return None
    return tuple(_lines(old, new))


def _lines(old: Sequence[str], new: Sequence[str]) -> Iterator[Line]:
    shown = compared = 0
    for group in SequenceMatcher(None, old, new).get_grouped_opcodes(AROUND):
        if group[0][1] > shown:
            yield Line("…")
        for what, a, b, c, d in group:
            if what == "equal":
                yield from (Line(" ", ((line, False),)) for line in old[a:b])
            elif (
                what == "replace"
                and b - a == d - c
                and (compared := compared + sum(map(len, [*old[a:b], *new[c:d]])))
                <= MOST_CHARACTERS
            ):
                pairs = [_within(was, now) for was, now in zip(old[a:b], new[c:d], strict=True)]
                yield from (Line("-", gone) for gone, _ in pairs)
                yield from (Line("+", come) for _, come in pairs)
            else:
                yield from (Line("-", ((line, True),)) for line in old[a:b])
                yield from (Line("+", ((line, True),)) for line in new[c:d])
            shown = b
    if shown < len(old) and shown:
        yield Line("…")


def _within(was: str, now: str) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """Split two lines into equal and different words."""
    old, new = _WORDS.findall(was), _WORDS.findall(now)
    if len(old) + len(new) > MOST_WORDS:
        return ((was, True),), ((now, True),)
    gone: list[Part] = []
    come: list[Part] = []
    for what, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        gone += [("".join(old[a:b]), what != "equal")] if b > a else []
        come += [("".join(new[c:d]), what != "equal")] if d > c else []
    return tuple(gone), tuple(come)
