"""Bookmarks as JSON: Karakeep, Pinboard, Linkwarden."""

from typing import Any

from commonplace.adapters.exports.parts import (
    NO_ADDRESS,
    Found,
    clean,
    folder,
    is_web,
    line,
    moment,
    tags,
)
from commonplace.model import Saved

_DEEPEST = 20  # levels of collections
_NOTHING = "The export has neither a URL nor a text for it, and contains no files."


def read(loaded: Any, name: str) -> Found:
    match loaded:
        case {"bookmarks": [*entries]}:
            for entry in entries:
                if isinstance(entry, dict):
                    yield _karakeep(entry)
        case {"collections": [*collections]}:
            yield from _linkwarden([each for each in collections if isinstance(each, dict)])
        case [{"href": str()}, *_]:
            for entry in loaded:
                if isinstance(entry, dict):
                    yield _pinboard(entry)


def _karakeep(entry: dict[str, Any]) -> Saved:
    content = entry.get("content")
    content = content if isinstance(content, dict) else {}
    url = content.get("url") if content.get("type") == "link" else None
    url = clean(url).strip() if is_web(url) else None
    text, note = (
        clean(part).strip() if isinstance(part, str) else ""
        for part in (content.get("text"), entry.get("note"))
    )
    said = "\n\n".join(filter(None, (text, note)))
    title = line(entry.get("title") or content.get("title") or url or said[:60] or "Untitled")
    if not url and not said:
        return Saved(title, lost=_NOTHING)
    return Saved(
        title,
        url,
        text="" if url else said,
        tags=tags(entry.get("tags")),
        at=moment(entry.get("createdAt")),
        note=said if url else "",
    )


def _pinboard(entry: dict[str, Any]) -> Saved:
    url = clean(entry.get("href")).strip()
    title = line(entry.get("description")) or url
    if not is_web(url):
        return Saved(title, lost=NO_ADDRESS)
    private = entry.get("shared") == "no"
    unread = entry.get("toread") == "yes"
    return Saved(
        title,
        url,
        tags=(*tags(entry.get("tags"), " "), *(["toread"] if unread else [])),
        at=moment(entry.get("time")),
        note=clean(entry.get("extended")).strip(),
        about={"shared": False} if private else {},
    )


def _linkwarden(collections: list[dict[str, Any]]) -> Found:
    known = {each.get("id"): each for each in collections if isinstance(each.get("id"), int | str)}
    for collection in collections:
        names: list[object] = []
        above: dict[str, Any] | None = collection
        while above is not None and len(names) < _DEEPEST:
            names.insert(0, above.get("name"))
            parent = above.get("parentId")
            above = known.get(parent) if isinstance(parent, int | str) else None
        links = collection.get("links")
        for entry in links if isinstance(links, list) else ():
            if isinstance(entry, dict):
                yield _link(entry, folder(*names))


def _link(entry: dict[str, Any], filed_in: str | None) -> Saved:
    url, text = clean(entry.get("url")).strip(), clean(entry.get("textContent")).strip()
    note = clean(entry.get("description")).strip()
    title = line(entry.get("name")) or url or "Untitled"
    if not is_web(url) and not (text or note):
        return Saved(title, lost=_NOTHING)
    return Saved(
        title,
        url if is_web(url) else None,
        text=text if is_web(url) else "\n\n".join(filter(None, (note, text))),
        tags=tags(entry.get("tags")),
        folder=filed_in,
        at=moment(entry.get("importDate") or entry.get("createdAt")),
        note=note if is_web(url) else "",
    )
