import os
from pathlib import Path

import numpy as np
from drivers.base import Base
from usearch.index import Index
from work import Work


class Driver(Base):
    """A bare index of vectors: no rows, no scopes, no transactions."""

    answers = "ids"
    durable = "no: memory, saved at the end"

    def open(self, folder: Path, work: Work) -> None:
        self.work, self.file = work, folder / "vectors.usearch"
        self.index = Index(ndim=work.dimensions, metric="ip", dtype="f16")
        if "BENCH_BREADTH" in os.environ:
            self.index.expansion_search = int(os.environ["BENCH_BREADTH"])
        if self.file.exists():
            self.index.load(str(self.file))

    def bulk(self, notes: range) -> None:
        self.index.add(
            np.arange(notes.start, notes.stop), self.work.vectors[notes.start : notes.stop]
        )

    def search_text(self, mode, text, vector, group=None):
        return [int(key) for key in self.index.search(vector, 10).keys]

    def get(self, n: int) -> None:
        assert self.index.get(n) is not None

    def delete(self, n: int) -> None:
        self.index.remove(n)

    def close(self) -> None:
        self.index.save(str(self.file))
