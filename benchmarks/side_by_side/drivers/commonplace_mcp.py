import json
import os
import subprocess
import sys
import time
from pathlib import Path

from drivers.base import Server, number
from drivers.http_ import Http, free_port
from work import GROUPS, Work

PROTOCOL = "2026-07-28"


class Driver(Server):
    """The product as a client sees it: a real server, tokens of one folder each, `commonplace import` for many at once."""

    over = "MCP"
    own_vectors = True  # the title is embedded with the text
    modes = ("semantic", "keyword", "hybrid")
    scopes = True
    batch = 10_000  # a folder is imported by one command

    def open(self, folder: Path, work: Work) -> None:
        self.work, self.folder = work, folder
        self.env = os.environ | {
            "COMMONPLACE_DATA_DIR": str(folder / "data"),
            "COMMONPLACE_EMBEDDER": "static",
            **{
                f"COMMONPLACE_RATE_{name}": "0"
                for name in (
                    "REQUESTS_PER_MINUTE",
                    "READS_PER_HOUR",
                    "WRITES_PER_HOUR",
                    "DELETES_PER_HOUR",
                )
            },
        }
        port, first = free_port(), not (folder / "data").exists()
        self.server = subprocess.Popen(
            [sys.executable, "-m", "commonplace", "serve", "--port", str(port)],
            env=self.env,
            stdout=subprocess.DEVNULL,
            stderr=(folder / "server.log").open("ab"),
        )
        self.http = Http(port)
        self.http.wait("/healthz", self.server)
        if first:
            made = subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "commonplace",
                    "token",
                    "create",
                    "--name",
                    "bench",
                    "--write",
                    "--json",
                ],
                env=self.env,
                capture_output=True,
                check=True,
                text=True,
            )
            self.token, self.tokens, self.ids = json.loads(made.stdout)["token"], {}, {}

    def prepare(self) -> None:
        """A folder and a token for each group: not a part of starting."""
        for n in range(GROUPS):
            name = Work.group(n)
            folder = self._rest("POST", "/api/v1/folders", {"name": name})["id"]
            self.tokens[name] = self._rest(
                "POST",
                "/api/v1/tokens",
                {"name": name, "capabilities": ["read", "write"], "folder_ids": [folder]},
            )["token"]

    def _rest(self, method: str, path: str, body=None, token: "str | None" = None):
        status, _, answer = self.http.ask(
            method, path, body, {"Authorization": f"Bearer {token or self.token}"}
        )
        assert status < 300, answer
        return answer

    def _call(self, token: str, tool: str, arguments: dict) -> dict:
        meta = {
            "io.modelcontextprotocol/protocolVersion": PROTOCOL,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        status, _, answer = self.http.ask(
            "POST",
            "/mcp",
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"name": tool, "arguments": arguments, "_meta": meta},
            },
            {
                "Authorization": f"Bearer {token}",
                "MCP-Protocol-Version": PROTOCOL,
                "Mcp-Method": "tools/call",
                "Mcp-Name": tool,
            },
        )
        assert status == 200 and "result" in answer, answer
        return answer["result"]["structuredContent"]

    def _keep(self, token: str, note: dict) -> dict:
        return self._call(token, "add_to_knowledge", note)

    def _find(self, token: str, question: dict) -> dict:
        return self._call(token, "search_knowledge_base", question)

    def _read(self, item: str) -> dict:
        return self._call(self.token, "get_item", {"item_id": item})

    def add(self, n: int) -> None:
        kept = self._keep(
            self.tokens[Work.group(n)],
            {"kind": "text", "title": Work.name(n), "text": self.work.texts[n]},
        )
        self.ids[n] = kept["user_item_id"]

    def lay_out(self, notes: range) -> None:
        root = self.folder / f"import-{notes.start}"
        for n in notes:
            file = root / Work.group(n) / f"{Work.name(n)}.md"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(
                f"---\ntitle: {Work.name(n)}\n---\n{self.work.texts[n]}", "utf-8", "ignore"
            )

    def bulk(self, notes: range) -> None:
        root = self.folder / f"import-{notes.start}"
        done = subprocess.run(
            [sys.executable, "-m", "commonplace", "import", str(root)],
            env=self.env,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(done.stderr[-300:])
        subprocess.run(["rm", "-r", str(root)], check=True)

    def settle(self, patience: float) -> None:
        end = time.monotonic() + patience
        while self._find(self.token, {"query": "anything", "mode": "semantic"})["degraded"]:
            if time.monotonic() > end:
                raise TimeoutError("vectors are not there yet")
            time.sleep(0.1)

    def search_text(self, mode, text, vector, group=None):
        found = self._find(
            self.tokens[group] if group else self.token, {"query": text, "mode": mode, "limit": 10}
        )
        return [number(hit["title"]) for hit in found["hits"]]

    def get(self, n: int) -> None:
        assert self._read(self.ids[n])["text"] == self.work.texts[n]

    def delete(self, n: int) -> None:
        self._rest("DELETE", f"/api/v1/items/{self.ids[n]}")

    def besides(self) -> float:
        gone = os.times()
        return gone.children_user + gone.children_system
