"""Bookmarks of browsers (Netscape's HTML) and of programs that write the same: Pocket, Raindrop."""

import re
from dataclasses import replace
from html.parser import HTMLParser

from commonplace.adapters.exports.parts import (
    NO_ADDRESS,
    Found,
    clean,
    folder,
    is_web,
    line,
    seconds,
    tags,
)
from commonplace.model import Saved

_MARKS = re.compile(r"<!doctype netscape-bookmark|<dl[\s>]|<dt>|\b(?:add_date|time_added)=", re.I)
_POCKET = re.compile(r"<title>(?:pocket export|instapaper)", re.I)


def knows(head: str) -> bool:
    return head.startswith("<") and bool(_MARKS.search(head) or _POCKET.search(head))


def read(page: str) -> Found:
    parser = _Bookmarks()
    parser.feed(page)
    parser.close()
    parser.finish()
    return iter(parser.found)


class _Bookmarks(HTMLParser):
    """Parses nested lists with a heading per folder. Pocket's and Instapaper's lists are flat,
    under a heading that is their folder."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Saved] = []
        self._folders: list[str] = []  # one per open list; "" without a name
        self._heading = self._flat = ""
        self._link: dict[str, str | None] | None = None
        self._made: Saved | None = None  # whose note may follow
        self._text = ""
        self._describing = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("dt", "dl", "li", "h1", "h3"):
            self.finish()
        if tag == "dl":
            self._folders.append(self._heading)
            self._heading = ""
        elif tag == "a" and not self._describing:
            self._link = dict(attrs)
        elif tag == "dd":
            self._describing = self._made is not None
        if tag in ("a", "h1", "h3", "dd") and not (tag == "a" and self._describing):
            self._text = ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "dl":
            self.finish()
            if self._folders:
                self._folders.pop()
        elif tag == "h3":
            self._heading = line(self._text)
        elif tag == "h1" and not self._folders:
            self._flat = line(self._text)
        elif tag == "a" and self._link is not None:
            self._add(self._link)
            self._link = None

    def _add(self, link: dict[str, str | None]) -> None:
        url, title = (link.get("href") or "").strip(), line(self._text)
        if url.lower().startswith("place:"):  # a search of Firefox
            return
        names = self._folders if self._folders else [self._flat]
        self._made = Saved(
            title or url,
            url,
            tags=tags(link.get("tags") or ""),
            folder=folder(*names),
            at=seconds(link.get("add_date") or link.get("time_added")),
        )
        if not is_web(url):
            self._made = Saved(title or url[:100], lost=NO_ADDRESS)

    def finish(self) -> None:
        """Take up the bookmark before, with the note that followed it."""
        if self._made is not None:
            made, note = self._made, clean(self._text).strip() if self._describing else ""
            self.found.append(replace(made, note=note) if note and not made.lost else made)
        self._made, self._describing = None, False

    def handle_data(self, data: str) -> None:
        self._text += data
