"""How fast a folder of Markdown becomes searchable: by words within the import, by meaning through the worker.

    python benchmarks/bulk_import.py --files 1000                       # SQLite, the static embedder
    python benchmarks/bulk_import.py --files 60 --embedder local
    python benchmarks/bulk_import.py --database-url postgresql://... --schema bulk

The text is the documentation and source of the installed Python packages. The raw rate is that of the embedder alone on
the same passages in the same process; the worker should come close to it.
"""

import argparse
import asyncio
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from commonplace.adapters.coordination import make_wake
from commonplace.app import open_app
from commonplace.core.ingest.pipeline import EmbedJobs
from commonplace.core.jobs.worker import Worker
from commonplace.core.services import Services
from commonplace.core.transfer.markdown_folder import import_folder
from commonplace.model import EMBED, Caller
from commonplace.settings import Settings
from commonplace.text import chunking

LONGEST = 20_000


def texts(count: int) -> Iterator[str]:
    found = 0
    for folder in ("stdlib", "purelib"):
        for path in sorted(Path(sysconfig.get_paths()[folder]).rglob("*")):
            if (
                path.suffix in (".py", ".txt", ".md", ".rst")
                and path.is_file()
                and path.stat().st_size > 1_000
            ):
                yield f"# {path.stem} {found}\n\n{path.read_text(errors='ignore')[:LONGEST].replace(chr(0), ' ')}"
                found += 1
                if found == count:
                    return


def write(folder: Path, count: int) -> None:
    for number, text in enumerate(texts(count)):
        file = folder / f"part {number % 20}" / f"{number}.md"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, "utf-8", "ignore")


class Watch:
    """Seconds on the wall and on the processor: the second also holds on a machine that is busy with other things."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def rates(self, count: int) -> tuple[float, float]:
        return count / (time.perf_counter() - self._wall), count / (time.process_time() - self._cpu)


async def raw_rate(app: Services, folder: Path, count: int) -> tuple[float, float]:
    texts = await asyncio.to_thread(
        lambda: [(file.stem, file.read_text()) for file in sorted(folder.rglob("*.md"))[:count]]
    )
    passages = [
        [chunking.embedding_text(title, section) for section in chunking.cut(text)]
        for title, text in texts
    ]
    await app.embedder.documents(passages[:1])
    watch = Watch()
    await app.embedder.documents(passages)
    return watch.rates(sum(map(len, passages)))


async def worker_rate(app: Services, sections: int) -> tuple[float, float]:
    """Vectors only: summaries and tags follow by jobs of their own."""
    worker = Worker(app.store, make_wake(app.settings), {EMBED: EmbedJobs(app.store, app.embedder)})
    watch = Watch()
    while await worker.run_once():
        pass
    return watch.rates(sections)


async def run(settings: Settings, folder: Path, sample: int) -> None:
    async with open_app(settings) as app:
        await app.people.ensure_owner()
        caller = await app.access.owner()
        assert isinstance(caller, Caller)
        watch = Watch()
        await import_folder(app.bulk_import, app.folders, caller, folder, lambda done, total: None)
        _, sections = await app.store.sections.coverage(caller.scope, app.embedder.stamp)
        wall, cpu = watch.rates(sections)
        print(f"{sections} sections; keyword-live: {wall:,.0f} a second, {cpu:,.0f} a cpu-second")
        raw_wall, raw_cpu = await raw_rate(app, folder, sample)
        print(f"embedder alone: {raw_wall:,.0f} a second, {raw_cpu:,.0f} a cpu-second")
        wall, cpu = await worker_rate(app, sections)
        done, _ = await app.store.sections.coverage(caller.scope, app.embedder.stamp)
        print(
            f"worker: {wall:,.0f} a second ({wall / raw_wall:.0%}), {cpu:,.0f} a cpu-second ({cpu / raw_cpu:.0%}); "
            f"{done} sections have vectors"
        )


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--files", type=int, default=1000)
    options.add_argument(
        "--sample", type=int, default=200, help="files that the embedder alone is measured on"
    )
    options.add_argument("--embedder", default="static")
    options.add_argument("--database-url", default="")
    options.add_argument("--schema", default="bulk")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        notes = Path(scratch) / "notes"
        notes.mkdir()
        write(notes, given.files)
        asyncio.run(
            run(
                Settings(
                    data_dir=Path(scratch) / "data",
                    embedder=given.embedder,
                    database_url=given.database_url,
                    database_schema=given.schema,
                ),
                notes,
                given.sample,
            )
        )


if __name__ == "__main__":
    main()
