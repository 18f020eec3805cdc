"""Search over passages, shown by item; each passage leads to its place in the reader."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from starlette.responses import HTMLResponse, Response

from commonplace.core.entities.validation import LONGEST_WORD
from commonplace.core.search.by_item import READ_FOR_EACH, by_item
from commonplace.interfaces.web.forms import field
from commonplace.interfaces.web.markdown_html import marked
from commonplace.interfaces.web.request import WebRequest, get
from commonplace.model import EntityType, ItemFilter, Mode, now
from commonplace.text.snippets import plain_text, snippet

LIMIT = 20  # items
LONGEST_QUESTION, LONGEST_THREAD = 2_000, 4_000
_ASKING = {
    *("who", "whom", "whose", "what", "which", "when", "where", "why", "how"),
    *("wer", "wen", "wem", "was", "wann", "wo", "warum", "wie"),
}
MODES = {Mode.HYBRID: "Both", Mode.SEMANTIC: "Meaning", Mode.KEYWORD: "Words"}
TIMES = {
    "1": "The last day",
    "7": "Past week",
    "31": "Past month",
    "365": "Past year",
}  # in days


async def show(request: WebRequest) -> Response:
    most = field("search_knowledge_base", "query")["maxLength"]
    query, mode, since = (
        request.query("q").strip()[:most],
        request.query("mode"),
        request.query("since"),
    )
    folder = next((node for node in request.folders if node.id == request.query("folder")), None)
    kind = request.query("type") if request.query("type") in {*EntityType} else ""
    first, last = _day(request.query("from")), _day(request.query("to"))
    after, before = _day(request.query("after")), _day(request.query("before"))
    shown: dict[str, Any] = {
        "query": query,
        "mode": mode if mode in {*Mode} else Mode.HYBRID,
        "folder": folder,
        "type": kind,
        "since": since if since in TIMES else "",
        "first": first,
        "last": last,
        "after": after,
        "before": before,
        "author": request.query("author").strip()[:LONGEST_WORD],
        "language": request.query("language").strip()[:LONGEST_WORD].lower(),
        "found": None,
        "answer": None,
        "thread": request.query("thread")[:LONGEST_THREAD],
        "items": [],
        "modes": MODES,
        "times": TIMES,
    }
    shown["without"] = _without(shown)
    # The page of an item marks the words, and leads back here.
    shown["in_list"] = urlencode({"q": query, "list": f"/search?{urlencode(_asked(shown))}"})
    if query:
        starts = [first] if first else []
        starts += [now() - timedelta(days=int(since))] if since in TIMES else []
        where = ItemFilter(
            entity_types=(kind,) if kind else (),
            since=max(starts, default=None),
            until=last + timedelta(days=1, microseconds=-1) if last else None,
            author=shown["author"] or None,
            text_language=shown["language"] or None,
            published_after=after,
            published_before=before and before + timedelta(days=1),
        )
        # Narrowing to a folder is what a token of that folder would see: inside the
        # query, as all scopes are.
        caller = (
            request.caller
            if folder is None
            else replace(request.caller, folders=frozenset({folder.id}))
        )
        found = await request.services.search.search(
            caller, query, limit=READ_FOR_EACH * LIMIT, mode=Mode(shown["mode"]), where=where
        )
        if _is_question(query):
            # As somebody types, no language model is asked.
            shown["answer"] = await request.services.ask.ask(
                caller,
                query[:LONGEST_QUESTION],
                where=where,
                thread_id=shown["thread"] or None,
                by_model=not request.query("part"),
            )
        shown |= {
            "found": found,
            "items": by_item(found.hits, LIMIT),
            "excerpt": lambda passage: marked(snippet(passage.text, found.query)),
            "plain": plain_text,
        }
    if request.query("part"):
        return HTMLResponse(request.templates.render("hits.html", **shown))
    return request.page("search.html", **shown)


def _is_question(query: str) -> bool:
    words = query.lower().split()
    return query.endswith(("?", "？")) or (len(words) > 2 and words[0] in _ASKING)


def _day(text: str) -> datetime | None:
    """Return the day of a date field, or None if the address has something else."""
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC) if text else None
    except ValueError:
        return None


def _asked(shown: dict[str, Any]) -> dict[str, str]:
    """Return the query of the search's address."""
    folder = shown["folder"]
    days = {"from": "first", "to": "last", "after": "after", "before": "before"}
    asked = {
        "q": shown["query"],
        "mode": str(shown["mode"]),
        "folder": folder.id if folder else "",
        "type": shown["type"],
        "since": shown["since"],
        "author": shown["author"],
        "language": shown["language"],
        **{name: f"{shown[day]:%Y-%m-%d}" for name, day in days.items() if shown[day]},
    }
    return {name: value for name, value in asked.items() if value}


def _without(shown: dict[str, Any]) -> dict[str, str]:
    """Return each active filter in words, with the address of the search without it."""
    folder, asked = shown["folder"], _asked(shown)
    named = {
        "folder": f"in {folder.label}" if folder else "",
        "type": f"{shown['type']}s",
        "since": TIMES.get(shown["since"], "").lower(),
        "from": f"from {asked.get('from')}",
        "to": f"until {asked.get('to')}",
        "author": f"by {asked.get('author')}",
        "language": f"in {asked.get('language')}",
        "after": f"published from {asked.get('after')}",
        "before": f"published until {asked.get('before')}",
    }
    return {
        named[name]: "/search?"
        + urlencode({key: value for key, value in asked.items() if key != name})
        for name in named
        if name in asked
    }


ROUTES = (get("/search", show),)
