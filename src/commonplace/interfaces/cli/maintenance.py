"""setup, reextract, reindex, eval."""

from pathlib import Path
from typing import Annotated

import typer

from commonplace.errors import EmbeddingFailed, IngestFailed
from commonplace.interfaces.cli import output
from commonplace.interfaces.cli.command import CommandContext, Commands, Session
from commonplace.interfaces.cli.job_queue import run_jobs


async def setup(context: CommandContext) -> None:
    """Download the models that the settings use. The server does it, too, if they are missing."""
    from commonplace.app import download_models

    context.require_owner()
    done = await download_models(context.settings, output.progress)
    context.show(
        {"downloaded": done},
        f"Downloaded: {', '.join(done)}." if done else "All models are already downloaded.",
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


async def reextract(session: Session) -> None:
    """Read the kept pages anew, without fetching them. Texts that come out differently replace the
    old ones, which become versions."""
    session.require_owner()
    with output.progress("Reading pages") as advance:
        done = await session.services.page_updates.reextract(advance)
    await run_jobs(session.services, "Making vectors")
    for reason in done.failed:
        output.note(reason)
    session.show(
        {"pages": done.pages, "changed": done.changed, "failed": len(done.failed)},
        f"Read the pages of {output.count_items(done.pages)}; "
        f"{done.changed:,} have another text now.",
    )
    if done.failed:
        raise IngestFailed(
            f"The pages of {output.count_items(len(done.failed))} could not be read."
        )


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


COMMANDS: Commands = {"setup": setup, "reextract": reextract, "reindex": reindex, "eval": evaluate}
