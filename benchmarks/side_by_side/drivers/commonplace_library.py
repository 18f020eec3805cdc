import asyncio
import os
import time
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import uvloop
from drivers.base import Base, number
from work import GROUPS, Work

from commonplace.app import open_app
from commonplace.core.items.drafts import Draft, Record
from commonplace.core.transfer.markdown_folder import AT_ONCE
from commonplace.model import Caller, Item, Mode, new_id, new_public_id
from commonplace.settings import Settings


class Driver(Base):
    """The product without a server around it: every verb with its check of who may, its embedding and its log; a worker beside."""

    own_vectors = True  # the title is embedded with the text
    modes = ("semantic", "keyword", "hybrid")
    scopes = True
    batch = 500

    def open(self, folder: Path, work: Work) -> None:
        self.work, self.loop, self.stack = work, uvloop.new_event_loop(), AsyncExitStack()
        self._run(self._open(folder))

    def _run(self, step):
        return self.loop.run_until_complete(step)

    async def _open(self, folder: Path) -> None:
        self.app = await self.stack.enter_async_context(
            open_app(Settings(data_dir=folder / "data", embedder="static"), workers=1)
        )
        await self.app.people.ensure_owner()
        self.owner = await self.app.access.owner()
        self.folders = {
            each.name: each.id for each in await self.app.folders.list_folders(self.owner)
        }

    def prepare(self) -> None:
        self.ids: dict[int, str] = {}
        for name in map(Work.group, range(GROUPS)):
            self.folders[name] = self._run(self.app.folders.create(self.owner, name)).id

    def _within(self, group: "str | None") -> Caller:
        return (
            replace(self.owner, folders=frozenset({self.folders[group]})) if group else self.owner
        )

    def add(self, n: int) -> None:
        draft = Draft("text", Work.name(n), self.work.texts[n])
        self.ids[n] = self._run(self.app.library.add(self._within(Work.group(n)), draft)).item.id

    def bulk(self, notes: range) -> None:
        self._run(self._put_all(notes))

    async def _put_all(self, notes: range) -> None:
        """As an import does."""

        async def lots():
            for start in range(notes.start, notes.stop, AT_ONCE):
                yield [
                    Record(
                        Item(
                            new_id(),
                            self.owner.library_id,
                            new_public_id(),
                            "",
                            "document",
                            "text",
                            Work.name(n),
                            folders=(self.folders[Work.group(n)],),
                        ),
                        self.work.texts[n],
                    )
                    for n in range(start, min(start + AT_ONCE, notes.stop))
                ]

        async for _ in self.app.bulk_import.put_batches(self.owner, lots()):
            pass

    def settle(self, patience: float) -> None:
        end = time.monotonic() + patience
        while self._run(self.app.store.jobs.count_open("embed", self.owner.scope))[0]:
            if time.monotonic() > end:
                raise TimeoutError("vectors are not there yet")
            self._run(asyncio.sleep(0.05))

    def idle(self, seconds: float) -> None:
        self._run(asyncio.sleep(seconds))

    async def _search(self, mode: str, text: str, group: "str | None" = None) -> list[str]:
        found = await self.app.search.search(self._within(group), text, limit=10, mode=Mode(mode))
        return [hit.passage.title for hit in found.hits]

    def search_text(self, mode, text, vector, group=None):
        return [number(title) for title in self._run(self._search(mode, text, group))]

    def together(self, mode: str, questions: list[int], clients: int) -> None:
        left = iter(questions)

        async def client() -> None:
            for q in left:
                await self._search(mode, self.work.questions[q])

        async def clients_() -> None:
            await asyncio.gather(*(client() for _ in range(clients)))

        self._run(clients_())

    def get(self, n: int) -> None:
        assert self._run(self.app.library.read(self.owner, self.ids[n])).text == self.work.texts[n]

    def delete(self, n: int) -> None:
        self._run(self.app.library.delete(self.owner, self.ids[n]))

    def close(self) -> None:
        self._run(self.stack.aclose())
        self.loop.close()

    def pids(self) -> list[int]:
        return [os.getpid()]
