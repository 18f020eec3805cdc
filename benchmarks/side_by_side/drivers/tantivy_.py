from pathlib import Path

import tantivy
from drivers.base import Base, plain
from work import Work


class Driver(Base):
    """A bare index of words."""

    modes = ("keyword",)
    scopes = True
    batch = 5000

    def open(self, folder: Path, work: Work) -> None:
        self.work = work
        schema = tantivy.SchemaBuilder()
        schema.add_integer_field("n", stored=True, indexed=True, fast=True)
        schema.add_text_field("part", tokenizer_name="raw")
        schema.add_text_field("text", stored=True, tokenizer_name="en_stem")
        self.index = tantivy.Index(schema.build(), path=str(folder))
        self.index.reload()
        self.writer = self.index.writer(128_000_000, 1)

    def bulk(self, notes: range) -> None:
        for n in notes:
            self.writer.add_document(
                tantivy.Document(n=n, part=Work.group(n), text=self.work.texts[n])
            )
        self.writer.commit()
        self.index.reload()

    def search_text(self, mode, text, vector, group=None):
        words = plain(text).lower()  # AND, OR and NOT are words too
        query = f"text:({words})" if not group else f"+part:{group} +text:({words})"
        searcher = self.index.searcher()
        found = searcher.search(self.index.parse_query(query, ["text"]), 10).hits
        return [
            note["n"][0] for note in (searcher.doc(address) for _, address in found) if note["text"]
        ]

    def get(self, n: int) -> None:
        searcher = self.index.searcher()
        ((_, address),) = searcher.search(self.index.parse_query(f"n:{n}", ["n"]), 1).hits
        assert searcher.doc(address)["text"]

    def delete(self, n: int) -> None:
        self.writer.delete_documents("n", n)
        self.writer.commit()
        self.index.reload()

    def close(self) -> None:
        self.writer.wait_merging_threads()
