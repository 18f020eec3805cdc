import os
import subprocess
from pathlib import Path

from drivers.base import Server, number
from drivers.http_ import Http, free_port
from work import GROUPS, Work

LOGIN = {"email": "bench@example.com", "password": "bench-Bench-1234567", "name": "bench"}


class Driver(Server):
    """The server with its embedded database. Each group is a project; searching is its own mixture, there is no other."""

    over = "REST"
    own_vectors = True  # the name is embedded with the text
    modes = ("hybrid",)
    scopes = True
    batch = 5
    durable = "no: written, not flushed"

    def open(self, folder: Path, work: Work) -> None:
        self.work, port, home = work, free_port(), Path(os.environ["BENCH_PEER"]).parent
        # What counts tokens would fetch its list from the network; the same list lies in a package that Sibyl installs.
        lists = next(home.glob("lib/python*/site-packages/litellm/litellm_core_utils/tokenizers"))
        env = os.environ | {
            "PYTHONPATH": "",
            "HOME": str(folder),
            "SIBYL_EMBEDDED_DATA_DIR": str(folder / "data"),
            "SIBYL_RATE_LIMIT_ENABLED": "false",
            "SIBYL_JWT_SECRET": "bench" * 8,
            "SIBYL_ACCESS_TOKEN_EXPIRE_MINUTES": "600",
            "TIKTOKEN_CACHE_DIR": str(lists),
            "OPENAI_BASE_URL": os.environ["BENCH_EMBEDDING"],
            "OPENAI_API_KEY": "none",
            "SIBYL_OPENAI_API_KEY": "none",
            "SIBYL_EMBEDDING_DIMENSIONS": str(work.dimensions),
            "SIBYL_GRAPH_EMBEDDING_DIMENSIONS": str(work.dimensions),
        }
        command = [
            str(home / "bin" / "sibyld"),
            "serve",
            "--embedded",
            "--host",
            "127.0.0.1",
            "--port",
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
        self.http.wait("/api/health", self.server)
        if not hasattr(self, "ids"):
            self.ids: dict[int, str] = {}
            self.projects: dict[str, str] = {}
            self.token = self._ask("POST", "/api/auth/local/signup", LOGIN)["access_token"]

    def prepare(self) -> None:
        for n in range(GROUPS):
            project = {
                "name": Work.group(n),
                "content": "a part of the notes",
                "entity_type": "project",
                "skip_conflicts": True,
            }
            self.projects[Work.group(n)] = self._ask("POST", "/api/entities?sync=true", project)[
                "id"
            ]

    def _ask(self, method: str, path: str, body=None):
        bearer = {"Authorization": f"Bearer {self.token}"} if hasattr(self, "token") else {}
        status, _, answer = self.http.ask(method, path, body, bearer)
        if status >= 300:
            raise RuntimeError(f"{status} {answer}"[:400])
        return answer

    def _entity(self, n: int) -> dict:
        return {
            "name": Work.name(n),
            "content": self.work.texts[n],
            "entity_type": "episode",
            "metadata": {"project_id": self.projects[Work.group(n)]},
        }

    def add(self, n: int) -> None:
        self.ids[n] = self._ask("POST", "/api/entities?sync=true", self._entity(n))["id"]

    def bulk(self, notes: range) -> None:
        # Its call for many answers sooner and then works on them for longer than this takes, while searches wait.
        for n in notes:
            self.add(n)

    def search_text(self, mode, text, vector, group=None):
        narrow = {"project": self.projects[group]} if group else {}
        found = self._ask("POST", "/api/search", {"query": text, "limit": 10, **narrow})
        return [number(hit["name"]) for hit in found["results"] if hit["name"].startswith("note-")]

    def get(self, n: int) -> None:
        assert self._ask("GET", f"/api/entities/{self.ids[n]}")["content"]

    def delete(self, n: int) -> None:
        self._ask("DELETE", f"/api/entities/{self.ids[n]}")
