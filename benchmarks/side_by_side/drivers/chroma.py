from pathlib import Path

import chromadb
from drivers.base import Base, number
from work import Work


class Driver(Base):
    scopes = True
    batch = 5000

    def open(self, folder: Path, work: Work) -> None:
        self.work = work
        self.client = chromadb.PersistentClient(
            str(folder), chromadb.Settings(anonymized_telemetry=False)
        )
        self.notes = self.client.get_or_create_collection(
            "notes", metadata={"hnsw:space": "ip"}, embedding_function=None
        )

    def bulk(self, notes: range) -> None:
        self.notes.add(
            ids=[Work.name(n) for n in notes],
            embeddings=self.work.vectors[notes.start : notes.stop],
            documents=[self.work.texts[n] for n in notes],
            metadatas=[{"group": Work.group(n)} for n in notes],
        )

    def search_text(self, mode, text, vector, group=None):
        found = self.notes.query(
            query_embeddings=[vector], n_results=10, where={"group": group} if group else None
        )
        return [number(name) for name in found["ids"][0]]

    def get(self, n: int) -> None:
        assert self.notes.get(ids=[Work.name(n)])["documents"]

    def delete(self, n: int) -> None:
        self.notes.delete(ids=[Work.name(n)])
