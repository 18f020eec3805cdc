"""Replace the text of an item, in one transaction with its sections, version and jobs: edits,
restored versions, pages that were fetched again."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from commonplace.core.ingest.pictures import PICTURE
from commonplace.core.ingest.pipeline import OF_THE_TEXT, IngestPipeline, Prepared, link_job
from commonplace.core.ingest.sources import STAND_IN, metadata_of, url_key
from commonplace.core.items.drafts import Changes, require_revision
from commonplace.errors import Invalid
from commonplace.model import (
    Caller,
    Content,
    EntityType,
    Item,
    Mark,
    Origin,
    Scope,
    Version,
    new_shared_id,
)
from commonplace.model.workflow import with_article
from commonplace.ports import Embedder, Wake
from commonplace.store import Store
from commonplace.store.contents import OWN_KEY
from commonplace.text import chunking
from commonplace.text.front_matter import first_line
from commonplace.text.language import detect
from commonplace.text.marks import carry_marks

# Their texts change with their other fields.
ROUTES = {
    EntityType.TASK: "PATCH /api/tasks/{id}",
    EntityType.EPIC: "PATCH /api/entities/{id}",
    EntityType.PROJECT: "PATCH /api/entities/{id}",
}


@dataclass(eq=False)
class TextEditor:
    _store: Store
    _embedder: Embedder
    _pipeline: IngestPipeline
    _wake: Wake

    async def edit(
        self, scope: Scope, item: Item, text: str, changes: Changes, expected_revision: int
    ) -> Item:
        """Give an item another text, which only its library has. The pages and times of the old
        text stay beside their words."""
        _require_text(item)
        if item.entity_type in ROUTES:
            raise Invalid(
                f"The text of {with_article(item.entity_type)} cannot be changed here. Send it "
                f"as `content` with {ROUTES[EntityType(item.entity_type)]}."
            )
        require_revision(item, expected_revision)
        before = await self._store.contents.get(item.library_id, item.content_id)
        changes = _titled(item, before.text, text) | changes
        if text == before.text:
            changed, _ = await self._pipeline.change(scope, item, changes, expected_revision)
            return changed
        marks = await asyncio.to_thread(carry_marks, before.marks, before.text, text)
        item = await asyncio.to_thread(_without_language, item, before.text)
        made, changes = await self._prepared(item, text, marks, changes)
        content = before.edited(new_shared_id(), text, marks, _source(item, before))
        return await self._replace(scope, item, content, made, changes, expected_revision)

    async def restore(
        self,
        scope: Scope,
        item: Item,
        version: Version,
        expected_revision: int,
        others: Changes | None = None,
    ) -> Item:
        """Give an item the text of a version. Its present text becomes a version. `others`: fields
        that change with it."""
        _require_text(item)
        require_revision(item, expected_revision)
        content = await self._store.contents.get(item.library_id, version.content_id)
        present = await self._store.items.text(item)
        item = await asyncio.to_thread(_without_language, item, present)
        made, changes = await self._prepared(
            item, content.text, content.marks, _titled(item, present, content.text)
        )
        content = replace(content, id=new_shared_id())  # its key leads to the one that is there
        changes = changes | (others or {})
        return await self._replace(scope, item, content, made, changes, expected_revision)

    async def refetched(self, caller: Caller, item: Item, content: Content) -> Item:
        """Give an item the text that its source has now. An edited text stays, and that of the
        source becomes a version. A text that is the same costs no vectors."""
        before = await self._store.contents.get(item.library_id, item.content_id)
        if before.text == content.text and before.key == content.key:
            about = {name: before.about[name] for name in (PICTURE,) if name in before.about}
            content = replace(content, id=before.id, about=about | content.about)
            await self._store.contents.renew(item.library_id, content)
            changes = _of_source(item, before, content)
            if all(getattr(item, name) == value for name, value in changes.items()):
                return item
            return (await self._pipeline.change(caller.scope, item, changes, item.revision))[0]
        new = replace(content, id=new_shared_id())
        if before.edit_of and not before.about.get(STAND_IN):
            words = await asyncio.to_thread(chunking.count, content.text)
            return await self._store.items.keep_source(
                caller.scope, item.id, new, words, expected_revision=item.revision
            )
        return await self._replace_source(caller.scope, item, before, new)

    async def captured(self, caller: Caller, item: Item, content: Content) -> Item:
        """Give an item the text of its page as a browser showed it, which only its library has."""
        _require_text(item)
        before = await self._store.contents.get(item.library_id, item.content_id)
        if before.text == content.text:
            return item
        id = new_shared_id()
        new = replace(
            content, id=id, key=f"edit:{id}", edit_of=_source(item, before) or content.edit_of
        )
        return await self._replace_source(caller.scope, item, before, new)

    async def reextracted(self, item: Item, found: Content) -> Item:
        """Give an item the text that its kept page is read as now. `found` has the page's file."""
        before = await self._store.contents.get(item.library_id, item.content_id)
        if before.text == found.text:
            return item
        found = replace(found, about=before.about | found.about)
        id = new_shared_id()
        own = before.edit_of or before.key.startswith(OWN_KEY)
        key = f"edit:{id}" if own else before.key
        content = replace(found, id=id, key=key, edit_of=before.edit_of, redirected=())
        return await self._replace_source(Scope(item.library_id), item, before, content)

    async def _replace_source(
        self, scope: Scope, item: Item, before: Content, content: Content
    ) -> Item:
        changes = _of_source(item, before, content)
        made, changes = await self._prepared(item, content.text, content.marks, changes)
        return await self._replace(scope, item, content, made, changes, item.revision)

    async def _prepared(
        self, item: Item, text: str, marks: Sequence[Mark], changes: Changes
    ) -> tuple[Prepared, Changes]:
        made = await self._pipeline.prepare(
            replace(item, **changes),
            text,
            marks,
            auto_transform=item.metadata.get("auto_transform") is True,
        )
        return made, changes | {name: getattr(made.item, name) for name in OF_THE_TEXT}

    async def _replace(
        self,
        scope: Scope,
        item: Item,
        content: Content,
        made: Prepared,
        changes: Changes,
        expected_revision: int,
    ) -> Item:
        linked = item.entity_type != EntityType.DOCUMENT
        jobs = [*made.jobs, link_job(scope, made.item)] if linked else made.jobs
        changed = await self._store.items.replace_content(
            scope,
            item.id,
            content,
            changes,
            sections=made.sections,
            stamp=self._embedder.stamp,
            jobs=jobs,
            expected_revision=expected_revision,
        )
        if jobs:
            await self._wake.signal()
        return changed


