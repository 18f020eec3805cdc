import os
from pathlib import Path

from drivers.base import Base
from work import Work


class Driver(Base):
    """Kept as they are (infer=False): what a language model would make of them is not compared here."""

    own_vectors = True  # line breaks are taken out before embedding
    scopes = True
    batch = 50

    def open(self, folder: Path, work: Work) -> None:
        os.environ |= {
            "MEM0_TELEMETRY": "False",
            "MEM0_DIR": str(folder / "home"),
            "OPENAI_API_KEY": "none",
        }
        from mem0 import Memory

        self.work = work
        if not hasattr(self, "ids"):
            self.ids: dict[int, str] = {}
        where = os.environ["BENCH_EMBEDDING"]
        self.memory = Memory.from_config(
            {
                "vector_store": {
                    "provider": "qdrant",
                    "config": {
                        "path": str(folder / "qdrant"),
                        "on_disk": True,
                        "embedding_model_dims": work.dimensions,
                    },
                },
                "embedder": {
                    "provider": "openai",
                    "config": {
                        "model": "static",
                        "api_key": "none",
                        "openai_base_url": where,
                        "embedding_dims": work.dimensions,
                    },
                },
                "llm": {
                    "provider": "openai",
                    "config": {"api_key": "none", "openai_base_url": where},
                },
                "history_db_path": str(folder / "history.db"),
            }
        )

    def add(self, n: int) -> None:
        kept = self.memory.add(
            self.work.texts[n],
            user_id=Work.group(n),
            agent_id="all",
            metadata={"n": n},
            infer=False,
        )
        self.ids[n] = kept["results"][0]["id"]

    def bulk(self, notes: range) -> None:
        for n in notes:
            self.add(n)

    def search_text(self, mode, text, vector, group=None):
        found = self.memory.search(
            text, top_k=10, filters={"user_id": group} if group else {"agent_id": "all"}
        )
        return [hit["metadata"]["n"] for hit in found["results"]]

    def get(self, n: int) -> None:
        assert self.memory.get(self.ids[n])["memory"]

    def delete(self, n: int) -> None:
        self.memory.delete(self.ids[n])

    def close(self) -> None:
        self.memory.vector_store.client.close()
