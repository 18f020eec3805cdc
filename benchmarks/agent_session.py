"""How many tokens an agent reads in a session of 40 calls on a library of 60 items.

`python benchmarks/agent_session.py [--before SRC] [--tokenizer DIR]` prints tables in Markdown: the answers of single calls, and
of the whole session, once as text (what OpenAI Agents and LangChain show their model) and once as structured content (what Claude
Code shows). `--before`: the `src` folder of another version, served by a process of its own and measured in the same way.
`--tokenizer`: a folder with the npm package gpt-tokenizer (o200k); without it, a token is counted as four characters.
"""

import argparse
import json
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

Arguments = dict[str, Any]
Count = Callable[[list[str]], list[int]]

COMMAND = [sys.executable, "-c", "from commonplace.interfaces.cli.main import main; main()"]
LIMITS = ("REQUESTS_PER_MINUTE", "READS_PER_HOUR", "WRITES_PER_HOUR", "DELETES_PER_HOUR")
HEADERS = {"Accept": "application/json", "MCP-Protocol-Version": "2025-11-25"}
COUNTER = """
const { encode } = require("gpt-tokenizer/encoding/o200k_base");
const texts = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(texts.map((text) => encode(text).length)));
"""

# -- the library: 48 entities and 12 documents

SUBJECTS = [
    "the billing export",
    "the invoice table",
    "the retry queue",
    "the payment webhook",
    "the rounding of taxes",
    "the nightly report",
    "the customer import",
    "the audit log",
    "the ledger schema",
    "the refund flow",
]
VERBS = [
    "must be checked before a release",
    "was moved to the background worker",
    "keeps amounts in integer cents",
    "failed when two requests came at once",
    "is owned by the finance team",
    "reads its limits from the settings",
    "has to be idempotent",
    "waits for the approval of an accountant",
    "stores a hash of every file",
]
REASONS = [
    "because customers see the difference at once",
    "so that nobody has to repair numbers by hand",
    "since the old service gave no guarantee",
    "although it takes a little longer",
    "which the auditors asked for last spring",
    "as the incident in March showed",
    "unless an administrator turns it off",
]
KINDS = (
    ["decision"] * 8
    + ["procedure"] * 6
    + ["claim"] * 6
    + ["episode"] * 6
    + ["pattern"] * 3
    + ["idea"] * 3
)
TASKS = 13
LONG, SHORT = 60_000, 800  # characters of documents


def sentence(pick: random.Random) -> str:
    text = f"{pick.choice(SUBJECTS)} {pick.choice(VERBS)}, {pick.choice(REASONS)}."
    return text[0].upper() + text[1:]


def memory(pick: random.Random) -> str:
    """What agents keep: a sentence or two."""
    return " ".join(sentence(pick) for _ in range(pick.choice([1, 1, 2])))


def prose(pick: random.Random, size: int) -> str:
    """Paragraphs under headings, of so many characters."""
    parts: list[str] = []
    while sum(len(part) + 2 for part in parts) < size:
        text = " ".join(sentence(pick) for _ in range(6))
        if len(parts) % 8 == 0:
            text = f"## Part {len(parts) // 8 + 1}: {pick.choice(SUBJECTS)}\n\n{text}"
        parts.append(text)
    return "\n\n".join(parts)[:size]


def title(pick: random.Random, number: int) -> str:
    verb = pick.choice(["Check", "Rework", "Measure", "Move", "Explain", "Split"])
    return f"{verb} {pick.choice(SUBJECTS)} ({number})"