def _of_source(item: Item, before: Content, content: Content) -> Changes:
    """Return the fields that a source gives: its title, unless somebody chose another one."""
    title = content.about["title"] if item.title == before.about.get("title") else item.title
    lost = ("truncated", PICTURE)
    about = {name: value for name, value in item.metadata.items() if name not in lost}
    return {"title": title, "metadata": about | metadata_of(content)}


def _require_text(item: Item) -> None:
    if item.state != "ready":
        raise Invalid(f"The item has no text to edit: it is {item.state}.", status=item.state)


def _without_language(item: Item, text: str) -> Item:
    """Forget the language of a note that was read off its text, which changes."""
    if item.kind != "text" or not item.text_language or detect(text) != item.text_language:
        return item
    others = {name: value for name, value in item.metadata.items() if name != "language"}
    return replace(item, metadata=others)


def _source(item: Item, before: Content) -> str:
    """Return the key by which the source of an edited text is found again; notes have none."""
    if before.edit_of or item.kind == "text":
        return before.edit_of
    moved = before.key.startswith(OWN_KEY)  # somebody has fetched the page again
    return url_key(item.url) if moved and item.url else before.key


def _titled(item: Item, before: str, after: str) -> Changes:
    """Let the title of a person's note follow its first line."""
    follows = item.origin == Origin.YOU and item.kind == "text"
    title = first_line(after)
    return {"title": title} if follows and title and item.title == first_line(before) else {}
