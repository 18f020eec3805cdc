"""reindex, doctor, eval."""

import shutil
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from commonplace.core.search.search import incomplete
from commonplace.errors import CommonplaceError, EmbeddingFailed, Invalid
from commonplace.interfaces.cli import output
from commonplace.interfaces.cli.command import CommandContext, Commands, Session
from commonplace.interfaces.cli.job_queue import run_jobs
from commonplace.model import EMBED, Caller, ItemFilter
from commonplace.settings import PREFIX, Settings

if TYPE_CHECKING:
    from commonplace.core.services import Services

ENOUGH_SPACE = 500_000_000
ENGLISH_EMBEDDERS = ("local", "static")


async def setup(context: CommandContext) -> None:
    """Download the models that the settings use, so that the server need not do it."""
    from commonplace.app import download_models

    context.require_owner()
    done = await download_models(context.settings, output.progress)
    context.show(
        {"downloaded": done},
        f"Downloaded: {', '.join(done)}." if done else "All models are here already.",
    )


async def reindex(session: Session) -> None:
    """Compute missing vectors, or all vectors after a change of embedder. Also makes automatic
    tags, summaries and links anew. Search keeps working."""
    session.require_owner()
    services = session.services
    await services.embedder.query("Is it there?")  # else every item would be tried, and postponed
    queued = await services.store.jobs.enqueue_embedding(services.embedder.stamp)
    described = await services.store.jobs.enqueue_describing()
    await run_jobs(services, "Making vectors")
    left = await services.store.jobs.enqueue_embedding(services.embedder.stamp)
    if left:
        raise EmbeddingFailed(
            f"Vectors are still missing of {output.count_items(left)}; "
            "the next worker or reindex tries again."
        )
    await services.store.jobs.enqueue_linking()
    await run_jobs(services, "Finding links")
    stamp = services.embedder.stamp
    session.show(
        {"items": queued, "stamp": stamp, "described": described},
        f"All vectors are made by {stamp} (queued: {output.count_items(queued)}). "
        f"Tags and summaries were made anew of {output.count_items(described)}.",
    )


async def doctor(
    context: CommandContext,
    settings: Annotated[bool, typer.Option("--settings", help="Also list all settings.")] = False,
) -> None:
    """Check the installation and report problems."""
    facts: dict[str, Any] = {
        "data_dir": str(context.settings.data_dir),
        "embedder": context.settings.embedder,
    }
    problems: list[str] = []
    try:
        async with context.open() as (services, caller):
            await _examine(services, caller, facts, problems)
    except CommonplaceError as error:
        problems.append(error.message)
    except OSError as error:
        problems.append(f"{error.strerror}: {error.filename}.")
    values = _list_settings(context.settings) if settings else []
    answer = {"ok": not problems, "problems": problems, **facts}
    if settings:
        answer["settings"] = {name: value for name, value, _ in values}
    context.show(answer, lambda: _print_report(facts, values, problems))
    if problems:
        raise Invalid(f"{len(problems)} problem{'s' if len(problems) > 1 else ''} found.")


def _print_report(
    facts: dict[str, Any], values: list[tuple[str, str, str]], problems: list[str]
) -> None:
    output.table(["", ""], [(name.replace("_", " "), value) for name, value in facts.items()])
    output.table(["setting", "value", "help"], values)
    output.text(
        "\n".join(f"Problem: {problem}" for problem in problems) or "Everything is in order."
    )


async def _examine(
    services: "Services", caller: Caller, facts: dict[str, Any], problems: list[str]
) -> None:
    engine = await services.store.describe()
    await services.store.check()
    done, total = await services.store.sections.coverage(caller.scope, services.embedder.stamp)
    jobs = await services.store.jobs.counts()
    free = shutil.disk_usage(
        services.settings.data_dir if services.settings.data_dir.exists() else Path.cwd()
    ).free
    facts |= {
        "engine": f"{engine['engine']} {engine['version']}",
        "schema": engine["schema"],
        "embedder": services.embedder.stamp,
        "people": len(await services.people.all()),
        "items": (await services.library.page(caller, ItemFilter(), limit=1))[1],
        "sections": total,
        "sections_with_vectors": done,
        "jobs": jobs,
        "checkpoint_bytes": engine["checkpoint_bytes"],
        "free_bytes": free,
    }
    if services.settings.embedder in ENGLISH_EMBEDDERS:
        facts["languages"] = "by meaning English only, by keyword all (see COMMONPLACE_EMBEDDER)"
    if await services.store.sections.has_other_stamp(services.embedder.stamp, caller.scope):
        problems.append("Some vectors were made by another embedder: run `commonplace reindex`.")
    elif done < total and not jobs.get("queued") and not jobs.get("running"):
        problems.append(
            f"{total - done} sections have no vector and no job for one: run `commonplace reindex`."
        )
    waiting, reason = await services.store.jobs.count_open(EMBED)
    if reason:
        problems.append(incomplete(waiting, reason) or "")
    if jobs.get("failed"):
        problems.append(
            f"{jobs['failed']} jobs have failed for good: `commonplace reindex` makes the missing "
            "vectors, `commonplace retry ITEM` tries again what else failed for an item."
        )
    if free < ENOUGH_SPACE:
        problems.append(f"Only {free / 1e6:.0f} MB are free on the disk of the data folder.")
    try:
        await services.embedder.query("Is it there?")
    except CommonplaceError as error:
        problems.append(f"The embedder does not work: {error.message}")


def _list_settings(settings: Settings) -> list[tuple[str, str, str]]:
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
    context: CommandContext,
    directory: Annotated[
        Path,
        typer.Argument(
            help="Folder with corpus.jsonl, queries.jsonl and qrels.tsv.", show_default=False
        ),
    ],
) -> None:
    """Evaluate search on a retrieval set, in a temporary library. Prints nDCG@10, recall@10,
    recall@5 and MRR@10 of each mode."""
    from commonplace.app import scratch_app
    from commonplace.core.transfer.evaluation import METRICS, Evaluation, read_set

    judged = read_set(directory)
    async with scratch_app(context.settings) as services:
        await services.people.ensure_owner()
        caller = await services.access.owner()
        assert caller is not None
        evaluation = Evaluation(services, caller)
        with output.progress("Reading documents") as advance:
            folders = await evaluation.add(judged.documents, advance)
        await run_jobs(services, "Making vectors")
        with output.progress("Asking queries") as advance:
            modes = await evaluation.run(judged, folders, advance)
    documents, queries = len(judged.documents), len(judged.queries)
    if not context.as_json:
        output.text(f"{documents} documents, {queries} queries")
    rows = [[mode, *(f"{found[each]:.4f}" for each in METRICS)] for mode, found in modes.items()]
    context.show(
        {"docs": documents, "queries": queries, "modes": modes},
        lambda: output.table(["mode", *METRICS], rows),
    )


COMMANDS: Commands = {"setup": setup, "reindex": reindex, "doctor": doctor, "eval": evaluate}
