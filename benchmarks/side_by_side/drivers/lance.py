from pathlib import Path

import lancedb
import pyarrow as pa
from drivers.base import Base, number, plain
from work import Work


class Driver(Base):
    modes = ("semantic", "keyword", "hybrid")
    scopes = True
    batch = 5000
    table = None
    durable = "no: written, not flushed"

    def open(self, folder: Path, work: Work) -> None:
        self.work = work
        db = lancedb.connect(str(folder))
        schema = pa.schema(
            [
                ("id", pa.string()),
                ("group", pa.string()),
                ("text", pa.string()),
                ("vector", pa.list_(pa.float32(), work.dimensions)),
            ]
        )
        self.table = (
            db.open_table("notes")
            if "notes" in db.table_names()
            else db.create_table("notes", schema=schema)
        )

    def bulk(self, notes: range) -> None:
        self.table.add(
            [
                {
                    "id": Work.name(n),
                    "group": Work.group(n),
                    "text": self.work.texts[n],
                    "vector": self.work.vectors[n],
                }
                for n in notes
            ]
        )

    def settle(self, patience: float) -> None:
        # Keyword search needs an index, which is made once all is there; names and groups are found faster by one.
        self.table.create_scalar_index("id", replace=True)
        self.table.create_scalar_index("group", index_type="BITMAP", replace=True)
        self.table.create_fts_index("text", replace=True)
        self.table.optimize()

    def search_text(self, mode, text, vector, group=None):
        if mode == "keyword":
            query = self.table.search(plain(text), query_type="fts")
        elif mode == "semantic":
            query = self.table.search(vector).distance_type("dot")
        else:
            query = self.table.search(query_type="hybrid").vector(vector).text(plain(text))
        if group:
            query = query.where(f"`group` = '{group}'", prefilter=True)
        found = query.limit(10).select(["id", "text"]).to_arrow().to_pylist()
        return [number(row["id"]) for row in found]

    def get(self, n: int) -> None:
        assert (
            self.table.search()
            .where(f"id = '{Work.name(n)}'")
            .limit(1)
            .select(["text"])
            .to_arrow()
            .num_rows
        )

    def delete(self, n: int) -> None:
        self.table.delete(f"id = '{Work.name(n)}'")
