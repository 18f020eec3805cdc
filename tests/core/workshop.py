"""A library with work in it, for tests that go past the faces."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commonplace.app import open_app
from commonplace.core.services import Services
from commonplace.model import (
    Caller,
    Content,
    Item,
    ItemRef,
    Kind,
    Relation,
    Section,
    new_id,
    new_public_id,
)
from commonplace.model.workflow import EPIC, TASK
from commonplace.settings import Settings

FIRST = {"task": TASK.start, "epic": EPIC.start}


@dataclass(frozen=True)
class Workshop:
    app: Services
    owner: Caller

    async def make(
        self,
        entity_type: str,
        title: str,
        *,
        joined: dict[Kind, list[Item]] | None = None,
        **fields: Any,
    ) -> Item:
        item = Item(
            **{
                "id": new_id(),
                "library_id": self.owner.library_id,
                "public_id": new_public_id(),
                "content_id": "",
                "entity_type": entity_type,
                "kind": "text",
                "title": title,
                "status": FIRST.get(entity_type, ""),
            }
            | fields
        )
        relations = [
            Relation(item.library_id, item.id, kind, other.id)
            for kind, others in (joined or {}).items()
            for other in others
        ]
        content = Content(new_id(), new_id(), f"What {title} is about.")
        made, _ = await self.app.store.items.add(
            item,
            content,
            [Section(0, content.text)],
            scope=self.owner.scope,
            folder_id=None,
            stamp=self.app.embedder.stamp,
            jobs=[],
            relations=relations,
            once=False,
        )
        return made

    async def again(self, item: Item) -> Item:
        return await self.app.store.items.get(self.owner.scope, ItemRef(id=item.id))


@asynccontextmanager
async def open_workshop(folder: Path) -> AsyncIterator[Workshop]:
    async with open_app(Settings(data_dir=folder, embedder="static")) as app:
        await app.people.ensure_owner()
        owner = await app.access.owner()
        assert owner is not None
        yield Workshop(app, owner)
