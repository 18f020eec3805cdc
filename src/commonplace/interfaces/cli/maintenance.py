"""reindex, doctor, eval."""

import shutil
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from commonplace.errors import CommonplaceError, EmbeddingFailed, Invalid
from commonplace.interfaces.cli import output
from commonplace.interfaces.cli.command import Desk, command
from commonplace.interfaces.cli.job_queue import work_off
from commonplace.model import Caller, ItemFilter
from commonplace.settings import PREFIX, Settings

if TYPE_CHECKING:
    from commonplace.core.services import Services

ENOUGH_SPACE = 500_000_000


def register(root: typer.Typer) -> None:
    command(root, "reindex")(reindex)
    command(root, "doctor")(doctor)
    command(root, "eval")(evaluate)


async def reindex(desk: Desk) -> None:
    """Compute missing vectors, or all vectors after a change of embedder. Search keeps working."""
    desk.require_owner()
    async with desk.open() as (app, _):
        await app.embedder.query("Is it there?")  # else every item would be tried, and postponed
        queued = await app.store.jobs.enqueue_embedding(app.embedder.stamp)
        with output.progress("Making vectors") as advance:
            await work_off(app, advance)
        left = await app.store.jobs.enqueue_embedding(app.embedder.stamp)
    if left:
        raise EmbeddingFailed(
            f"Vectors are still missing of {output.items(left)}; the next worker or reindex tries again."
        )
    output.as_json({"items": queued, "stamp": app.embedder.stamp}) if desk.as_json else output.text(
        f"All vectors are made by {app.embedder.stamp} (queued: {output.items(queued)})."
    )


async def doctor(
    desk: Desk,
    settings: Annotated[bool, typer.Option("--settings", help="Also list all settings.")] = False,
) -> None:
    """Check the installation and report problems."""
    facts: dict[str, Any] = {
        "data_dir": str(desk.settings.data_dir),
        "embedder": desk.settings.embedder,
    }
    problems: list[str] = []
    try:
        async with desk.open() as (app, caller):
            await _examine(app, caller, facts, problems)
    except CommonplaceError as error:
        problems.append(error.message)
    except OSError as error:
        problems.append(f"{error.strerror}: {error.filename}.")
    values = _settings(desk.settings) if settings else []
    if desk.as_json:
        listed = {"settings": {name: value for name, value, _ in values}} if settings else {}
        output.as_json({"ok": not problems, "problems": problems, **facts, **listed})
    else:
        output.table(["", ""], [(name.replace("_", " "), value) for name, value in facts.items()])
        output.table(["setting", "value", "help"], values)
        output.text(
            "\n".join(f"Problem: {problem}" for problem in problems) or "Everything is in order."
        )
    if problems:
        raise Invalid(f"{len(problems)} problem{'s' if len(problems) > 1 else ''} found.")


async def _examine(
    app: "Services", caller: Caller, facts: dict[str, Any], problems: list[str]
) -> None:
    from commonplace.core.search.search import incomplete
    from commonplace.model.jobs import EMBED

    engine = await app.store.describe()
    await app.store.check()
    done, total = await app.store.sections.coverage(caller.scope, app.embedder.stamp)
    jobs = await app.store.jobs.counts()
    free = shutil.disk_usage(
        app.settings.data_dir if app.settings.data_dir.exists() else Path.cwd()
    ).free
    facts |= {
        "engine": f"{engine['engine']} {engine['version']}",
        "schema": engine["schema"],
        "embedder": app.embedder.stamp,
        "people": len(await app.people.all()),
        "items": (await app.library.page(caller, ItemFilter(), limit=1))[1],
        "sections": total,
        "sections_with_vectors": done,
        "jobs": jobs,
        "checkpoint_bytes": engine["checkpoint_bytes"],
        "free_bytes": free,
    }
    if await app.store.sections.has_other_stamp(app.embedder.stamp):
        problems.append("Some vectors were made by another embedder: run `commonplace reindex`.")
    elif done < total and not jobs.get("queued") and not jobs.get("running"):
        problems.append(
            f"{total - done} sections have no vector and no job for one: run `commonplace reindex`."
        )
    waiting, reason = await app.store.jobs.count_open(EMBED)
    if reason:
        problems.append(incomplete(waiting, reason) or "")
    if jobs.get("failed"):
        problems.append(
            f"{jobs['failed']} jobs have failed for good: `commonplace reindex` makes the vectors that are missing, "
            "`commonplace retry ITEM` tries again what else failed for an item."
        )
    if free < ENOUGH_SPACE:
        problems.append(f"Only {free / 1e6:.0f} MB are free on the disk of the data folder.")
    try:
        await app.embedder.query("Is it there?")
    except CommonplaceError as error:
        problems.append(f"The embedder does not work: {error.message}")


def _settings(settings: Settings) -> list[tuple[str, str, str]]:
    return [
        (
            PREFIX + f.name.upper(),
            "***"
            if f.metadata["secret"] and getattr(settings, f.name)
            else str(getattr(settings, f.name)),
            f.metadata["help"],
        )
        for f in fields(Settings)
    ]


async def evaluate(
    desk: Desk,
    directory: Annotated[
        Path,
        typer.Argument(
            help="Folder with corpus.jsonl, queries.jsonl and qrels.tsv.", show_default=False
        ),
    ],
) -> None:
    """Evaluate search on a retrieval set, in a temporary library: nDCG@10, recall@10 and MRR@10."""
    from commonplace.app import scratch_app
    from commonplace.core.transfer.evaluation import METRICS, Evaluation, read_set

    judged = read_set(directory)
    async with scratch_app(desk.settings) as app:
        await app.people.ensure_owner()
        caller = await app.access.owner()
        assert caller is not None
        evaluation = Evaluation(app, caller)
        with output.progress("Reading documents") as advance:
            folders = await evaluation.add(judged.documents, advance)
        with output.progress("Making vectors") as advance:
            await work_off(app, advance)
        with output.progress("Asking queries") as advance:
            modes = await evaluation.run(judged, folders, advance)
    if desk.as_json:
        output.as_json(
            {"docs": len(judged.documents), "queries": len(judged.queries), "modes": modes}
        )
        return
    output.text(f"{len(judged.documents)} documents, {len(judged.queries)} queries")
    output.table(
        ["mode", *METRICS],
        [
            (mode, *(f"{values[metric]:.4f}" for metric in METRICS))
            for mode, values in modes.items()
        ],
    )
