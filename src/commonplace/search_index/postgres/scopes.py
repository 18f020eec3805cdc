"""The size of a scope, how rare terms are in it, and conditions for its items."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from commonplace.database import Tx, scope_sql
from commonplace.model import WRONG, ItemFilter, Scope
from commonplace.search_index.bm25 import rarity
from commonplace.search_index.postgres import statements
from commonplace.search_index.postgres.counts import WHOLE

_WRONG = f"SELECT x.id FROM items AS x WHERE x.library_id = :library_id AND x.status = '{WRONG}'"
_FILED = """SELECT fi.item_id FROM folder_items AS fi
            WHERE fi.library_id = :library_id AND fi.folder_id = ANY(:scope_folders)"""


@dataclass(frozen=True, slots=True)
class Condition:
    """Which items may be found."""

    ids: str | None  # a query of their ids; None: all of the library
    without_wrong: bool = False  # of these, not those marked wrong
    items: str = ""  # of a filter: FROM items AS i WHERE ...
    values: dict[str, Any] = field(default_factory=dict)

    def of(self, item_id: str, cast: str = "") -> str:
        """Return a condition that the primary key's index serves."""
        parts = [] if self.ids is None else [f"{item_id} = ANY(ARRAY({self.ids}){cast})"]
        if self.without_wrong:
            parts.append(f"{item_id} <> ALL(ARRAY({_WRONG}){cast})")
        return " AND ".join(parts) or "TRUE"

    def rows(self) -> statements.Rows:
        """Return the same for both tables of a search; ids are listed once."""
        parts = {"ids": self.ids, "wrong": _WRONG if self.without_wrong else None}
        lists = [
            f"{name} AS MATERIALIZED (SELECT ARRAY({ids}) AS listed),"
            for name, ids in parts.items()
            if ids
        ]
        of = {
            "ids": "{item_id} = ANY((SELECT listed FROM ids){cast})",
            "wrong": "{item_id} <> ALL((SELECT listed FROM wrong){cast})",
        }
        both = " AND ".join(of[name] for name, ids in parts.items() if ids) or "TRUE"
        return statements.Rows(
            " ".join(lists),
            both.format(item_id="w.item_id", cast="::uuid[]"),
            both.format(item_id="v.item_id", cast="::text[]"),
        )

    def flag(self, item_id: str) -> str:
        """Return a condition that is checked row by row, whatever the indexes."""
        parts = [] if self.ids is None else [f"({item_id} IN ({self.ids})) IS TRUE"]
        if self.without_wrong:
            parts.append(f"({item_id} IN ({_WRONG})) IS NOT TRUE")
        return " AND ".join(parts) or "TRUE"


@dataclass(frozen=True, slots=True)
class _Size:
    sections: int = 0
    counted: bool = False
    keyed: int = 0
    nearest: str | None = None


class ScopeSize:
    """What is known of a scope before a search. `library_frequencies`: of the terms asked for."""

    def __init__(self, tx: Tx, scope: Scope) -> None:
        self._scope, self.library_id = scope, scope.library_id
        folders = None if scope.folders is None else sorted(filter(_is_uuid, scope.folders))
        self.values = {
            "library_id": scope.library_id,
            "library": scope.library_id,
            "scope_folders": folders or [],
        }
        found = tx.tuples(
            f"""SELECT folder_id::text, sections, counted, keyed, nearest, EXISTS ({_WRONG})
                FROM scope_sizes
                WHERE library_id = :library AND folder_id = ANY(:scopes::uuid[])""",
            scopes=[WHOLE, *(folders or ())],
            **self.values,
        )
        sizes = {folder_id: _Size(*size) for folder_id, *size, _ in found}
        self._wrong = bool(found and found[0][-1])
        self.library = sizes.pop(WHOLE, _Size())
        self._sizes = {WHOLE: self.library} if folders is None else sizes
        # Of several folders it is more than there are, if an item is in two.
        self.sections = min(
            self.library.sections, sum(size.sections for size in self._sizes.values())
        )
        self._counted = [folder_id for folder_id, size in self._sizes.items() if size.counted]
        self.library_frequencies: dict[int, int] = {}

    @property
    def kept(self) -> bool:
        """Whether the counts of terms are kept, of one folder at least."""
        return bool(self._counted)

    def condition(self, where: ItemFilter) -> Condition:
        """Return the condition for items that the filter lets a search find."""
        but = tuple(status for status in where.not_statuses if status != WRONG)
        if replace(where, not_statuses=but) == ItemFilter():
            return Condition(self._filed, self._wrong and but != where.not_statuses)
        asked, values = scope_sql.matching(where)
        items = f"FROM items AS i WHERE {scope_sql.visible(self._scope)} AND {asked}"
        return Condition(f"SELECT i.id {items}", items=items, values=values)

    def parts(self, where: ItemFilter) -> tuple[Condition, Condition | None, str]:
        """Return the condition for all rows to read, that for those to find if it differs, and SQL
        that tells which are counted."""
        condition = self.condition(where)
        finds_wrong = self._wrong and WRONG not in where.not_statuses
        base = Condition(self._filed, self._wrong and not finds_wrong)
        counted = Condition(None, finds_wrong).flag("w.item_id::text")
        return base, condition if condition.items else None, counted

    @property
    def _filed(self) -> str | None:
        return None if self._scope.folders is None else _FILED

    def rarities(self, tx: Tx, terms: Sequence[int]) -> tuple[dict[int, float], int]:
        """Return the inverse document frequencies of terms, and the number of sections."""
        found, total = self.frequencies(tx, terms)
        return {term: rarity(count, total) for term, count in found.items()}, total

    def frequencies(self, tx: Tx, terms: Sequence[int]) -> tuple[dict[int, int], int]:
        """Return how many sections of the scope have each term, and how many it has."""
        found: Counter[int] = Counter()
        for folder_id, term, sections in tx.tuples(
            """SELECT folder_id::text, term, sections FROM term_counts
               WHERE library_id = :library AND folder_id = ANY(:scopes::uuid[])
               AND term = ANY(:terms::int[])""",
            library=self.library_id,
            scopes=[WHOLE, *(each for each in self._counted if each != WHOLE)],
            terms=list(terms),
        ):
            if folder_id == WHOLE:
                self.library_frequencies[term] = sections
            if folder_id in self._counted:
                found[term] += sections
        total = sum(self._sizes[each].sections for each in self._counted)
        if self._wrong or len(self._sizes) > 1:
            more, *counts = tx.tuples(
                statements.corrections(len(terms), self._multiplicity),
                **self.values,
                **statements.singles(terms),
                counted=self._counted,
            )[0]
            total += more
            found.update(dict(zip(terms, counts, strict=True)))
        return {term: found[term] for term in terms}, total

    @property
    def _multiplicity(self) -> str:
        """Return a query of the items that the sum of all counts has too often or not at all."""
        if len(self._sizes) == 1:
            only = "" if self._scope.folders is None else f" AND x.id IN ({_FILED})"
            return f"SELECT f.id AS item_id, -1 AS times FROM ({_WRONG}{only}) AS f"
        times = f"""(CASE WHEN i.status = '{WRONG}' THEN 0 ELSE 1 END
                     - count(*) FILTER (WHERE fi.folder_id = ANY(:counted)))"""
        return f"""SELECT fi.item_id, {times} AS times FROM folder_items AS fi
                   JOIN items AS i ON i.library_id = fi.library_id AND i.id = fi.item_id
                   WHERE fi.library_id = :library_id AND fi.folder_id = ANY(:scope_folders)
                   GROUP BY fi.item_id, i.status HAVING {times} <> 0"""


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