def library() -> Iterator[tuple[str, str, Arguments]]:
    """What to add, as (name, tool, arguments); `{name}` in later arguments stands for the id."""
    pick = random.Random(7)
    project = {"title": "Billing service", "content": memory(pick), "entity_type": "project"}
    yield "project", "add", project | {"repository_url": "https://example.org/billing.git"}
    for number in range(2):
        yield (
            f"epic{number}",
            "add",
            {
                "title": title(pick, number),
                "content": memory(pick),
                "entity_type": "epic",
                "project": "{project}",
            },
        )
    for number in range(TASKS):
        yield (
            f"task{number}",
            "add",
            {
                "title": title(pick, number),
                "content": memory(pick),
                "entity_type": "task",
                "project": "{project}",
                "priority": pick.choice(["high", "medium", "low"]),
                "depends_on": [f"{{task{number - 1}}}"] if number % 4 == 3 else [],
            },
        )
    for number, kind in enumerate(KINDS):
        yield (
            f"{kind}{number}",
            "add",
            {
                "title": title(pick, number),
                "content": memory(pick),
                "entity_type": kind,
                "project": "{project}",
                "tags": pick.sample(["billing", "taxes", "exports", "audit", "refunds"], 2),
            },
        )
    for number in range(12):
        yield (
            f"document{number}",
            "add_to_knowledge",
            {
                "kind": "text",
                "title": title(pick, number),
                "text": prose(pick, LONG if number == 0 else SHORT),
            },
        )


# -- calls

SINGLE: dict[str, tuple[str, Arguments]] = {
    "get_item of 60,000 characters": ("get_item", {"item_id": "{document0}"}),
    "get_disk, same": ("get_disk", {"disk_id": "{document0}"}),
    "fetch, same": ("fetch", {"id": "{document0}"}),
    "list_recent(20)": ("list_recent", {}),
    "explore list (48)": ("explore", {"types": sorted({"project", "epic", "task", *KINDS})}),
    "list_disks(20)": ("list_disks", {}),
    "search(10)": ("search", {"query": "How are refunds rounded?"}),
    "search_knowledge_base(8)": ("search_knowledge_base", {"query": "How are refunds rounded?"}),
    "context": ("context", {"goal": "Fix the rounding of refunds", "project": "{project}"}),
    "manage start_task": ("manage", {"action": "start_task", "entity_id": "{task12}"}),
}
ANSWER = "Finance confirms: refunds are rounded to whole cents, half up, once per invoice."
WHOLE = {"item_id": "{document0}", "max_chars": 500_000}
NEW = {"the same with max_chars=500000": ("get_item", WHOLE)}  # unknown before
NOTES = (
    "We decided to keep amounts as integer cents, because rounding twice lost a cent. To release, run the tests, then tag "
    "the commit, then tell finance. The export must not run before the ledger is closed. We fixed the rounding test. "
    "TODO: document the rounding rules for partners."
)


def task(title: str, content: str) -> Arguments:
    about = {"title": title, "content": content, "project": "{project}"}
    return about | {"entity_type": "task"}


def decision(title: str, content: str) -> Arguments:
    return {"title": title, "content": content, "kind": "decision", "project": "{project}"}


