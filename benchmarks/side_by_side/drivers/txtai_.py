import os
import subprocess
from pathlib import Path

from drivers.base import Server
from drivers.http_ import Http, free_port
from work import Work

WEIGHTS = {"semantic": 1.0, "keyword": 0.0, "hybrid": 0.5}
WHOLE = "SELECT id, text FROM txtai WHERE similar(:asked) LIMIT 10"
WITHIN = "SELECT id, text FROM txtai WHERE similar(:asked) AND part = :part LIMIT 10"


class Driver(Server):
    """Its own server. What is added waits until it is asked to index it, which also saves the index."""

    over = "REST"
    durable = "in part: its database, not its index"
    modes = ("semantic", "keyword", "hybrid")
    scopes = True
    batch = 500

    def open(self, folder: Path, work: Work) -> None:
        self.work, port, config = work, free_port(), folder / "config.yml"
        config.write_text(
            f"writable: true\npath: {folder / 'index'}\nembeddings:\n  method: external\n"
            "  transform: txtai_vectors.vectors\n  content: true\n  hybrid: true\n"
        )
        env = os.environ | {
            "CONFIG": str(config),
            "ALLOW_RESOLVE_TRANSFORM": "True",
            "PYTHONPATH": str(Path(__file__).parent),
            "HOME": str(folder),
        }
        command = [
            f"{os.environ['BENCH_PEER']}/python",
            "-m",
            "uvicorn",
            "txtai.api:app",
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
            "--log-level",
            "warning",
        ]
        self.server = subprocess.Popen(
            command,
            env=env,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=(folder / "server.log").open("ab"),
        )
        self.http = Http(port)
        self.http.wait("/count", self.server)

    def _ask(self, method: str, path: str, body=None):
        status, _, answer = self.http.ask(method, path, body)
        if status >= 300:
            raise RuntimeError(f"{status} {answer}"[:400])
        return answer

    def bulk(self, notes: range) -> None:
        self._ask(
            "POST",
            "/add",
            [{"id": n, "text": self.work.texts[n], "part": Work.group(n)} for n in notes],
        )
        self._ask("GET", "/upsert")

    def search_text(self, mode, text, vector, group=None):
        (found,) = self._ask(
            "POST",
            "/batchsearch",
            {
                "queries": [WITHIN if group else WHOLE],
                "limit": 10,
                "weights": WEIGHTS[mode],
                "parameters": [{"asked": text, "part": group} if group else {"asked": text}],
            },
        )
        return [int(hit["id"]) for hit in found]

    def get(self, n: int) -> None:
        ((found,),) = self._ask(
            "POST",
            "/batchsearch",
            {
                "queries": ["SELECT text FROM txtai WHERE id = :n"],
                "limit": 1,
                "parameters": [{"n": n}],
            },
        )
        assert found["text"]

    def delete(self, n: int) -> None:
        self._ask("POST", "/delete", [n])
