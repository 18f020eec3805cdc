"""Import an export file of another program: the form, and what became of files sent before."""

import asyncio
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from starlette.responses import Response

from commonplace.errors import Invalid
from commonplace.interfaces.web.request import WebRequest, get, post


async def show(request: WebRequest) -> Response:
    jobs = await request.services.imports.recent(request.caller)
    return request.page("imports.html", jobs=jobs)


async def submit(request: WebRequest) -> Response:
    imports = request.services.imports
    request.services.access.require(request.caller, imports.submit.needs)
    files = request.files("file")
    if len(files) != 1:
        raise Invalid("Choose one file.")
    with TemporaryDirectory(prefix="commonplace-") as temporary:
        place = Path(temporary) / "file"
        with await asyncio.to_thread(place.open, "wb") as out:
            await asyncio.to_thread(shutil.copyfileobj, files[0].file, out)
        await imports.submit(
            request.caller, place, files[0].filename or "file", bool(request.text("dry_run"))
        )
    return request.redirect("/import", "The file has arrived. It is read now.")


ROUTES = (get("/import", show), post("/import", submit))
