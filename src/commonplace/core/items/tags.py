"""The tags of a library: list, rename, merge and delete them."""

from collections.abc import Sequence
from dataclasses import replace

from commonplace.core.people.authorization import GRAPH_WRITE, READ, Service, verb
from commonplace.errors import Invalid
from commonplace.model import ACTIVE, Caller
from commonplace.model.tags import LONGEST_TAG, TagCount

AT_ONCE = 200  # items in one transaction


class Tags(Service):
    @verb(READ, "list_tags")
    async def list_tags(self, caller: Caller) -> list[TagCount]:
        """Return the tags of all items that the caller sees. Notes and what is archived count
        nothing."""
        return await self._store.tags.list_tags(caller.scope, replace(ACTIVE, notes=False))

    @verb(GRAPH_WRITE, "rename_tags", target="name")
    async def rename(self, caller: Caller, tags: Sequence[str], name: str) -> int:
        """Give all items with one of these tags this one instead, and return how many there are.
        Several tags, or a name that is a tag already, are merged."""
        wanted = " ".join(name.split())
        if not wanted or "," in wanted:
            raise Invalid("A tag needs a name without commas.")
        if len(wanted) > LONGEST_TAG:
            raise Invalid(f"A tag has at most {LONGEST_TAG} characters.")
        return await self._replace(caller, {*tags} - {wanted}, wanted)

    @verb(GRAPH_WRITE, "delete_tags", target=lambda tags: ", ".join(tags))
    async def delete(self, caller: Caller, tags: Sequence[str]) -> int:
        """Remove tags from all items, and return how many had them."""
        return await self._replace(caller, {*tags}, None)

    async def _replace(self, caller: Caller, tags: set[str], by: str | None) -> int:
        changed = 0
        while tags:
            done = await self._store.tags.replace_tags(caller.scope, tags, by, limit=AT_ONCE)
            changed += done
            if done < AT_ONCE:
                break
        return changed