SESSION: list[tuple[str, Arguments]] = [
    ("context", {"goal": "Fix the rounding of refunds", "project": "{project}"}),
    ("explore", {"types": ["project"]}),
    ("explore", {"types": ["task"], "project": "{project}"}),
    ("manage", {"action": "suggest", "entity_id": "{project}"}),
    ("search", {"query": "rounding of taxes in refunds"}),
    ("fetch", {"id": "{decision0}"}),
    ("fetch", {"id": "{procedure8}"}),
    ("manage", {"action": "start_task", "entity_id": "{task0}"}),
    ("search", {"query": "who approves refunds", "types": ["document"], "limit": 5}),
    ("get_item", {"item_id": "{document1}"}),
    ("search", {"query": "integer cents", "types": ["decision", "claim"], "limit": 5}),
    ("explore", {"mode": "related", "entity_id": "{decision0}", "limit": 10}),
    (
        "manage",
        {"action": "add_note", "entity_id": "{task0}", "data": {"content": "Rounds twice."}},
    ),
    (
        "remember",
        decision("Round refunds once, at the end", "Customers see every second rounding."),
    ),
    ("add", task("Document the rounding rules", "Partners ask how refunds and taxes are rounded.")),
    ("add", task("Check the nightly report", "Compare its sums before and after the change.")),
    ("manage", {"action": "submit_review", "entity_id": "{task0}"}),
    (
        "manage",
        {"action": "complete_task", "entity_id": "{task0}", "data": {"learnings": "Round once."}},
    ),
    ("list_recent", {}),
    ("manage", {"action": "start_task", "entity_id": "{task1}"}),
    ("search", {"query": "audit log hash of every file", "since": "7d", "limit": 5}),
    ("fetch", {"id": "{claim14}"}),
    ("manage", {"action": "update_task", "entity_id": "{task2}", "data": {"priority": "high"}}),
    (
        "manage",
        {"action": "block_task", "entity_id": "{task1}", "data": {"reason": "Finance is away."}},
    ),
    ("add", task("Ask finance about half cents", "They know whether half cents round up or down.")),
    ("manage", {"action": "start_task", "entity_id": "{task2}"}),
    ("remember", decision("Taxes are rounded per invoice", "Not per line: the sum has to match.")),
    ("manage", {"action": "complete_task", "entity_id": "{task2}"}),
    ("manage", {"action": "unblock_task", "entity_id": "{task1}"}),
    ("add_to_knowledge", {"kind": "text", "title": "Answer of the finance team", "text": ANSWER}),
    ("remember", decision("Finance rounds half up", "Once per invoice, as their answer says.")),
    ("manage", {"action": "mark_stale", "entity_id": "{claim15}", "data": {"reason": "Replaced."}}),
    ("manage", {"action": "complete_task", "entity_id": "{task1}"}),
    ("manage", {"action": "prioritize", "entity_id": "{project}", "data": {"limit": 5}}),
    ("manage", {"action": "start_task", "entity_id": "{task4}"}),
    ("search", {"query": "refund flow must be idempotent", "limit": 5}),
    ("get_item", {"item_id": "{document2}"}),
    ("manage", {"action": "complete_task", "entity_id": "{task4}"}),
    ("reflect", {"content": NOTES, "project": "{project}", "persist": True}),
    ("context", {"goal": "Release the rounding change", "project": "{project}"}),
]
assert len(SESSION) == 40


@dataclass
class Server:
    client: httpx.Client
    ids: dict[str, str]

    def rpc(self, method: str, params: Arguments, path: str = "/mcp") -> Any:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = self.client.post(path, json=message, headers=HEADERS).json()
        if "error" in answer:
            raise SystemExit(f"{method} {json.dumps(params)[:300]}: {answer['error']}")
        return answer["result"]

    def call(self, tool: str, arguments: Arguments) -> Any:
        return self.rpc("tools/call", {"name": tool, "arguments": self.filled(arguments)})

    def filled(self, arguments: Arguments) -> Arguments:
        text = re.sub(r"\{(\w+)\}", lambda found: self.ids[found[1]], json.dumps(arguments))
        filled: Arguments = json.loads(text)
        return filled

    def furnish(self) -> None:
        for name, tool, arguments in library():
            if tool == "add":  # waits until the entity is linked
                body = self.filled(arguments)
                added = self.client.post("/api/entities?sync=true", json=body)
                self.ids[name] = added.raise_for_status().json()["id"]
            else:
                self.ids[name] = self.call(tool, arguments)["structuredContent"]["user_item_id"]


