from pathlib import Path

import numpy as np
from drivers.base import Base
from txtai import Embeddings
from work import Work


class Driver(Base):
    modes = ("semantic", "keyword", "hybrid")
    scopes = True
    batch = 1000
    durable = "no: memory, saved at the end"

    def open(self, folder: Path, work: Work) -> None:
        self.work, self.place, self.waiting = work, folder / "index", {}
        transform = lambda texts: np.array([self.waiting[text] for text in texts], np.float32)  # noqa: E731 - it takes a method for a class
        self.base = Embeddings({"method": "external", "transform": transform, "content": True, "hybrid": True,
                                "columns": {"text": "text"}})
        if self.place.exists():
            self.base.load(str(self.place), config={"transform": transform})

    def bulk(self, notes: range) -> None:
        self.waiting |= {self.work.texts[n]: self.work.vectors[n] for n in notes}
        self.base.upsert([(n, {"text": self.work.texts[n], "part": Work.group(n)}, None) for n in notes])
        self.waiting.clear()

    def together(self, mode: str, questions: list[int], clients: int) -> None:
        """Its index and its database must not be used by two threads at once: whoever serves it to several lets them take turns."""
        for q in questions:
            self.search(mode, q)

    def search_text(self, mode, text, vector, group=None):
        self.waiting[text] = vector
        weights = {"semantic": 1.0, "keyword": 0.0, "hybrid": 0.5}[mode]
        if group:
            found = self.base.search("SELECT id FROM txtai WHERE similar(:asked) AND part = :part LIMIT 10", 10, weights,
                                     parameters={"asked": text, "part": group})
        else:
            found = self.base.search(text, 10, weights)
        return [int(hit["id"]) for hit in found]

    def get(self, n: int) -> None:
        assert self.base.search("SELECT text FROM txtai WHERE id = :n", 1, parameters={"n": n})

    def delete(self, n: int) -> None:
        self.base.delete([n])

    def close(self) -> None:
        self.base.save(str(self.place))
        self.base.close()
