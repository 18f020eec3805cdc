"""Pages of Omnivore. The service is closed, so the text is taken from the export."""

from typing import Any

from commonplace.adapters.exports.parts import (
    clean,
    folder,
    is_web,
    line,
    moment,
    tags,
)
from commonplace.adapters.extract.html import convert
from commonplace.model import Saved


def page(entry: dict[str, Any], html: bytes, highlights: bytes) -> Saved:
    url = clean(entry.get("url")).strip()
    title = line(entry.get("title")) or url or "Untitled"
    tree = convert.parse(html.decode("utf-8", "replace")) if html.strip() else None
    text = convert.convert(tree, base=url) if tree is not None else ""
    note = clean(highlights.decode("utf-8", "replace")).strip()
    if not is_web(url) and not text:
        return Saved(title, lost="The export has neither an address nor a text for it.")
    return Saved(
        title,
        url if is_web(url) else None,
        text=text,
        whole=bool(text),
        tags=tags(entry.get("labels")),
        folder=folder("Archive") if entry.get("state") == "Archived" else None,
        at=moment(entry.get("savedAt")),
        author=line(entry.get("author")),
        note=note,
        about={"published": entry["publishedAt"]} if moment(entry.get("publishedAt")) else {},
    )
