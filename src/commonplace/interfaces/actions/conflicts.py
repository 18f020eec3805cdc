"""Conflicts and similar statements, as answers show them."""

from typing import Any

from commonplace.interfaces.actions.items import on_one_line
from commonplace.interfaces.actions.shapes import Shape, said
from commonplace.model import Json

CONFLICT = Shape(
    "Conflict",
    "commonplace.core.entities.conflicts.FoundConflict",
    "name score kind reason",
    id="entity_id",
    statements=said(list[str], "statements", "Theirs and yours; empty: unknown"),
    difference=said(str | None, "difference", "Theirs against yours"),
)
SIMILAR = Shape(
    "SimilarStatement",
    "commonplace.core.entities.conflicts.SimilarStatement",
    "name score date",
    id="entity_id",
    statements=said(list[str], "statements", "Theirs and yours"),
)

DECIDE = "These may be affected. If so, call manage with supersede or mark_wrong; else keep both."


def added_text(added: Json, value: Any) -> str:
    lines = [f"{added['message']} [{added['id']}]"]
    for found in added["conflicts"]:
        differs = f": {found['difference']}" if found["difference"] else ""
        lines.append(
            f"- {found['kind'].replace('_', ' ')} of [{found['id']}] "
            f"{on_one_line(found['name'])} ({found['score']:.2f}){on_one_line(differs)}"
        )
    if added["conflicts"] or added["similar"]:
        lines.append(DECIDE)
    for close in added["similar"]:
        said = on_one_line(" / ".join(close["statements"][:1]))
        lines.append(
            f"- [{close['id']}] {on_one_line(close['name'])}, {close['date'][:10]}: {said}"
        )
    return "\n".join(lines)
