"""Answers of actions as text for people."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from commonplace.core.search.by_item import by_item
from commonplace.interfaces.actions.action import Answer
from commonplace.interfaces.actions.ask import answer_text
from commonplace.interfaces.actions.entities import WORK_FACTS, EntityFields
from commonplace.interfaces.actions.fields import label
from commonplace.interfaces.actions.search import CLOSEST, dated, standing
from commonplace.interfaces.cli import output
from commonplace.model import Json, folder_list
from commonplace.model.workflow import notes
from commonplace.text.snippets import plain_text, shortened


def short(item_id: str) -> str:
    """Return the public id of an entity id: the one that is printed everywhere."""
    return item_id.rpartition("_")[2]


Columns = Mapping[str, str | Callable[[Json], Any]]  # by their heads: a field, or what reads it
SHORT = 200  # characters of a passage
ARROWS = {"outgoing": "->", "incoming": "<-", None: "<-"}


def render(name: str, found: Answer, given: Json) -> None:
    """Print the answer of an action: a sentence, a table, or what a function prints."""
    if found.json.get("weak") and (found.json.get("hits") or found.json.get("results")):
        output.text(CLOSEST)
    how = RENDERERS.get(name, "{message}")
    if isinstance(how, str):
        shown = found.json | ({"id": short(found.json["id"])} if how == ADDED else {})
        output.text(how.format(**shown, value=found.value, given=given))
    elif isinstance(how, Mapping):
        rows = next(value for value in found.json.values() if isinstance(value, list))
        asked = given.keys() - {"page", "per_page", "limit", "offset"}
        empty = "No matches." if asked else EMPTY[name]
        _table(how, rows, found.json, int(given.get("offset", 0)), empty)
    else:
        how(found)
    for other in found.json.get("conflicts", ()):
        output.note(_conflict(other))
    for other in found.json.get("similar", ()):
        output.note(_similar(other))
    if found.json.get("degraded"):
        output.note(found.json["degraded"])


def _table(columns: Columns, rows: list[Json], answer: Json, offset: int, empty: str) -> None:
    """Print a table, and the option that shows more."""
    seen, more = offset + len(rows), f"--offset {offset + len(rows)}"
    if "page" in answer:
        seen, more = answer["page"] * answer["per_page"], f"--page {answer['page'] + 1}"
    cells = [[_cell(row, each) for each in columns.values()] for row in rows]
    output.table(list(columns), cells, empty)
    if answer["total"] > seen:
        output.note(f"{len(rows)} of {answer['total']}; {more} shows more.")


def _cell(row: Json, column: str | Callable[[Json], Any]) -> Any:
    if callable(column):
        return column(row)
    return _local(row[column]) if column.endswith("_at") else row[column]


def _id(row: Json) -> str:
    return short(row["id"])


def _local(moment: str | None, otherwise: str = "") -> datetime | str:
    return datetime.fromisoformat(moment) if moment else otherwise


def _state(item: Json) -> str:
    """Return the state and its reason, or nothing for a ready item."""
    if item["status"] == "ready":
        return ""
    return f"{item['status']}: {item['status_reason']}" if item["status_reason"] else item["status"]


def _conflict(other: Json) -> str:
    kind = other["kind"].replace("_", " ")
    differs = f"; {other['difference']}" if other["difference"] else ""
    about = f"{other['name']} ({short(other['id'])}); {other['reason']}"
    return f"{kind} ({other['score']:.2f}): {about}{differs}"


def _similar(other: Json) -> str:
    about = f"{other['name']} ({short(other['id'])}, {other['date'][:10]})"
    return f"similar ({other['score']:.2f}): {about}: {other['statements'][0]}"


def _hits(found: Answer) -> None:
    items = by_item(found.value.hits, len(found.value.hits))
    for rank, item in enumerate(items, 1):
        best = item.best.passage
        published = f"published {best.published_at:%Y-%m-%d}" if best.published_at else ""
        places = " ".join(f"#{hit.passage.position}" for hit in item.passages)
        facts = [
            f"{best.public_id} {places}",
            best.url,
            f"{best.created_at:%Y-%m-%d}",
            published,
            best.origin,
            standing({"status": best.status, "superseded_by": best.superseded_by}),
        ]
        lines = [f"{rank}. ({item.best.score:.2f}) {plain_text(best.title) or best.title}"]
        for hit in item.passages:
            parts = hit.passage.heading.split(" > ")
            above = [plain_text(part) for part in parts if part not in ("", best.title)]
            words = shortened(hit.passage.text, found.value.query, SHORT)
            lines.append(f"   {' > '.join(above)}: {words}" if above else f"   {words}")
        lines.append(f"   {' · '.join(filter(None, facts))}")
        lines += [f"   also in: {o.passage.title} ({o.passage.public_id})" for o in item.also]
        output.text("\n".join(lines))
    if not items:
        output.text("No results.")


def _results(found: Answer) -> None:
    lines = []
    for rank, result in enumerate(found.json["results"], 1):
        facts = [short(result["id"]), standing(result["metadata"]), dated(result)]
        lines.append(
            f"{rank}. ({result['score']:.2f}) {result['title']} "
            f"({', '.join(filter(None, facts))})\n   {shortened(result['content'], length=SHORT)}"
        )
    output.text("\n".join(lines) or "No results.")


def _folders(found: Answer) -> None:
    rows = [
        {"id": node.id, "items": node.folder.item_count, "name": node.path}
        for node in folder_list(found.value)
    ]
    columns = {"id": "id", "items": "items", "name": "name"}
    _table(columns, rows, found.json, 0, EMPTY["list_folders"])


def _item(found: Answer) -> None:
    item = found.json
    facts = [
        item["public_id"],
        item["url"],
        item["author"],
        f"published {item['published_at'][:10]}" if item["published_at"] else "",
        output.cell(_local(item["created_at"])),
        ", ".join(folder["name"] for folder in item["folders"]),
        " ".join(f"#{tag}" for tag in item["tags"]),
        "" if item["in_kb"] else "not in the KB",
        _state(item),
    ]
    output.text(f"{item['title']}\n{' · '.join(filter(None, facts))}\n\n{item['text']}")


def _entity(found: Answer) -> None:
    entity, item = found.json, found.value.item
    linked = (found.value.project, found.value.epic)
    project, epic = (other.title if other else "" for other in linked)
    facts = {
        "status": entity["status"],
        **{name: entity[field] for name, field in FACTS.items()},
        "project": project,
        "epic": epic,
        "depends on": [other.title for other in found.value.depends_on],
        "blocked": item.metadata.get("blocked_reason"),
        **{name: entity[name] for name in ("category", "assignees", "languages")},
        **{name: entity[name] for name in ("technologies", "tags")},
    }
    lines = [f"{name}: {output.cell(value)}" for name, value in facts.items() if value]
    said = [
        f"\n{note['at'][:16].replace('T', ' ')} {note['author']}: {note['text']}"
        for note in notes(item)
    ]
    title = f"{entity['title']} ({item.public_id})"
    output.text("\n".join([title, *lines, "", entity["content"], *said]))


def _disk(found: Answer) -> None:
    disk = found.json
    facts = [
        disk["public_id"],
        disk["visibility"],
        disk["relationship"],
        found.value.disk.owner_name,
        disk["category"],
        disk["source_url"],
        " ".join(f"#{tag}" for tag in disk["tags"]),
        "redacted" if disk["redacted"] else "",
    ]
    parts = [
        f"{disk['title']}\n{' · '.join(filter(None, facts))}",
        disk["summary"],
        *(f"{part['index']}. {'; '.join(part['key_points'])}" for part in disk["sections"]),
        disk.get("text"),
    ]
    output.text("\n\n".join(filter(None, parts)))


def _difference(found: Answer) -> None:
    lines = found.json["lines"]
    if lines is None:
        output.note("The texts are too long to compare.")
        return
    output.text("\n".join(f"{line['sign']} {line['text']}".rstrip() for line in lines))


def _walk(found: Answer) -> None:
    answer = found.json
    columns: Columns = {
        "steps": "distance",
        "linked": lambda each: f"{ARROWS[each['direction']]} {each['relationship']}",
    }
    if answer["mode"] == "dependencies":  # in the order in which they can be done
        first = answer["offset"] + 1
        columns = {"": lambda each: first + answer["entities"].index(each)}
    columns = {**columns, "id": _id, "status": "status", "title": "title"}
    _table(columns, answer["entities"], answer, answer["offset"], "No links.")
    for cycle in answer.get("cycles", ()):
        output.note(f"Circular dependency: {' -> '.join(cycle)}")
    if answer.get("truncated"):
        output.note("Some items have many links; only their strongest were followed.")


def _reflection(found: Answer) -> None:
    for one in found.json["candidates"]:
        where = short(one["id"]) if one["id"] else one["candidate_id"]
        about = f"{one['kind']} ({one['confidence']:.2f}, {one['state']})"
        output.text(f"{about} {one['title']}{f' [{where}]' if where else ''}")
        for other in (*one["duplicates"], *one["contradictions"]):
            output.text(f"    {_conflict(other)}")
        if one["closest"]:
            output.text(f"    {_similar(one['closest'])}")
    if not found.json["candidates"]:
        output.note("No memories found.")


def _candidate(found: Answer) -> None:
    one = found.json
    about = f"{one['kind']}: {one['title']} ({one['confidence']:.2f}: {one['reason']})"
    output.text(f"{about}\n\n{one['content']}\n")
    for sentence in one["sentences"]:
        output.text(f"> {' '.join(sentence['text'].split())}")
    for other in (*one["duplicates"], *one["contradictions"]):
        output.text(_conflict(other))
    if one["closest"]:
        output.text(_similar(one["closest"]))


def _suggestions(found: Answer) -> None:
    for one in found.json["suggestions"]:
        output.text(f"{short(one['id'])}  {one['title']}\n    {'; '.join(one['reasons'])}")
    output.note(found.json["message"])


def _answer(found: Answer) -> None:
    output.text(answer_text(found.json | {"degraded": None}, found.value))
    output.note(f"--thread {found.json['thread_id']} asks a question that follows.")


FACTS = {label(EntityFields, name).lower(): name for name in WORK_FACTS}  # priority, due ...
WORK: Columns = {"id": _id, "status": "status", **FACTS, "title": "title"}
ADDED = "{message} ({id})"
EMPTY = {
    "list_items": "No items yet. Add one: commonplace add URL",
    "list_entities": "No matches.",
    "list_versions": "No earlier versions.",
    "list_trash": "The trash is empty.",
    "list_disks": "No disks yet. Publish an item: commonplace disk publish ITEM",
    "list_candidates": "Nothing to review.",
    "list_tasks": "No tasks yet. Add one: commonplace task add TITLE --project PROJECT",
    "list_epics": "No epics yet. Add one: commonplace task add TITLE --type epic --project PROJECT",
    "list_folders": "No folders yet. Create one: commonplace folder create NAME",
    "list_feeds": "No feeds yet. Add one: commonplace feed add URL",
    "list_tokens": "No tokens yet. Create one: commonplace token create --name NAME",
}
RENDERERS: dict[str, str | Columns | Callable[[Answer], None]] = {
    "search_knowledge_base": _hits,
    "search": _results,
    "ask": _answer,
    "list_items": {
        "id": "public_id",
        "created": "created_at",
        "title": "title",
        "tags": "tags",
        "status": _state,
    },
    "list_entities": {"id": _id, "status": "status", "title": "title", "tags": "tags"},
    "get_item": _item,
    "get_entity": _entity,
    "delete_item": "Deleted: {value.title}",
    "list_trash": {
        "id": "public_id",
        "deleted": "deleted_at",
        "by": "deleted_by",
        "expires": "expires_at",
        "title": "title",
    },
    "restore_item": "Restored: {title} ({public_id})",
    "empty_trash": "Deleted for good: {deleted} items.",
    "delete_trashed_item": "Deleted for good: {given[item_id]}",
    "refresh_item": "Refreshed: {title} ({public_id})",
    "retry_item": "Done: {title} ({public_id})",
    "list_versions": {
        "revision": "revision",
        "until": "replaced_at",
        "words": "word_count",
        "title": "title",
    },
    "get_version": "{text}",
    "compare_version": _difference,
    "restore_version": "Restored revision {given[revision]}: {title} ({public_id})",
    "get_disk": _disk,
    "preview_disk": _disk,
    "list_disks": {
        "id": "public_id",
        "": lambda disk: disk["visibility"] if disk["relationship"] == "owned" else "saved",
        "category": "category",
        "title": "title",
        "by": "owner_display_name",
    },
    "publish_disk": "Published: {value.view.title} ({path})",
    "unpublish_disk": "Private: {value.title}",
    "save_disk": "Saved: {title}",
    "unsave_disk": "Removed from your saved disks.",
    "add_entity": ADDED,
    "add_task": ADDED,
    "add_epic": ADDED,
    "remember": ADDED,
    "reflect": _reflection,
    "context": "{markdown}",
    "list_candidates": {
        "id": "id",
        "state": "state",
        "kind": "kind",
        "confidence": lambda one: f"{one['confidence']:.2f}",
        "title": "title",
    },
    "get_candidate": _candidate,
    "accept_candidate": "Accepted: {value[1].item.title} ({value[1].item.public_id})",
    "reject_candidate": "Rejected: {title}",
    "explore": _walk,
    "link": "{value[2]}",
    "unlink": "Unlinked.",
    "list_tasks": WORK,
    "list_epics": WORK,
    "suggest": _suggestions,
    "list_folders": _folders,
    "create_folder": "{id}",
    "update_folder": "Updated {name}.",
    "delete_folder": "Deleted folder {given[folder_id]}.",
    "follow_feed": "Following {title} ({id})",
    "list_feeds": {
        "id": "id",
        "checked": "polled_at",
        "title": "title",
        "URL": "url",
        "error": "error",
    },
    "create_crawl": "Crawling {url} ({id})",
    "unfollow_feed": "Unfollowed {given[feed_id]}.",
    "create_token": "{token}",
    "list_tokens": {
        "id": "id",
        "name": "name",
        "kind": lambda token: " ".join(filter(None, [token["kind"], token["redirect_host"]])),
        "access": "capabilities",
        "folders": lambda token: "all" if token["folders"] is None else token["folders"],
        "expires": lambda token: _local(token["expires_at"], "never"),
        "last used": lambda token: _local(token["last_used_at"], "never"),
        "": lambda token: "revoked" if token["revoked_at"] else "",
    },
    "revoke_token": "Revoked {given[token_id]}.",
    "invite_member": "{token}",
    "withdraw_invitation": "Withdrawn.",
    "change_role": "The role of {name} is now {role}.",
    "remove_member": "Removed {given[person_id]}.",
}
