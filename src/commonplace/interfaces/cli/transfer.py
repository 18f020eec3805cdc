"""import, export, backup, restore."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from commonplace.core.transfer import opml, session_sources
from commonplace.core.transfer.markdown_folder import (
    ImportResult,
    export_folder,
    import_folder,
    markdown_files,
)
from commonplace.errors import Invalid
from commonplace.interfaces.cli import output
from commonplace.interfaces.cli.command import CommandContext, Commands, Session
from commonplace.interfaces.cli.job_queue import run_jobs

Directory = Annotated[Path, typer.Argument(help="The folder.", show_default=False)]
File = Annotated[Path, typer.Argument(help="The backup file.", show_default=False)]


KINDS = ("markdown", "transcripts", "git")


async def import_(
    session: Session,
    source: Annotated[
        Path,
        typer.Argument(
            help=(
                "A folder of Markdown files, agent transcripts, a git repository, or an export "
                "file."
            ),
            show_default=False,
        ),
    ],
    kind: Annotated[
        str | None,
        typer.Option(
            "--as",
            help="Read the folder as markdown, transcripts or git. Default: detect.",
        ),
    ] = None,
    project: Annotated[str | None, typer.Option(help="Id of the project for sessions.")] = None,
    reflect: Annotated[
        bool,
        typer.Option("--reflect", help="Queue candidate memories for `commonplace review`."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count what there is, and import nothing.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Compute all vectors now.")] = False,
) -> None:
    """Import notes, bookmarks, agent transcripts or a git repository. Reads folders of Markdown
    files (such as an Obsidian vault) and zip files of them (Notion), bookmarks of browsers, Pocket,
    Raindrop, Instapaper, Pinboard, Linkwarden, Karakeep and Readwise, Omnivore, OPML, ChatGPT,
    Claude, Kindle clippings, Evernote, mail, notebooks, Claude Code or Codex transcripts (JSONL),
    git repositories and saved `git log`. Importing again creates no duplicates."""
    kind = _find_kind(source, kind)
    if kind == "markdown" and source.is_dir() and (project or reflect):
        raise Invalid("--project and --reflect go with conversations, transcripts and git logs.")
    services, caller = session.services, session.caller
    with output.progress("Importing") as advance:
        if kind == "markdown":
            if source.is_file():
                result = await services.program_import.run(
                    caller, source, advance, dry_run=dry_run, project=project, reflect=reflect
                )
            else:
                result = await import_folder(
                    services.bulk_import,
                    services.folders,
                    caller,
                    source,
                    advance,
                    services.originals,
                    services.uploads,
                    dry_run=dry_run,
                )
        elif dry_run:
            raise Invalid("--dry-run goes with notes and export files.")
        else:
            sessions = services.sessions
            read = sessions.import_git if kind == "git" else sessions.import_transcripts
            result = await read(caller, source, advance, project=project, reflect=reflect)
    if dry_run:
        told = ", ".join(f"{count} {what}" for what, count in result.found.items() if count)
        session.show(
            {"found": result.found, "folders": result.folders, "same": _pairs(result.same)},
            f"Found {told or 'nothing'}. Nothing was imported.",
        )
        _note_same(result)
        return
    if wait:
        await run_jobs(services, "Making vectors")
    waiting = (await services.store.jobs.counts()).get("queued", 0)
    answer: dict[Any, Any] = {
        **result.outcomes,
        "folders": result.folders,
        "waiting": waiting,
        "skipped": [{"path": path, "reason": reason} for path, reason in result.skipped],
        "unread": [{"path": path, "reason": reason} for path, reason in result.unread],
        "unreachable": [{"path": path, "reason": why} for path, why in result.unreachable],
        "same": _pairs(result.same),
    }
    session.show(
        answer, ", ".join(f"{count} {outcome}" for outcome, count in result.outcomes.items())
    )
    for path, reason in result.skipped:
        output.note(f"Skipped {path}: {reason}")
    for path, reason in result.unreachable:
        output.note(f"Kept without its page: {path}: {reason}")
    _note_same(result)
    for path, reason in result.unread:
        output.note(f"Skipped {path}: {reason}")
    if waiting:
        follow = "summaries follow" if services.embedder.quick else "semantic search follows"
        output.note(
            f"Searchable now; {follow} ({waiting} jobs, run by `commonplace serve`, or now by "
            "`commonplace reindex`)."
        )
    if result.skipped:
        many = len(result.skipped)
        raise Invalid(
            f"{many} file{'s were' if many > 1 else ' was'} skipped. "
            "Run the command again to retry."
        )


def _pairs(same: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"path": path, "same_as": other} for path, other in same]


def _note_same(result: ImportResult) -> None:
    for path, other in result.same:
        output.note(f"{path} is the same as {other}. They stay two items.")


def _find_kind(source: Path, asked: str | None) -> str:
    """Return the requested kind, or the kind of the source; notes win over others."""
    if asked is not None and asked not in KINDS:
        raise Invalid(f"--as must be {', '.join(KINDS[:-1])} or {KINDS[-1]}, not {asked!r}.")
    if not source.exists():
        raise Invalid(f"There is no file or folder {str(source)!r}.")
    if asked is not None:
        return asked
    if source.is_file():
        with source.open("rb") as file:
            start = file.read(100).decode(errors="replace")
        is_log = session_sources.is_saved_log(start)
        is_transcript = source.suffix.lower() == session_sources.ENDING
    elif markdown_files(source):
        return "markdown"
    else:
        is_log = session_sources.is_repository(source)
        is_transcript = not is_log and bool(session_sources.files(source))
    return "transcripts" if is_transcript else "git" if is_log else "markdown"


async def export(session: Session, directory: Directory) -> None:
    """Export every item to a Markdown file, with the files that were uploaded. Never overwrites
    files it did not create."""
    services = session.services
    with output.progress("Exporting") as advance:
        count = await export_folder(
            services.library,
            services.versions,
            services.folders,
            session.caller,
            directory,
            advance,
            services.originals,
            services.disks,
        )
    await opml.write(services.feeds, services.folders, session.caller, directory)
    session.show({"exported": count}, f"Exported to {directory}: {output.count_items(count)}.")


async def backup(
    context: CommandContext,
    file: File,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    without_files: Annotated[
        bool, typer.Option("--without-files", help="Leave out uploaded files.")
    ] = False,
) -> None:
    """Back up everything, including vectors and uploaded files, to one file for SQLite or
    Postgres."""
    context.require_owner()
    if file.exists() and not force:
        raise Invalid(f"{file} already exists. Choose another name, or overwrite it with --force.")
    if not file.parent.is_dir():
        raise Invalid(f"There is no folder {str(file.parent)!r} to put it in.")
    async with context.open() as (services, _):
        with output.progress("Backing up") as advance:
            blobs = None if without_files else services.originals.blobs
            counts = await services.store.dump(file, advance, blobs)
    size, items = file.stat().st_size, output.count_items(counts["items"])
    context.show(
        {"file": str(file), "bytes": size, "rows": counts},
        f"Backed up in {file}: {items} ({size / 1e6:.1f} MB).",
    )


async def restore(
    context: CommandContext,
    file: File,
    force: Annotated[bool, typer.Option("--force", help="Replace the existing library.")] = False,
) -> None:
    """Restore a backup, all or nothing. Replaces an existing library only with --force."""
    from commonplace.app import restore_backup

    context.require_owner()
    with output.progress("Restoring") as advance:
        counts = await restore_backup(context.settings, file, force=force, advance=advance)
    context.show({"rows": counts}, f"Restored: {output.count_items(counts['items'])}.")


COMMANDS: Commands = {
    "import": import_,
    "export": export,
    "backup": backup,
    "restore": restore,
}
