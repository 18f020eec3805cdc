import os
import subprocess
import threading
import time
from pathlib import Path

from drivers.base import Server, number, plain
from drivers.http_ import Http, free_port
from work import Work

MODES = {"semantic": "vector", "keyword": "text", "hybrid": "hybrid"}


class Driver(Server):
    over = "MCP"
    own_vectors = True  # it embeds chunks with their titles
    modes = ("keyword", "semantic", "hybrid")
    batch = 100

    def open(self, folder: Path, work: Work) -> None:
        self.work, self.port, self.notes = work, free_port(), folder / "notes"
        # It may live in a Debian of its own, for a Python whose sqlite3 loads extensions: its vectors lie in one.
        root, bin_ = os.environ.get("BENCH_ROOT", ""), os.environ["BENCH_PEER"]
        self.command = (
            ["chroot", root, f"{bin_.removeprefix(root)}/basic-memory"]
            if root
            else [f"{bin_}/basic-memory"]
        )
        home = str(folder).removeprefix(root)
        self.env = os.environ | {
            "PYTHONPATH": "",
            "HOME": home,
            "BASIC_MEMORY_HOME": f"{home}/notes",
            "BASIC_MEMORY_CONFIG_DIR": f"{home}/config",
            "BASIC_MEMORY_SEMANTIC_SEARCH_ENABLED": "true",
            "BASIC_MEMORY_SYNC_CHANGES": "false",
            "BASIC_MEMORY_AUTO_UPDATE": "false",
            "BASIC_MEMORY_SEMANTIC_EMBEDDING_PROVIDER": "litellm",
            "BASIC_MEMORY_SEMANTIC_EMBEDDING_MODEL": "openai/static",
            "BASIC_MEMORY_SEMANTIC_EMBEDDING_API_BASE": os.environ["BENCH_EMBEDDING"],
            "BASIC_MEMORY_SEMANTIC_EMBEDDING_API_KEY": "none",
            "BASIC_MEMORY_SEMANTIC_EMBEDDING_DIMENSIONS": str(work.dimensions),
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }
        self.server = subprocess.Popen(
            [
                *self.command,
                "mcp",
                "--transport",
                "streamable-http",
                "--host",
                "127.0.0.1",
                "--port",
                str(self.port),
            ],
            env=self.env,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=(folder / "server.log").open("ab"),
        )
        self.http, self.local = Http(self.port), threading.local()
        self.http.wait("/", self.server)

    def _session(self) -> str:
        if not hasattr(self.local, "session"):
            told = self.http.ask(
                "POST",
                "/mcp",
                {
                    "jsonrpc": "2.0",
                    "id": 0,
                    "method": "initialize",
                    "params": {
                        "protocolVersion": "2025-06-18",
                        "capabilities": {},
                        "clientInfo": {"name": "bench", "version": "1"},
                    },
                },
            )[1]
            self.local.session = told.get("mcp-session-id", "")
            self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self.local.session

    def _post(self, message: dict):
        return self.http.ask(
            "POST",
            "/mcp",
            message,
            {"Mcp-Session-Id": self._session(), "MCP-Protocol-Version": "2025-06-18"},
        )

    def _call(self, tool: str, arguments: dict):
        status, _, answer = self._post(
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {
                    "name": tool,
                    "arguments": arguments | {"output_format": "json", "project": "main"},
                },
            }
        )
        if status != 200 or "result" not in answer or answer["result"].get("isError"):
            raise RuntimeError(f"{status} {answer}"[:400])
        content = answer["result"].get("structuredContent") or {}
        return content.get("result", content)

    def add(self, n: int) -> None:
        answer = self._call(
            "write_note",
            {"title": Work.name(n), "content": self.work.texts[n], "directory": Work.group(n)},
        )
        if not isinstance(answer, dict) or answer.get("error"):
            raise RuntimeError(str(answer)[:300])

    def lay_out(self, notes: range) -> None:
        for n in notes:
            file = self.notes / Work.group(n) / f"{Work.name(n)}.md"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(
                f"---\ntitle: {Work.name(n)}\ntype: note\n---\n\n{self.work.texts[n]}",
                "utf-8",
                "ignore",
            )

    def bulk(self, notes: range) -> None:
        done = subprocess.run(
            [*self.command, "reindex", "-p", "main"], env=self.env, capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError((done.stderr or done.stdout)[-300:])

    def besides(self) -> float:
        gone = os.times()
        return gone.children_user + gone.children_system

    def settle(self, patience: float) -> None:
        """Vectors are made behind its back: until the last notes are found by them."""
        end = time.monotonic() + patience
        while "semantic" in self.modes and not self.search_text(
            "semantic", self.work.texts[-1][:300], None
        ):
            if time.monotonic() > end:
                raise TimeoutError("vectors are not there yet")
            time.sleep(0.2)

    def search_text(self, mode, text, vector, group=None):
        words = " OR ".join(plain(text).split()) if mode == "keyword" else text
        answer = self._call(
            "search_notes", {"query": words, "search_type": MODES[mode], "page_size": 10}
        )
        if not isinstance(answer, dict):
            raise RuntimeError(str(answer)[:300])
        return [
            number(hit["title"]) for hit in answer["results"] if hit["title"].startswith("note-")
        ]

    def get(self, n: int) -> None:
        assert self._call("read_note", {"identifier": f"{Work.group(n)}/{Work.name(n)}"})

    def delete(self, n: int) -> None:
        self._call("delete_note", {"identifier": f"{Work.group(n)}/{Work.name(n)}"})
