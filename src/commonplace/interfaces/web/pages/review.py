"""Review of candidate memories, beside the memories they repeat or contradict."""

from dataclasses import dataclass
from functools import partial

from starlette.responses import Response

from commonplace.core.entities.conflicts import FoundConflict
from commonplace.core.entities.validation import WORK
from commonplace.core.memory.reflection import ReviewedCandidate
from commonplace.errors import Invalid
from commonplace.interfaces.web.jinja import count
from commonplace.interfaces.web.pages.tasks import projects_of
from commonplace.interfaces.web.request import WebRequest, get, post
from commonplace.model import Kind
from commonplace.text.snippets import plain_text

SHOWN = 20
EXCERPT = 600
LINKS = {"link": Kind.RELATED_TO, "contradict": Kind.CONTRADICTS}
SAID = {
    "accept": "Accepted.",
    "supersede": "Accepted. The older memory is superseded.",
    "link": "Accepted and linked.",
    "contradict": "Accepted and linked.",
    "reject": "Rejected.",
}


@dataclass(frozen=True, slots=True)
class Beside:
    """A known memory, shown next to a candidate."""

    alike: FoundConflict
    text: str
    contradicts: bool


async def show(request: WebRequest) -> Response:
    reflection = request.services.reflection
    candidates, total = await reflection.candidates(request.caller, limit=SHOWN)
    return request.page(
        "review.html",
        waiting=[
            (each, await _beside(request, await reflection.candidate(request.caller, each.id)))
            for each in candidates
        ],
        total=total,
        of_projects=WORK,
        projects=[each.item for each in await projects_of(request)],
    )


async def _beside(request: WebRequest, judged: ReviewedCandidate) -> list[Beside]:
    shown = []
    # The notes it was read out of say the same, of course.
    source = judged.queued.source_id if judged.queued else None
    alikes = [
        alike for alike in (*judged.contradictions, *judged.duplicates) if alike.item_id != source
    ]
    for alike in alikes[:3]:
        reading = await request.services.library.read(request.caller, alike.item_id)
        excerpt = plain_text(reading.text[: 4 * EXCERPT])[:EXCERPT]
        shown.append(Beside(alike, excerpt, alike in judged.contradictions))
    return shown


async def captures(request: WebRequest) -> Response:
    """List captures word for word, read-only: captures never change."""
    read = partial(request.services.memory.captures, request.caller)
    return request.page(
        "captures.html", **await request.read_page(SHOWN, "/review/captures?", read)
    )


async def reflect(request: WebRequest) -> Response:
    title = request.text("title").strip() or "Notes"
    done = await request.act("reflect", "content", source_title=title, persist=True, review=True)
    found = done.candidates
    return request.redirect(
        "/review", f"{count(len(found), 'candidate')} found." if found else "No memories found."
    )


async def decide(request: WebRequest) -> Response:
    """Accept or reject a candidate, with the changes made in its form."""
    form, caller = request.form, request.caller
    action, _, other = request.text("action").partition(":")  # supersede:<id> of what is known
    if action not in SAID:
        raise Invalid("Choose what to do with the candidate.")
    if action in ("supersede", *LINKS) and not other:
        raise Invalid("Choose the memory to compare with.")
    if action == "reject":
        await request.act("reject_candidate")
        return request.redirect("/review", SAID[action])
    wanted = request.input("accept_candidate", "kind title content")
    changes = wanted.changes | ({"project": form["project"] or None} if "project" in form else {})
    _, kept = await request.services.reflection.accept(caller, wanted.candidate_id, changes)
    if action == "supersede":
        await request.services.memory.supersede(caller, other, by=kept.item.entity_id)
    elif action in LINKS:
        await request.services.graph.link(caller, kept.item.id, LINKS[action], other)
    return request.redirect("/review", SAID[action])


ROUTES = (
    get("/review", show),
    get("/review/captures", captures),
    post("/review", reflect),
    post("/review/{candidate_id}", decide),
)
