"""Tools of the disks endpoint: search sections, read a disk, list disks."""

from typing import Annotated, cast

from pydantic import Field
from typing_extensions import TypedDict

from commonplace.core.services import Services
from commonplace.errors import NotFound
from commonplace.interfaces.actions import disks as disk_shapes
from commonplace.interfaces.mcp.tools import Tool, as_text
from commonplace.model import Caller, Capability, DiskFilter, DiskScope


class DiskHits(TypedDict):
    results: list[disk_shapes.SectionHit]
    degraded: Annotated[
        str | None, Field(description="Why the result is incomplete; null if it is complete")
    ]


async def _search(
    services: Services, caller: Caller, args: disk_shapes.SearchKnowledge
) -> tuple[str, DiskHits]:
    found, degraded = await services.disks.search(caller, args.query, args.limit)
    results = disk_shapes.section_hits(found)
    return as_text(results), {"results": results, "degraded": degraded}


async def _get(
    services: Services, caller: Caller, args: disk_shapes.GetDisk
) -> tuple[str, disk_shapes.Disk]:
    try:
        answer = disk_shapes.disk(await services.disks.get(caller, args.disk_id))
    except NotFound:
        answer = cast(disk_shapes.Disk, disk_shapes.NOT_FOUND)  # see `may_miss`
    return as_text(answer), answer


async def _list(
    services: Services, caller: Caller, args: disk_shapes.ListDisks
) -> tuple[str, disk_shapes.DiskList]:
    lines, total = await services.disks.page(
        caller, DiskScope(args.scope), DiskFilter(args.category, args.tag), limit=args.limit
    )
    answer = disk_shapes.disk_list(args.scope, lines, total)
    return as_text(answer), answer


TOOLS = (
    Tool(
        "search_knowledge",
        "Search disks",
        "Search the sections of the user's own disks by meaning. Use it when you have a question "
        "and do not know which disk answers it. A hit has either section_text (the section "
        "itself) or, if redacted is true, snippet (what the section is about): use section_text "
        "?? snippet. Pass disk_public_id to get_disk to read the disk.",
        Capability.READ,
        disk_shapes.SearchKnowledge,
        DiskHits,
        _search,
    ),
    Tool(
        "get_disk",
        "Read a disk",
        "Read one disk by its UUID or public_id: title, summary, category, tags, sections with "
        "their key points, and similar disks. The user's own private disks include their text; "
        "published and saved ones are redacted: check redacted before you quote anything as the "
        "source's own words.",
        Capability.READ,
        disk_shapes.GetDisk,
        disk_shapes.Disk,
        _get,
        may_miss=True,
    ),
    Tool(
        "list_disks",
        "List disks",
        "List the user's own disks and the disks of others that they saved, newest first. Use it "
        "to choose a disk before get_disk; filter by scope, category and tag.",
        Capability.READ,
        disk_shapes.ListDisks,
        disk_shapes.DiskList,
        _list,
    ),
)
