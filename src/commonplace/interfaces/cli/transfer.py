"""import, export, backup, restore."""

from pathlib import Path
from typing import Annotated

import typer

from commonplace.errors import Invalid
from commonplace.interfaces.cli import output
from commonplace.interfaces.cli.command import Desk, command
from commonplace.interfaces.cli.job_queue import work_off

Directory = Annotated[Path, typer.Argument(help="The folder.", show_default=False)]
File = Annotated[Path, typer.Argument(help="The backup file.", show_default=False)]


def register(root: typer.Typer) -> None:
    command(root, "import")(import_)
    command(root, "export")(export)
    command(root, "backup")(backup)
    command(root, "restore")(restore)


KINDS = ("markdown", "transcripts", "git")


async def import_(
    desk: Desk,
    source: Annotated[
        Path,
        typer.Argument(
            help="A folder of Markdown files, agent transcripts, a git repository, or an export file.",
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
    wait: Annotated[bool, typer.Option("--wait", help="Compute all vectors now.")] = False,
) -> None:
    """Import a folder of Markdown files (such as an Obsidian vault), browser bookmarks or Pocket (HTML),
    Pocket or Readwise (CSV), Karakeep (JSON), Claude Code or Codex transcripts (JSONL), or a git
    repository or saved `git log`. Importing again updates items and creates no duplicates."""
    from commonplace.core.transfer.bookmark_import import import_file
    from commonplace.core.transfer.markdown_folder import import_folder

    kind = _kind(source, kind)
    if kind == "markdown" and (project or reflect):
        raise Invalid("--project and --reflect go with transcripts and git logs.")
    async with desk.open() as (app, caller):
        with output.progress("Importing") as advance:
            if kind == "markdown":
                bring_in = import_file if source.is_file() else import_folder
                result = await bring_in(app.library, app.folders, caller, source, advance)
            else:
                sessions = (
                    app.sessions.import_git if kind == "git" else app.sessions.import_transcripts
                )
                result = await sessions(caller, source, advance, project=project, reflect=reflect)
        if wait:
            with output.progress("Making vectors") as advance:
                await work_off(app, advance)
        waiting = (await app.store.jobs.counts()).get("queued", 0)
    if desk.as_json:
        output.as_json(
            {
                **result.outcomes,
                "folders": result.folders,
                "waiting": waiting,
                "skipped": [{"path": path, "reason": reason} for path, reason in result.skipped],
                "unread": [{"path": path, "reason": reason} for path, reason in result.unread],
            }
        )
    else:
        output.text(", ".join(f"{count} {outcome}" for outcome, count in result.outcomes.items()))
    for path, reason in result.skipped:
        output.note(f"Left out {path}: {reason}")
    for path, reason in result.unread:
        output.note(f"Passed over {path}: {reason}")
    if waiting:
        found, follow = (
            ("words and meaning", "Summaries")
            if app.embedder.quick
            else ("words", "Vectors and summaries")
        )
        output.note(
            f"Found by their {found} from now on. {follow} ({waiting} to make) follow, made by `commonplace "
            "serve` or `commonplace worker` as it runs, or now by `commonplace reindex`."
        )
    if result.skipped:
        raise Invalid(
            f"{len(result.skipped)} of them could not be imported; run it again to try those."
        )


def _kind(source: Path, asked: str | None) -> str:
    """What there is to import. A vault that is kept in git is a vault, and transcripts beside notes have to be asked for."""
    from commonplace.core.transfer import agent_transcripts, git_history
    from commonplace.core.transfer.markdown_folder import markdown_files

    if asked is not None and asked not in KINDS:
        raise Invalid(f"--as must be {', '.join(KINDS[:-1])} or {KINDS[-1]}, not {asked!r}.")
    if not source.exists():
        raise Invalid(f"There is no file or folder {str(source)!r}.")
    if asked is not None:
        return asked
    if source.is_file():
        if source.suffix.lower() == agent_transcripts.ENDING:
            return "transcripts"
        with source.open("rb") as file:
            return (
                "git"
                if git_history.is_saved_log(file.read(100).decode(errors="replace"))
                else "markdown"
            )
    if source.is_dir() and not markdown_files(source):
        return (
            "git"
            if git_history.is_repository(source)
            else "transcripts"
            if agent_transcripts.files(source)
            else "markdown"
        )
    return "markdown"


async def export(desk: Desk, directory: Directory) -> None:
    """Export every item to a Markdown file. Never overwrites files it did not create."""
    from commonplace.core.transfer.markdown_folder import export_folder

    async with desk.open() as (app, caller):
        with output.progress("Exporting") as advance:
            count = await export_folder(app.library, app.versions, caller, directory, advance)
    output.as_json({"exported": count}) if desk.as_json else output.text(
        f"Exported to {directory}: {output.items(count)}."
    )


async def backup(
    desk: Desk,
    file: File,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Back up everything, including vectors, to one file for SQLite or Postgres."""
    desk.require_owner()
    if file.exists() and not force:
        raise Invalid(f"{file} is there already; choose another name, or --force.")
    if not file.parent.is_dir():
        raise Invalid(f"There is no folder {str(file.parent)!r} to put it in.")
    async with desk.open() as (app, _):
        with output.progress("Backing up") as advance:
            counts = await app.store.dump(file, advance)
    output.as_json(
        {"file": str(file), "bytes": file.stat().st_size, "rows": counts}
    ) if desk.as_json else output.text(
        f"Backed up in {file}: {output.items(counts['items'])} ({file.stat().st_size / 1e6:.1f} MB)."
    )


async def restore(
    desk: Desk,
    file: File,
    force: Annotated[bool, typer.Option("--force", help="Replace the existing library.")] = False,
) -> None:
    """Restore a backup, all or nothing. Replaces an existing library only with --force."""
    from commonplace.app import restore_backup

    desk.require_owner()
    with output.progress("Restoring") as advance:
        counts = await restore_backup(desk.settings, file, force=force, advance=advance)
    output.as_json({"rows": counts}) if desk.as_json else output.text(
        f"Restored: {output.items(counts['items'])}."
    )
