"""SQL conditions for items: the scope that limits every read, and the filters of callers."""

import re
from typing import Any

from commonplace.database.columns import as_json
from commonplace.model import ItemFilter, Scope, utc_text


def visible(scope: Scope, items: str = "i") -> str:
    """Return the condition on `items AS i` (or another alias) for a scope, to use with `within`."""
    sql = f"{items}.library_id = :library_id"
    if scope.kb_only:
        sql += f" AND {items}.in_kb = 1"
    if scope.folders is not None:
        sql += f" AND {in_scope_folders(f'{items}.library_id', f'{items}.id')}"
    return sql


def within(scope: Scope) -> dict[str, Any]:
    """Return the values of the condition `visible`."""
    values: dict[str, Any] = {"library_id": scope.library_id}
    return values if scope.folders is None else values | {"scope_folders": sorted(scope.folders)}


def in_scope_folders(library_id: str, item_id: str) -> str:
    """Return the condition for an item in one of the scope's folders."""
    return (
        f"EXISTS (SELECT 1 FROM folder_items AS fi WHERE fi.library_id = {library_id}"
        f" AND fi.item_id = {item_id} AND fi.folder_id IN :scope_folders)"
    )


def was_visible(engine: str, scope: Scope, gone: str) -> str:
    """Return the condition on rows that keep the `folders` and `in_kb` of an item that is gone."""
    conditions = [f"{gone}.in_kb = 1"] if scope.kb_only else []
    if scope.folders is not None:
        values = _VALUES[engine].format(f"{gone}.folders")
        conditions.append(f"EXISTS (SELECT 1 FROM {values} WHERE value IN :scope_folders)")
    return f"({' AND '.join(conditions) or 'TRUE'})"


def matching(where: ItemFilter, *, probed: bool = False) -> tuple[str, dict[str, Any]]:
    """Return the condition on `items AS i` for a filter, and its values; TRUE for an empty one.

    It is used with that of `visible`, which names the library. `probed` asks each item for its
    project or epic, which is faster if so many belong to it that a page fills soon.
    """
    joined = _PROBED if probed else _JOINED
    return join_asked(
        {
            # A subquery that runs once: correlated, it took forty times as long on SQLite.
            """i.id IN (SELECT w.item_id FROM folder_items AS w WHERE w.library_id = :library_id
           AND w.folder_id = :w_folder)""": (where.folder_id is not None, where.folder_id),
            "i.in_kb = :w_in_kb": (where.in_kb is not None, int(where.in_kb or 0)),
            "i.archived = :w_archived": (where.archived is not None, int(where.archived or 0)),
            "i.entity_type IN :w_types": (bool(where.entity_types), list(where.entity_types)),
            "NOT i.entity_type IN :w_not_types": (
                bool(where.not_entity_types),
                list(where.not_entity_types),
            ),
            "i.status IN :w_statuses": (bool(where.statuses), list(where.statuses)),
            "NOT i.status IN :w_not_statuses": (bool(where.not_statuses), list(where.not_statuses)),
            "i.priority = :w_priority": (where.priority is not None, where.priority),
            "i.category = :w_category": (where.category is not None, where.category),
            "CASE WHEN i.annotates IS NULL THEN 0 ELSE 1 END = :w_notes": (
                where.notes is not None,
                int(where.notes or 0),
            ),
            "i.visibility = :w_visibility": (where.visibility is not None, where.visibility),
            "i.created_at >= :w_since": (where.since is not None, where.since),
            "i.created_at <= :w_until": (where.until is not None, where.until),
            "i.text_language = :w_text_language": (
                where.text_language is not None,
                where.text_language,
            ),
            "i.published_at >= :w_published_after": (
                where.published_after is not None,
                where.published_after,
            ),
            "i.published_at < :w_published_before": (
                where.published_before is not None,
                where.published_before,
            ),
            "(i.created_at >= :w_dated_from OR i.published_at >= :w_dated_from)": (
                where.dated_from is not None,
                where.dated_from,
            ),
            "(i.created_at < :w_dated_to OR i.published_at < :w_dated_to)": (
                where.dated_to is not None,
                where.dated_to,
            ),
            "i.created_at <= :w_as_of": (where.as_of is not None, where.as_of),
            """(i.valid_until IS NULL OR i.valid_until
                >= substr(CAST(:w_valid_at AS TEXT), 1, length(i.valid_until)))""": (
                where.as_of is not None,
                where.as_of and utc_text(where.as_of),
            ),
            text_contains("w_author", where.author, "i.author"): (
                bool(where.author),
                like_pattern(where.author),
            ),
            list_contains("i.tags", "w_tag"): (where.tag is not None, list_element(where.tag)),
            list_contains("i.languages", "w_language"): (
                where.language is not None,
                list_element(where.language),
            ),
            list_contains("i.assignees", "w_assignee"): (
                where.assignee is not None,
                list_element(where.assignee),
            ),
            joined.format(kind="BELONGS_TO", name="w_project"): (
                where.project_id is not None,
                where.project_id,
            ),
            joined.format(kind="PART_OF", name="w_epic"): (
                where.epic_id is not None,
                where.epic_id,
            ),
            text_contains("w_text", where.text, "i.title", "i.url", "i.tags"): (
                bool(where.text),
                like_pattern(where.text),
            ),
        }
    )


def join_asked(conditions: dict[str, tuple[bool, Any]]) -> tuple[str, dict[str, Any]]:
    """Join the conditions that are True, and return the value of each one's `:w_...`."""
    asked = {sql: value for sql, (is_asked, value) in conditions.items() if is_asked}
    return " AND ".join(asked) or "TRUE", {
        _PARAMETER.findall(sql)[0]: value for sql, value in asked.items()
    }


_VALUES = {
    "sqlite": "json_each({})",
    "postgres": "jsonb_array_elements_text({}::jsonb) AS f(value)",
}
_PARAMETER = re.compile(r":(w_[a-z_]+)")
# Starts from the few items that belong to it, not from all.
_JOINED = """i.id IN (SELECT r.from_id FROM relations AS r WHERE r.library_id = :library_id
             AND r.to_id = :{name} AND r.kind = '{kind}')"""
_PROBED = """EXISTS (SELECT 1 FROM relations AS r WHERE r.library_id = :library_id
             AND r.from_id = i.id AND r.kind = '{kind}' AND r.to_id = :{name})"""


def list_contains(column: str, name: str) -> str:
    """Return the condition for a JSON list of texts that has the `list_element` named `name`.

    Elements are matched from the comma before them: no text has an unescaped quote after one.
    """
    return f"""instr(replace({column}, '["', ', "'), :{name}) > 0"""


def list_element(value: str | None) -> str:
    """Encode a text as an element of a JSON list."""
    return ", " + as_json(value)


def text_contains(name: str, text: str | None, *columns: str) -> str:
    """Return the condition for a column that contains the `like_pattern` named `name`.

    SQLite's `lower` knows only English letters; our `lowered` knows all, and is slower.
    """
    lower = "lowered" if text and not text.isascii() else "lower"
    return (
        "(" + " OR ".join(f"{lower}({column}) LIKE :{name} ESCAPE '!'" for column in columns) + ")"
    )


def like_pattern(text: str | None) -> str:
    escaped = (text or "").lower().replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return f"%{escaped}%"
