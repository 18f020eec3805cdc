import os
import subprocess
from pathlib import Path

from drivers.base import Server
from drivers.http_ import Http, free_port
from work import Work


class Driver(Server):
    over = "REST"
    batch = 50
    durable = "no: written, not flushed"

    def open(self, folder: Path, work: Work) -> None:
        self.work, port = work, free_port()
        env = os.environ | {
            "PYTHONPATH": "",
            "HOME": str(folder),
            "MCP_MEMORY_BASE_DIR": str(folder / "base"),
            "MCP_MEMORY_STORAGE_BACKEND": "sqlite_vec",
            "MCP_ALLOW_ANONYMOUS_ACCESS": "true",
            "MCP_OAUTH_ENABLED": "false",
            "MCP_HTTP_RATE_LIMIT_ENABLED": "false",
            "MCP_MDNS_ENABLED": "false",
            "MCP_EXTERNAL_EMBEDDING_URL": os.environ["BENCH_EMBEDDING"] + "/embeddings",
            "MCP_EXTERNAL_EMBEDDING_MODEL": "static",
            "MCP_CONSOLIDATION_ENABLED": "false",
        }
        command = [
            str(Path(os.environ["BENCH_PEER"]) / "memory"),
            "server",
            "--http",
            "--http-port",
            str(port),
        ]
        self.server = subprocess.Popen(
            command,
            env=env,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=(folder / "server.log").open("ab"),
        )
        self.http = Http(port)
        try:
            self.http.wait("/api/health", self.server)
        except RuntimeError as error:
            raise RuntimeError(f"{error}: {(folder / 'server.log').read_text()[-300:]}") from None
        if not hasattr(self, "ids"):
            self.ids: dict[int, str] = {}
            self.numbers: dict[str, int] = {}

    def _ask(self, method: str, path: str, body=None):
        status, _, answer = self.http.ask(method, path, body)
        if status >= 300:
            raise RuntimeError(f"{status} {answer}")
        return answer

    def add(self, n: int) -> None:
        # A conversation's memories are not looked through for what is alike, which would drop some.
        kept = self._ask(
            "POST",
            "/api/memories",
            {"content": self.work.texts[n], "tags": [Work.group(n)], "conversation_id": "bench"},
        )
        if not kept.get("content_hash"):
            raise RuntimeError(str(kept))
        self.ids[n] = kept["content_hash"]
        self.numbers[kept["content_hash"]] = n

    def bulk(self, notes: range) -> None:
        for n in notes:
            self.add(n)

    def search_text(self, mode, text, vector, group=None):
        found = self._ask("POST", "/api/search", {"query": text, "n_results": 10})
        return [self.numbers[hit["memory"]["content_hash"]] for hit in found["results"]]

    def get(self, n: int) -> None:
        assert self._ask("GET", f"/api/memories/{self.ids[n]}")["content"]

    def delete(self, n: int) -> None:
        self._ask("DELETE", f"/api/memories/{self.ids[n]}")
