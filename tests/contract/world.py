"""A library and its oracle, changed together."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from commonplace.model import Item, ItemRef, Scope, new_id
from commonplace.store import Store
from tests.contract.library import DIMENSIONS, STAMP, Library, cut, packed, unit
from tests.contract.oracle import Kept, Oracle


class World:
    def __init__(self, library: Library, oracle: Oracle, folders: list[str], seed: int) -> None:
        self.library, self.oracle, self.folders = library, oracle, folders
        self.items: list[Item] = []
        self._random = np.random.default_rng(seed)

    @classmethod
    async def create(cls, store: Store, oracle: Oracle, seed: int = 0) -> "World":
        library = await Library.create(store)
        return cls(library, oracle, [await library.folder("a"), await library.folder("b")], seed)

    def vector(self) -> Any:
        return unit(self._random.normal(size=DIMENSIONS))

    async def add(self, size: int, folder: int | None = None, stamp: str = STAMP) -> None:
        vectors, name = (
            [self.vector() for _ in range(size)],
            f"item {len(self.oracle.items)} {new_id()}",
        )
        filed = None if folder is None else self.folders[folder]
        item = await self.library.add(
            "\n\n".join(f"{name} part {n}" for n in range(size)),
            title=name,
            folder=filed,
            vectors=vectors,
            stamp=stamp,
        )
        self.items.append(item)
        ids = await self.library.section_ids(item)
        self.oracle.items[item.id] = Kept(
            self.library.id,
            stamp,
            {filed} if filed else set(),
            dict(zip(ids, vectors, strict=True)),
        )

    async def apply(self, operation: str, which: int, folder: int) -> None:
        if operation == "add" or not self.items:
            return await self.add(1 + which % 4, None if which % 3 == 0 else folder)
        item, folder_id = self.items[which % len(self.items)], self.folders[folder]
        kept, store, scope = self.oracle.items[item.id], self.library.store, self.library.scope()
        if operation == "delete":
            await store.items.delete(scope, item.id)
            del self.oracle.items[item.id]
            self.items.remove(item)
        elif operation == "file":
            await store.items.file(scope, ItemRef(id=item.id), [folder_id], token_id=None)
            kept.folders.add(folder_id)
        elif operation == "unfile" and folder_id in kept.folders:
            await store.items.unfile(scope, ItemRef(id=item.id), folder_id)
            kept.folders.remove(folder_id)
        elif operation == "retitle":
            title = f"{item.title} {new_id()}"
            await store.items.update(
                scope,
                item.id,
                {"title": title},
                expected_revision=None,
                sections=cut(title),
                stamp=STAMP,
                jobs=(),
            )
            kept.vectors = {}
        elif operation == "embed":
            ids = await self.library.section_ids(item)
            kept.vectors, kept.stamp = {section_id: self.vector() for section_id in ids}, STAMP
            await store.sections.set_vectors(
                STAMP, {self.library.id: [(i, packed(v)) for i, v in kept.vectors.items()]}
            )
        return None

    async def check(self, store: Store | None = None) -> None:
        store, own = store or self.library.store, self.library.scope
        scopes = [
            own(),
            own(self.folders[0]),
            own(self.folders[1]),
            own(*self.folders),
            own(kb_only=True),
            Scope(self.library.id, frozenset()),
            own("no such folder"),
        ]
        for scope in scopes:
            for limit in (3, 50, 1):
                vector = self.vector()
                self.oracle.check(
                    scope,
                    vector,
                    STAMP,
                    limit,
                    await store.sections.nearest(scope, vector, STAMP, limit),
                )


operations = st.lists(
    st.tuples(
        st.sampled_from(["add", "delete", "file", "unfile", "retitle", "embed"]),
        st.integers(0, 7),
        st.integers(0, 1),
    ),
    min_size=3,
    max_size=10,
)
