"""doctor: check the installation, one line per part."""

import platform
import shutil
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from commonplace import __version__, hooks
from commonplace.core.search.search import incomplete
from commonplace.errors import CommonplaceError, Invalid
from commonplace.interfaces.cli import output
from commonplace.interfaces.cli.command import CommandContext, Commands
from commonplace.interfaces.cli.connect import check_server
from commonplace.model import EMBED, Caller, ItemFilter
from commonplace.settings import PREFIX, Settings

if TYPE_CHECKING:
    from commonplace.core.services import Services

ENOUGH_SPACE = 500_000_000
ENGLISH_EMBEDDERS = ("local", "static")


class State(StrEnum):
    OK = "ok"
    NOTE = "note"  # worth knowing, and no problem
    PROBLEM = "problem"


MARKS = {State.OK: "✓", State.NOTE: "-", State.PROBLEM: "✗"}


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    state: State
    detail: str


@dataclass(slots=True)
class Report:
    facts: dict[str, Any]
    checks: list[Check] = field(default_factory=list)

    def add(self, name: str, found: str, problem: str | None = "", *, note: bool = False) -> None:
        """Add what was found of a part, or its problem."""
        state = State.PROBLEM if problem else State.NOTE if note else State.OK
        self.checks.append(Check(name, state, problem or found))

    @property
    def problems(self) -> list[str]:
        return [check.detail for check in self.checks if check.state is State.PROBLEM]


async def doctor(
    context: CommandContext,
    settings: Annotated[bool, typer.Option("--settings", help="Also list all settings.")] = False,
) -> None:
    """Check the installation: version, server, disk, database, models and jobs. Names what to do
    about each problem."""
    report = Report(
        {"data_dir": str(context.settings.data_dir), "embedder": context.settings.embedder}
    )
    report.add("Version", f"Commonplace {__version__}, Python {platform.python_version()}")
    _check_server(context.settings, report)
    _check_disk(context.settings.data_dir, report)
    try:
        async with context.open() as (services, caller):
            await _check_library(services, caller, report)
    except CommonplaceError as error:
        report.add("Database", "", error.message)
    except OSError as error:
        report.add("Database", "", f"{error.strerror}: {error.filename}.")
    values = _list_settings(context.settings) if settings else []
    problems = report.problems
    answer = {
        "ok": not problems,
        "problems": problems,
        "checks": [asdict(check) for check in report.checks],
        **report.facts,
    }
    if settings:
        answer["settings"] = {name: value for name, value, _ in values}
    context.show(answer, lambda: _print(report, values))
    if problems:
        raise Invalid(f"{len(problems)} problem{'s' if len(problems) > 1 else ''} found.")


def _print(report: Report, values: list[tuple[str, str, str]]) -> None:
    width = max(len(check.name) for check in report.checks)
    for check in report.checks:
        output.text(f"{MARKS[check.state]} {check.name:<{width}}  {check.detail}")
    if values:
        output.text()
        output.table(["setting", "value", "help"], values)
    if not report.problems:
        output.text("\nNo problems found.")


def _check_server(settings: Settings, report: Report) -> None:
    if not (settings.url or hooks.server_url(settings.data_dir)):
        report.add("Server", "Not running. Start it: commonplace serve", note=True)
        return
    url, problem = check_server(settings)
    report.add("Server", f"{url} is ready", problem.replace(" See: commonplace doctor", ""))


def _check_disk(data_dir: Path, report: Report) -> None:
    there = next((each for each in (data_dir, *data_dir.parents) if each.exists()), Path.cwd())
    free = shutil.disk_usage(there).free
    report.facts["free_bytes"] = free
    found = f"{output.size(free)} free in {data_dir}"
    report.add("Disk", found, f"Only {found}." if free < ENOUGH_SPACE else "")


async def _check_library(services: "Services", caller: Caller, report: Report) -> None:
    engine = await services.store.describe()
    await services.store.check()
    stamp = services.embedder.stamp
    done, total = await services.store.sections.coverage(caller.scope, stamp)
    jobs = await services.store.jobs.counts()
    items = (await services.library.page(caller, ItemFilter(), limit=1))[1]
    report.facts |= {
        "engine": f"{engine['engine']} {engine['version']}",
        "schema": engine["schema"],
        "embedder": stamp,
        "people": await services.people.count(),
        "items": items,
        "sections": total,
        "sections_with_vectors": done,
        "jobs": jobs,
        "checkpoint_bytes": engine["checkpoint_bytes"],
    }
    report.add(
        "Database",
        f"{engine['engine']} {engine['version']}, schema {engine['schema']}, "
        f"{output.count_items(items)}",
    )
    await _check_models(services, report)
    waiting, reason = await services.store.jobs.count_open(EMBED)
    problem = ""
    if await services.store.sections.has_other_stamp(stamp, caller.scope):
        problem = "Some vectors were made by another embedder: run `commonplace reindex`."
    elif done < total and not jobs.get("queued") and not jobs.get("running"):
        problem = (
            f"{total - done} sections have no vector and no job for one: run `commonplace reindex`."
        )
    elif reason:
        problem = incomplete(waiting, reason) or ""
    report.add("Vectors", f"{done:,} of {total:,} passages", problem)
    failed = (
        f"{jobs['failed']} jobs have failed for good: `commonplace reindex` makes the missing "
        "vectors, `commonplace retry ITEM` tries again what else failed for an item."
        if jobs.get("failed")
        else ""
    )
    running, queued = jobs.get("running", 0), jobs.get("queued", 0)
    report.add("Jobs", f"{running:,} running, {queued:,} waiting", failed)


async def _check_models(services: "Services", report: Report) -> None:
    """Check that the models are downloaded, and that the embedder works."""
    from commonplace.app import missing_models

    settings, stamp = services.settings, services.embedder.stamp
    if settings.embedder in ENGLISH_EMBEDDERS:
        report.facts["languages"] = (
            "by meaning English only, by keyword all (see COMMONPLACE_EMBEDDER)"
        )
    missing = missing_models(settings)
    problem = f"Not downloaded: {', '.join(missing)}. Run `commonplace setup`." if missing else ""
    if not problem:
        try:
            await services.embedder.query("Is it there?")
        except CommonplaceError as error:
            problem = f"The embedder does not work: {error.message}"
    report.add("Models", f"{stamp} works", problem)


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


COMMANDS: Commands = {"doctor": doctor}
