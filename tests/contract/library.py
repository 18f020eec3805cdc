"""A library in a store, and the short words the contract suite speaks about it in."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.model import (
    Content,
    Folder,
    Item,
    Job,
    Person,
    Scope,
    Section,
    Token,
    new_id,
    new_public_id,
    now,
)
from commonplace.store import Store
from commonplace.text.query_terms import extra_terms, parse_query

STAMP = "test/16"
DIMENSIONS = 16


def unit(values: Any) -> NDArray[np.float32]:
    vector = np.asarray(values, np.float32)
    return vector / np.linalg.norm(vector)


def packed(vector: NDArray[np.float32]) -> bytes:
    return vector.astype(np.float16).tobytes()


def cut(text: str, vectors: Sequence[NDArray[np.float32]] = ()) -> list[Section]:
    """A section for each paragraph."""
    return [
        Section(
            position=n,
            text=part,
            extra=extra_terms(part),
            word_count=len(part.split()),
            vector=packed(vectors[n]) if vectors else None,
        )
        for n, part in enumerate(text.split("\n\n"))
    ]


@dataclass(frozen=True)
class Library:
    store: Store
    id: str

    @classmethod
    async def create(cls, store: Store, name: str = "ann") -> "Library":
        person = Person(
            id=new_id(), name=name, email=f"{name}-{new_id()}@example.com", created_at=now()
        )
        await store.people.create(person)
        return cls(store, person.id)

    def scope(self, *folders: str, kb_only: bool = False) -> Scope:
        return Scope(self.id, frozenset(folders) if folders else None, kb_only)

    async def folder(self, name: str, parent_id: str | None = None) -> str:
        folder = Folder(new_id(), self.id, name, now(), parent_id)
        await self.store.folders.create(Scope(self.id), folder)
        return folder.id

    async def token(self, *folders: str, digest: str | None = None, **changes: Any) -> Token:
        token = Token(
            **{
                "id": new_id(),
                "library_id": self.id,
                "person_id": self.id,
                "name": "t",
                "capabilities": frozenset(),
                "folders": frozenset(folders) if folders else None,
                "kb_only": False,
                "created_at": now(),
                "expires_at": None,
            }
            | changes
        )
        await self.store.tokens.create(token, digest or new_id())
        return token

    async def add(
        self,
        text: str,
        *,
        title: str = "Untitled",
        folder: str | None = None,
        scope: Scope | None = None,
        key: str | None = None,
        vectors: Sequence[NDArray[np.float32]] = (),
        stamp: str = STAMP,
        job: bool = False,
        **changes: Any,
    ) -> Item:
        item, _ = await self.put(
            text,
            title=title,
            folder=folder,
            scope=scope,
            key=key,
            vectors=vectors,
            stamp=stamp,
            job=job,
            **changes,
        )
        return item

    async def put(
        self,
        text: str,
        *,
        title: str = "Untitled",
        folder: str | None = None,
        scope: Scope | None = None,
        key: str | None = None,
        vectors: Sequence[NDArray[np.float32]] = (),
        stamp: str = STAMP,
        job: bool = False,
        **changes: Any,
    ) -> tuple[Item, bool]:
        item = Item(
            **{
                "id": new_id(),
                "library_id": self.id,
                "public_id": new_public_id(),
                "content_id": new_id(),
                "entity_type": "document",
                "kind": "text",
                "title": title,
            }
            | changes
        )
        content = Content(
            id=item.content_id,
            text=text,
            key=key or f"{self.id}:{hashlib.sha256(text.encode()).hexdigest()}",
        )
        return await self.store.items.add(
            item,
            content,
            cut(text, vectors) if item.in_kb else [],
            scope=scope or self.scope(),
            folder_id=folder,
            stamp=stamp,
            jobs=[Job(id=new_id(), library_id=self.id, item_id=item.id, kind="embed")]
            if job
            else [],
        )

    async def found(self, query: str, scope: Scope | None = None) -> list[str]:
        """Titles by keyword, best first."""
        scope = scope or self.scope()
        hits = await self.store.sections.keyword(scope, parse_query(query), 100)
        titles = {
            p.section_id: p.title
            for p in await self.store.sections.passages(scope, [hit.section_id for hit in hits])
        }
        assert len(titles) == len(hits), "keyword found what the scope cannot load"
        return [titles[hit.section_id] for hit in hits]

    async def section_ids(self, item: Item) -> list[int]:
        found = await self.store.sections.without_vectors({self.id: [item.id]}, "no such stamp")
        return [lacks.section_id for lacks in found]
