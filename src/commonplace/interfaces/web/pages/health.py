"""How the library is: what is being done, what failed, how full it is; and taking it away."""

import asyncio
import shutil
from pathlib import Path
from tempfile import mkdtemp
from zipfile import ZIP_DEFLATED, ZipFile

from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response

from commonplace.core.transfer.markdown_folder import export_folder
from commonplace.errors import ForbiddenScope
from commonplace.interfaces.web.chart_svg import bars, growth, shares
from commonplace.interfaces.web.request import Visit
from commonplace.interfaces.web.route import get, post
from commonplace.model import now
from commonplace.model.progress import no_advance

TOP = 8


async def show(visit: Visit) -> Response:
    report = await visit.services.overview.report(visit.caller)
    fullest = {
        folder.name: folder.item_count for folder in report.folders[:TOP] if folder.item_count
    }
    plots = {
        "growth": growth(report.added, report.totals.items, "items"),
        "calls": bars(report.calls, "calls"),
        "folders": shares(fullest, "Items by folder") if fullest else "",
        "types": shares(dict(list(report.totals.by_type.items())[:TOP]), "Items by type"),
    }
    return visit.page(
        "health.html",
        report=report,
        plots=plots,
        backs_up=await visit.services.overview.may_back_up(visit.caller),
    )


async def retry(visit: Visit) -> Response:
    await visit.services.library.retry_job(visit.caller, visit.request.path_params["job_id"])
    return visit.go(visit.back, "It is tried again.")


async def export(visit: Visit) -> Response:
    """Every item as Markdown, in one zip."""
    folder = Path(await asyncio.to_thread(mkdtemp, prefix="commonplace-export-"))
    try:
        await export_folder(
            visit.services.library,
            visit.services.versions,
            visit.caller,
            folder / "library",
            no_advance,
        )
        await asyncio.to_thread(_zip, folder / "library", folder / "library.zip")
    except BaseException:
        await asyncio.to_thread(shutil.rmtree, folder)
        raise
    return _given(
        folder, folder / "library.zip", f"commonplace-{now():%Y-%m-%d}.zip", "application/zip"
    )


async def backup(visit: Visit) -> Response:
    """All libraries of this server, as `commonplace restore` takes them."""
    if not await visit.services.overview.may_back_up(visit.caller):
        raise ForbiddenScope(
            "A backup holds everybody's libraries: it is for the person whose server this is."
        )
    folder = Path(await asyncio.to_thread(mkdtemp, prefix="commonplace-backup-"))
    try:
        await visit.services.store.dump(folder / "backup.gz")
    except BaseException:
        await asyncio.to_thread(shutil.rmtree, folder)
        raise
    return _given(
        folder, folder / "backup.gz", f"commonplace-{now():%Y-%m-%d}.backup", "application/gzip"
    )


def _given(folder: Path, file: Path, name: str, kind: str) -> Response:
    return FileResponse(
        file, filename=name, media_type=kind, background=BackgroundTask(shutil.rmtree, folder)
    )


def _zip(folder: Path, file: Path) -> None:
    with ZipFile(file, "w", ZIP_DEFLATED) as out:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                out.write(path, path.relative_to(folder))


DOORS = (
    get("/health", show),
    post("/jobs/{job_id}/retry", retry),
    post("/export", export),
    post("/backup", backup),
)
