"""What notes may teach, waiting for a yes or a no; and, side by side, what it repeats or contradicts."""

from dataclasses import dataclass

from starlette.responses import Response

from commonplace.core.entities import validation as rules
from commonplace.core.entities.duplicates import SimilarItem
from commonplace.core.memory.reflection import Notes, ReviewedCandidate
from commonplace.errors import Invalid
from commonplace.interfaces.web.markdown_html import plain_text
from commonplace.interfaces.web.pages.tasks import projects_of
from commonplace.interfaces.web.request import Visit
from commonplace.interfaces.web.route import get, post
from commonplace.model import Kind

SHOWN = 20
EXCERPT = 600
FIELDS = ("kind", "title", "content")
LINKS = {"link": Kind.RELATED_TO, "contradict": Kind.CONTRADICTS}
SAID = {
    "accept": "Kept.",
    "supersede": "Kept, in place of what was known.",
    "link": "Kept, and linked.",
    "contradict": "Kept, and linked.",
    "reject": "Rejected.",
}


@dataclass(frozen=True, slots=True)
class Beside:
    """Something that is known already, next to a candidate."""

    alike: SimilarItem
    text: str
    contradicts: bool


async def show(visit: Visit) -> Response:
    reflection = visit.services.reflection
    candidates, total = await reflection.candidates(visit.caller, limit=SHOWN)
    waiting = []
    for candidate in candidates:
        judged = await reflection.candidate(visit.caller, candidate.id)
        waiting.append((candidate, [*await _beside(visit, judged)]))
    return visit.page(
        "review.html",
        waiting=waiting,
        total=total,
        kinds=rules.TYPES,
        of_projects=rules.WORK,
        projects=[each.item for each in await projects_of(visit)],
    )


async def _beside(visit: Visit, judged: ReviewedCandidate) -> list[Beside]:
    shown = []
    source = (
        judged.queued.source_id if judged.queued else None
    )  # the notes it was read out of say the same, of course
    alikes = [
        alike for alike in (*judged.contradictions, *judged.duplicates) if alike.item_id != source
    ]
    for alike in alikes[:3]:
        reading = await visit.services.library.read(visit.caller, alike.item_id)
        excerpt = plain_text(reading.text[: 4 * EXCERPT])[:EXCERPT]
        shown.append(Beside(alike, excerpt, alike in judged.contradictions))
    return shown


async def captures(visit: Visit) -> Response:
    """What was captured, word for word. There is nothing to press here: captures are never changed."""
    page = visit.number("page", 1)
    kept, total = await visit.services.memory.captures(
        visit.caller, limit=SHOWN, offset=(page - 1) * SHOWN
    )
    pages = -(-total // SHOWN)
    if page > pages > 0:
        return visit.go(f"/review/captures?page={pages}")
    return visit.page("captures.html", kept=kept, total=total, page=page, pages=pages)


async def reflect(visit: Visit) -> Response:
    form = await visit.form()
    notes = Notes(
        form.get("content", ""), form.get("title", "").strip() or "Notes", persist=True, review=True
    )
    found = await visit.services.reflection.reflect(visit.caller, notes)
    many = len(found.candidates)
    return visit.go(
        "/review", f"{many} to look at." if many else "There is nothing to remember in it."
    )


async def decide(visit: Visit) -> Response:
    """What its fields say now is what is kept: they can be changed in the same form."""
    form, candidate_id = await visit.form(), visit.request.path_params["candidate_id"]
    action, _, other = form.get("action", "").partition(":")  # supersede:<id> of what is known
    if action not in SAID:
        raise Invalid("Say what is to become of it.")
    if action in ("supersede", *LINKS) and not other:
        raise Invalid("Choose what it is compared with.")
    if action == "reject":
        await visit.services.reflection.reject(visit.caller, candidate_id)
        return visit.go("/review", SAID[action])
    changes: dict[str, str | None] = {
        name: form[name].replace("\r\n", "\n") for name in FIELDS if name in form
    }
    if "project" in form:
        changes["project"] = form["project"] or None
    _, kept = await visit.services.reflection.accept(visit.caller, candidate_id, changes)
    if action == "supersede":
        await visit.services.memory.supersede(visit.caller, other, by=kept.item.entity_id)
    elif action in LINKS:
        await visit.services.graph.link(visit.caller, kept.item.id, LINKS[action], other)
    return visit.go("/review", SAID[action])


DOORS = (
    get("/review", show),
    get("/review/captures", captures),
    post("/review", reflect),
    post("/review/{candidate_id}", decide),
)
