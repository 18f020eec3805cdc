"""What no one can beat on this machine, measured in the same run: reading the vectors once, a server that says hello, the embedder alone."""

import asyncio
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psutil
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from commonplace.adapters.embed.wordllama import StaticEmbedder
from commonplace.settings import Settings

from .drivers.http_ import Http, free_port

ROOT = Path(__file__).parents[2]
SECONDS, CLIENTS = 2.0, 16


def measure(work: Path) -> dict:
    vectors = np.load(work / "vectors.npy", mmap_mode="r")
    with (work / "notes.jsonl").open() as lines:
        texts = [json.loads(line) for _, line in zip(range(2_000), lines, strict=False)]
    return {"memory": _memory(vectors.shape[1]), "calls": _calls(), "embedder": _embedder(texts)}


def _memory(dimensions: int) -> dict:
    """Gigabytes a second that one pass over vectors reads: as a sum, and as products with a question, whichever is faster."""
    rows = np.ones((200_000, dimensions), np.float32)
    asked = np.ones(dimensions, np.float32)
    as_sum = _best(lambda: rows.view(np.uint64).sum())
    as_products = _best(lambda: rows @ asked)
    return {
        "gb_per_s": rows.nbytes / min(as_sum, as_products) / 1e9,
        "bytes_a_vector": 2 * dimensions,
    }


def _best(call, times: int = 10) -> float:
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        spent.append(time.perf_counter() - start)
    return min(spent)


def _calls() -> dict:
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.side_by_side.limits", str(port)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"},
    )
    try:
        http = Http(port)
        http.wait("/", server)
        body, spent, began, busy = {"say": "hello"}, [], time.perf_counter(), _processor(server.pid)
        while time.perf_counter() - began < SECONDS:
            start = time.perf_counter()
            http.ask("POST", "/", body)
            spent.append(1000 * (time.perf_counter() - start))
        cpu = 1000 * (_processor(server.pid) - busy) / len(spent)
        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(lambda _: http.ask("POST", "/", body), range(CLIENTS)))
            done, began = 0, time.perf_counter()
            while time.perf_counter() - began < SECONDS:
                done += len(
                    list(pool.map(lambda _: http.ask("POST", "/", body), range(20 * CLIENTS)))
                )
            many = done / (time.perf_counter() - began)
    finally:
        server.terminate()
        server.wait()
    return {
        "p50": float(np.percentile(spent, 50)),
        "p95": float(np.percentile(spent, 95)),
        "cpu_ms": cpu,
        "calls_per_s": many,
    }


def _processor(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def _embedder(texts: list[str]) -> dict:
    async def run() -> dict:
        embedder = StaticEmbedder(Settings())
        await embedder.documents([texts[:10]])
        start, busy = time.perf_counter(), time.process_time()
        for n in range(0, len(texts), 200):
            await embedder.documents([texts[n : n + 200]])
        many, cpu = time.perf_counter() - start, time.process_time() - busy
        spent = []
        for text in texts[:200]:
            start = time.perf_counter()
            await embedder.documents([[text]])
            spent.append(1000 * (time.perf_counter() - start))
        return {
            "per_s": len(texts) / many,
            "cpu_ms": 1000 * cpu / len(texts),
            "alone_ms": float(np.percentile(spent, 50)),
        }

    return asyncio.run(run())


async def _hello(request: Request) -> JSONResponse:
    asked = await request.json()
    return JSONResponse({"said": asked["say"]})


if __name__ == "__main__":
    uvicorn.run(
        Starlette(routes=[Route("/", _hello, methods=["POST"])]),
        host="127.0.0.1",
        port=int(sys.argv[1]),
        log_level="warning",
        access_log=False,
    )