@contextmanager
def serving(src: Path) -> Iterator[Server]:
    """Serve a fresh library with the code of `src`."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        environment = os.environ | {
            "PYTHONPATH": str(src),
            "COMMONPLACE_DATA_DIR": folder,
            "COMMONPLACE_EMBEDDER": "static",
            **{f"COMMONPLACE_RATE_{name}": "0" for name in LIMITS},
        }
        create = [*COMMAND, "token", "create", "--name", "agent", "--write", "--json"]
        token = json.loads(subprocess.check_output(create, env=environment, text=True))["token"]
        with (Path(folder) / "server.log").open("w") as log:
            process = subprocess.Popen(
                [*COMMAND, "serve", "--port", str(port)], env=environment, stdout=log, stderr=log
            )
        try:
            url, headers = f"http://127.0.0.1:{port}", {"Authorization": f"Bearer {token}"}
            with httpx.Client(base_url=url, headers=headers, timeout=60) as client:
                while not _is_ready(client):
                    if process.poll() is not None:
                        raise SystemExit((Path(folder) / "server.log").read_text())
                    time.sleep(0.1)
                server = Server(client, {})
                server.furnish()
                yield server
        finally:
            process.terminate()
            process.wait(20)


def _is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False


# -- measuring


@dataclass(frozen=True)
class Said:
    name: str
    text: str
    structured: str


def said(name: str, result: Any) -> Said:
    return Said(name, result["content"][0]["text"], compact(result["structuredContent"]))


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def measure(
    src: Path, calls: dict[str, tuple[str, Arguments]]
) -> tuple[list[Said], list[Said], dict[str, str]]:
    """Return the answers of single calls, those of the session, and the lists of tools."""
    with serving(src) as server:
        single = [said(name, server.call(*call)) for name, call in calls.items()]
        session = [said(tool, server.call(tool, arguments)) for tool, arguments in SESSION]
        lists = {}
        for path in ("/mcp", "/mcp/core", "/mcp/graph", "/mcp/knowledge", "/mcp/disks"):
            if server.client.post(path, json={}, headers=HEADERS).status_code not in (401, 404):
                lists[path] = compact(server.rpc("tools/list", {}, path)["tools"])
        return single, session, lists


def counter(folder: str) -> Count:
    """Count tokens with o200k where the tokenizer is at hand, else by characters."""
    if not folder:
        return lambda texts: [(len(text) + 3) // 4 for text in texts]

    def count(texts: list[str]) -> list[int]:
        done = subprocess.run(
            ["node", "-e", COUNTER],
            cwd=folder,
            input=json.dumps(texts),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        counts: list[int] = json.loads(done.stdout)
        return counts

    return count


def totals(answers: list[Said], count: Count) -> dict[str, tuple[int, int, int]]:
    """Return the number of calls and the tokens of text and structured content, by name."""
    texts = count([answer.text for answer in answers])
    structured = count([answer.structured for answer in answers])
    found: dict[str, tuple[int, int, int]] = {}
    for answer, *sizes in zip(answers, texts, structured, strict=True):
        calls, text, content = found.get(answer.name, (0, 0, 0))
        found[answer.name] = calls + 1, text + sizes[0], content + sizes[1]
    return found


def table(before: dict[str, Any], after: dict[str, Any], *, calls: bool) -> None:
    print(f"\n| call |{' calls |' * calls} text before | after | structured before | after |")
    print("|---|" + "---:|" * (4 + calls))
    for name, (number, text, structured) in after.items():
        _, old_text, old_structured = before.get(name, (0, 0, 0))
        sizes = [number] * calls + [old_text, text, old_structured, structured]
        print(f"| {name} | " + " | ".join(f"{size:,}" for size in sizes) + " |")


def summed(found: dict[str, tuple[int, int, int]]) -> dict[str, tuple[int, int, int]]:
    calls, text, structured = (sum(sizes[n] for sizes in found.values()) for n in range(3))
    return found | {"**all**": (calls, text, structured)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="src folder of the version to compare with")
    parser.add_argument("--tokenizer", default="", help="folder with the npm package gpt-tokenizer")
    parser.add_argument("--dump", type=Path, help="folder for the answers, to look at them")
    wanted = parser.parse_args()
    count = counter(wanted.tokenizer)
    here = Path(__file__).parents[1] / "src"
    single, session, lists = measure(here, SINGLE | NEW)
    old = measure(wanted.before.resolve(), SINGLE) if wanted.before else ([], [], {})
    if wanted.dump:
        wanted.dump.mkdir(parents=True, exist_ok=True)
        for number, answer in enumerate([*single, *session]):
            text = f"{answer.text}\n\n----\n{answer.structured}"
            (wanted.dump / f"{number:02} {answer.name}.txt").write_text(text)
        for path, listed in lists.items():
            (wanted.dump / f"tools{path.replace('/', '-')}.json").write_text(listed)
    table(totals(old[0], count), totals(single, count), calls=False)
    for answers, listed in ((old[1], old[2]), (session, lists)):
        tools = listed.get("/mcp", "")
        answers.insert(0, Said("tools/list", tools, tools))
    table(summed(totals(old[1], count)), summed(totals(session, count)), calls=True)
    print("\n| tools/list | before | after |\n|---|---:|---:|")
    for path, listed_tools in lists.items():
        before, after = count([old[2].get(path, ""), listed_tools])
        print(f"| {path} | {before:,} | {after:,} |")


if __name__ == "__main__":
    main()
