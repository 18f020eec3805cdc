"""Health of the library: jobs, failures, sizes; export and backup."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from zipfile import ZIP_DEFLATED, ZipFile

from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response

from commonplace.core.transfer import opml
from commonplace.core.transfer.markdown_folder import export_folder
from commonplace.errors import ForbiddenScope
from commonplace.interfaces.web.request import WebRequest, act, get, post, post_then
from commonplace.model import no_advance, now

TOP = 8


async def show(request: WebRequest) -> Response:
    report = await request.services.overview.report(request.caller)
    return request.page(
        "health.html",
        report=report,
        fullest={
            folder.name: folder.item_count for folder in report.folders[:TOP] if folder.item_count
        },
        types=dict(list(report.items.by_type.items())[:TOP]),
        backs_up=await request.services.access.is_operator(request.caller),
    )


async def libraries(request: WebRequest) -> Response:
    page = await request.services.admin.libraries(request.caller, request.query("after") or None)
    return request.page("admin.html", page=page)


async def export(request: WebRequest) -> Response:
    """Send every item as Markdown, in one zip."""
    services = request.services

    async def write(file: Path) -> None:
        folder = file.parent / "library"
        await export_folder(
            services.library,
            services.versions,
            services.folders,
            request.caller,
            folder,
            no_advance,
            services.originals,
            services.disks,
        )
        await opml.write(services.feeds, services.folders, request.caller, folder)
        await asyncio.to_thread(_zip, folder, file)

    return await _download("zip", "application/zip", write)


async def backup(request: WebRequest) -> Response:
    """Send all libraries of this server, as `commonplace restore` takes them."""
    if not await request.services.access.is_operator(request.caller):
        raise ForbiddenScope(
            "A backup contains every library. Only the server's owner can create one."
        )
    blobs = None if request.text("without_files") else request.services.originals.blobs
    write = partial(request.services.store.dump, blobs=blobs)
    return await _download("backup", "application/gzip", write)


async def _download(
    suffix: str, media_type: str, write: Callable[[Path], Awaitable[object]]
) -> Response:
    """Send the file that `write` makes, and delete it afterwards."""
    folder = Path(await asyncio.to_thread(mkdtemp, prefix="commonplace-"))
    try:
        await write(folder / "file")
    except BaseException:
        await asyncio.to_thread(shutil.rmtree, folder)
        raise
    return FileResponse(
        folder / "file",
        filename=f"commonplace-{now():%Y-%m-%d}.{suffix}",
        media_type=media_type,
        background=BackgroundTask(shutil.rmtree, folder),
    )


def _zip(folder: Path, file: Path) -> None:
    with ZipFile(file, "w", ZIP_DEFLATED) as out:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                out.write(path, path.relative_to(folder))


ROUTES = (
    get("/health", show),
    get("/admin", libraries),
    post_then("/jobs/{job_id}/retry", act("retry_job"), "", "Retrying."),
    post("/export", export),
    post("/backup", backup),
)
