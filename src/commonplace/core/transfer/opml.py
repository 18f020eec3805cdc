"""Subscriptions to feeds as OPML, which feed readers import."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from commonplace.core.items.feeds import Feeds
from commonplace.core.items.folders import Folders
from commonplace.errors import Invalid
from commonplace.model import Caller, Subscription, folder_list, split_path

NAME, _TITLE = "feeds.opml", "Feeds of Commonplace"
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")  # not in XML


async def write(feeds: Feeds, folders: Folders, caller: Caller, root: Path) -> None:
    """Write the feeds of an export. Never overwrites a file of other origin."""
    followed, file = await feeds.all(caller), root / NAME
    if not followed:
        return
    paths = {node.id: node.path for node in folder_list(await folders.list_folders(caller))}

    def put() -> None:
        if file.exists() and f"<title>{_TITLE}</title>" not in file.read_text("utf-8", "replace"):
            raise Invalid(f"{file} already exists and is not from this library.")
        file.write_text(render(followed, paths), "utf-8")

    await asyncio.to_thread(put)


def render(feeds: Sequence[Subscription], paths: Mapping[str, str]) -> str:
    """Render feeds, in outlines that are their folders. `paths`: of folders, by id."""
    root = ET.Element("opml", version="2.0")
    ET.SubElement(ET.SubElement(root, "head"), "title").text = _TITLE
    outlines: dict[tuple[str, ...], ET.Element] = {(): ET.SubElement(root, "body")}
    for feed in feeds:
        names: tuple[str, ...] = ()
        for name in split_path(paths.get(feed.folder_id or "", "")):
            above, names = outlines[names], (*names, name)
            if names not in outlines:
                outlines[names] = ET.SubElement(above, "outline", text=_plain(name))
        title = _plain(feed.title)
        ET.SubElement(
            outlines[names], "outline", type="rss", text=title, title=title, xmlUrl=feed.url
        )
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _plain(text: str) -> str:
    return _CONTROLS.sub("", text)
