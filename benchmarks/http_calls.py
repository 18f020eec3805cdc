"""What a whole `search_knowledge_base` call over HTTP costs beyond its parts, and how many a server answers a second.

    python benchmarks/http_calls.py --sections 10000                      # the static embedder
    python benchmarks/http_calls.py --sections 2000 --embedder local

A real server in its own process; clients are plain keep-alive connections in this one, so the figures hold the client's
cost too (which is why they speak HTTP by hand). The server's own processor time a call is read from the system.
"""

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import psutil
from bulk_import import write

from commonplace.app import open_app
from commonplace.core.transfer.markdown_folder import import_folder
from commonplace.settings import Settings

QUESTIONS = [
    "how do I parse a date",
    "connection pool timeout",
    "what does os.path.join return",
    "raise ValueError when empty",
    "iterate over the lines of a file",
    "thread safety of the cache",
    "encode bytes as base64",
    "sort a list by key",
]


async def fill(settings: Settings, sections: int) -> int:
    async with open_app(settings, workers=1) as app:
        await app.people.ensure_owner()
        me = await app.access.owner()
        assert me is not None
        with tempfile.TemporaryDirectory() as folder:
            if (await app.store.sections.coverage(me.scope, app.embedder.stamp))[1] == 0:
                write(Path(folder), max(10, sections // 9))
                await import_folder(
                    app.bulk_import, app.folders, me, Path(folder), lambda done, total: None
                )
        while (await app.store.jobs.counts()).keys() & {"queued", "running"}:
            await asyncio.sleep(0.2)
        times = []
        for question in QUESTIONS * 5:
            start = time.perf_counter()
            await app.embedder.query(question)
            times.append(time.perf_counter() - start)
        print(f"embedding a query: p50 {statistics.median(times) * 1e3:.1f} ms")
        for question in QUESTIONS:
            await app.search.search(me, question)
        times = []
        for question in QUESTIONS * 5:
            start = time.perf_counter()
            await app.search.search(me, question)
            times.append(time.perf_counter() - start)
        print(f"search in process, embedding included: p50 {statistics.median(times) * 1e3:.1f} ms")
        return (await app.store.sections.coverage(me.scope, app.embedder.stamp))[1]


def request(protocol: str, question: str) -> tuple[dict[str, str], bytes]:
    params = {"name": "search_knowledge_base", "arguments": {"query": question}}
    headers = {
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "MCP-Protocol-Version": protocol,
    }
    if protocol == "2026-07-28":
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": protocol,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        headers |= {"Mcp-Method": "tools/call", "Mcp-Name": "search_knowledge_base"}
    return headers, json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    ).encode()


async def load(url: str, token: str, protocol: str, clients: int, calls: int) -> list[float]:
    times: list[float] = []

    async def client(number: int) -> None:
        host, port = url.removeprefix("http://").partition("/")[0].split(":")
        reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 20)
        for n in range(calls // clients):
            headers, body = request(protocol, QUESTIONS[(number + n) % len(QUESTIONS)])
            headers |= {
                "Host": f"{host}:{port}",
                "Authorization": f"Bearer {token}",
                "Content-Length": str(len(body)),
            }
            head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            start = time.perf_counter()
            writer.write(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body)
            told = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(told.partition(b"content-length:")[2].partition(b"\r\n")[0])
            answer = await reader.readexactly(length)
            times.append(time.perf_counter() - start)
            assert told.startswith(b"http/1.1 200") and b'"hits"' in answer, answer[:300]
        writer.close()

    await asyncio.gather(*(client(number) for number in range(clients)))
    return times


async def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--sections", type=int, default=10_000)
    options.add_argument("--embedder", default="static")
    options.add_argument("--calls", type=int, default=800)
    options.add_argument(
        "--keep", type=Path, help="a folder to keep the library in for the next run"
    )
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = str(chosen.keep or scratch)
        sections = await fill(
            Settings(data_dir=Path(folder), embedder=chosen.embedder), chosen.sections
        )
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        env = os.environ | {
            "COMMONPLACE_DATA_DIR": folder,
            "COMMONPLACE_EMBEDDER": chosen.embedder,
            "COMMONPLACE_RATE_REQUESTS_PER_MINUTE": "0",
            "COMMONPLACE_RATE_READS_PER_HOUR": "0",
        }
        made = subprocess.run(
            [sys.executable, "-m", "commonplace", "token", "create", "--name", "b", "--json"],
            env=env,
            capture_output=True,
            check=True,
            text=True,
        )
        server = subprocess.Popen(
            [sys.executable, "-m", "commonplace", "serve", "--port", str(port)],
            env=env,
            stdout=subprocess.DEVNULL,
        )
        try:
            url, token = f"http://127.0.0.1:{port}", json.loads(made.stdout)["token"]
            started = time.perf_counter()
            while time.perf_counter() - started < 60:
                try:
                    httpx.get(f"{url}/healthz", trust_env=False)
                    break
                except httpx.TransportError:
                    await asyncio.sleep(0.05)
            print(
                f"{sections} sections, {chosen.embedder}; listening after {time.perf_counter() - started:.1f} s"
            )
            process = psutil.Process(server.pid)
            for protocol in ("2025-11-25", "2026-07-28"):
                await load(f"{url}/mcp", token, protocol, 4, 40)
                for clients in (1, 16):
                    before, wall = sum(process.cpu_times()[:2]), time.perf_counter()
                    times = sorted(
                        await load(
                            f"{url}/mcp",
                            token,
                            protocol,
                            clients,
                            chosen.calls if clients > 1 else 100,
                        )
                    )
                    spent, wall = sum(process.cpu_times()[:2]) - before, time.perf_counter() - wall
                    print(
                        f"{protocol}, {clients:2} clients: p50 {times[len(times) // 2] * 1e3:5.1f} ms, "
                        f"p95 {times[int(len(times) * 0.95)] * 1e3:5.1f} ms, {len(times) / wall:4.0f} calls/s, "
                        f"server {spent / len(times) * 1e3:.1f} cpu-ms a call, memory {process.memory_info().rss >> 20} MB"
                    )
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    asyncio.run(main())
