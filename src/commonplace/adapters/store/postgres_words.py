"""Keyword ranking on Postgres: BM25 over tsvectors, asked of the rarest words first."""

import math
import time
from collections.abc import Iterable, Sequence

from commonplace.adapters.store import planning
from commonplace.adapters.store.planning import Term, neighbours_found, plan
from commonplace.adapters.store.postgres import PostgresTx
from commonplace.model import Scope, Scored

STATISTICS_SECONDS = 300
SCOPE_COUNTED_UP_TO = 60_000
SAMPLED = 10_000



def scope_lexemes(scope: Scope) -> list[str]:
    if scope.folders is None:
        return [library_lexeme(scope.library_id)]
    return [folder_lexeme(scope.library_id, folder_id) for folder_id in sorted(scope.folders)]


def library_lexeme(library_id: str) -> str:
    return f"l:{library_id}"  # the colon: no word of a text can be this


def folder_lexeme(library_id: str, folder_id: str) -> str:
    return f"f:{library_id}:{folder_id}"


class Statistics:
    """How many sections there are, how long, and how common each word is. In large tables it is remembered for some
    minutes, for weights and plans only: what is found never depends on it."""

    def __init__(self, tx: PostgresTx) -> None:
        row = tx.one("SELECT reltuples::bigint AS n FROM pg_class WHERE oid = 'section_words'::regclass")
        sample = "TABLESAMPLE SYSTEM (1)" if row and row["n"] > SAMPLED else f"LIMIT {SAMPLED}"
        counted = tx.one(f"SELECT count(*) AS n, avg(length)::float8 AS length"
                         f" FROM (SELECT length FROM section_words {sample}) AS counted")
        assert row is not None and counted is not None
        self.total: int = max(row["n"], counted["n"])
        self.length: float = counted["length"] or 1.0
        self._common = _common_lexemes(tx) if self.total > planning.SMALL else {}
        self._until = time.monotonic() + STATISTICS_SECONDS if self.total > planning.SMALL else 0
        self._terms: dict[str, Term] = {}
        self._sizes: dict[tuple[str, ...], int] = {}

    @property
    def stale(self) -> bool:
        return time.monotonic() > self._until

    def terms(self, tx: PostgresTx, phrases: Sequence[str]) -> list[Term]:
        """Each phrase as a query, with how often it is found."""
        new = [p for p in phrases if p not in self._terms]
        if new:
            parsed = {row["phrase"]: row["query"] for row in tx.all(
                "SELECT p AS phrase, phraseto_tsquery('words', p)::text AS query FROM unnest(:new::text[]) AS p", new=new)}
            counts = self._counts(tx, sorted({q for q in parsed.values() if q}))
            self._terms |= {phrase: Term(query, counts.get(query, 0), "<->" not in query) for phrase, query in parsed.items()}
        return [term for term in dict.fromkeys(self._terms[p] for p in phrases) if term.query]

    def size(self, tx: PostgresTx, scope: Scope) -> int:
        """Sections in scope; past a bound that all plans lie below, those of all."""
        key = tuple(scope_lexemes(scope))
        if key and key not in self._sizes:
            counted = _count(tx, [any_of(lexeme_query(word) for word in key)], SCOPE_COUNTED_UP_TO)[0]
            self._sizes[key] = counted if counted < SCOPE_COUNTED_UP_TO else self.total
        return self._sizes[key] if key else 0

    def _counts(self, tx: PostgresTx, queries: list[str]) -> dict[str, int]:
        """In large tables those of single words; phrases are estimated from them."""
        asked = queries if self.total <= planning.SMALL else sorted({word for query in queries for word in query.split(" <-> ")})
        counts = {q: int(self._common[q] * self.total) for q in asked if q in self._common}
        unknown = [q for q in asked if q not in counts]
        bound = planning.COUNTED_UP_TO if self._common else max(planning.COUNTED_UP_TO, int(self.total * planning.COMMON_SHARE))
        counts |= zip(unknown, _count(tx, unknown, bound), strict=True)
        return {q: counts[q] if q in counts else neighbours_found([counts[word] for word in q.split(" <-> ")])
                for q in queries}


def _count(tx: PostgresTx, queries: list[str], bound: int) -> list[int]:
    return [row["n"] for row in tx.all(
        """SELECT (SELECT count(*) FROM (SELECT 1 FROM section_words WHERE words @@ q.query LIMIT :bound) AS hit) AS n
           FROM unnest(:queries::text[]::tsquery[]) WITH ORDINALITY AS q (query, place) ORDER BY q.place""",
        queries=queries, bound=bound)] if queries else []


def _common_lexemes(tx: PostgresTx) -> dict[str, float]:
    """What ANALYZE saw most often, as queries with their share of the sections."""
    row = tx.one("""SELECT most_common_elems::text::text[] AS words, most_common_elem_freqs AS shares FROM pg_stats
                    WHERE schemaname = current_schema() AND tablename = 'section_words' AND attname = 'words'""")
    return {lexeme_query(word): share for word, share in zip(row["words"], row["shares"], strict=False)} if row else {}


def rank(tx: PostgresTx, statistics: Statistics, scope: Scope, phrases: Sequence[str], limit: int,
         kept: str, items: dict[str, list[str]]) -> list[Scored]:
    terms = statistics.terms(tx, phrases)
    if not terms or not scope_lexemes(scope):
        return []
    size = statistics.size(tx, scope)
    if size > planning.SMALL and not kept:
        chosen, pairs = plan(terms, statistics.total, size)
        wanted = any_of([*(term.query for term in chosen), *(f"{one.query} & {other.query}" for one, other in pairs)])
        asked = list(dict.fromkeys([*chosen, *(term for pair in pairs for term in pair)]))
        if found := _ask(tx, statistics, scope, asked, wanted, limit, "", {}):
            return found
    return _ask(tx, statistics, scope, terms, any_of(term.query for term in terms), limit, kept, items)


def _ask(tx: PostgresTx, statistics: Statistics, scope: Scope, terms: Sequence[Term], wanted: str,
         limit: int, kept: str, items: dict[str, list[str]]) -> list[Scored]:
    total = max(statistics.total, *(term.found for term in terms))
    values: dict[str, object] = {}
    for n, term in enumerate(terms):
        values |= {f"q{n}": term.query, f"idf{n}": math.log(1 + (total - term.found + 0.5) / (term.found + 0.5))}
    only = f"AND section_id IN (SELECT id FROM sections WHERE {kept})".format("item_id") if kept else ""
    found = tx.all(
        f"""SELECT section_id AS id, {" + ".join(_score(n, term) for n, term in enumerate(terms))} AS score
            FROM (SELECT section_id, words, 0.3 + 0.9 * length / :average AS k FROM section_words
                  WHERE words @@ :wanted::tsquery {only} OFFSET 0) AS w
            ORDER BY score DESC, section_id LIMIT :limit""",
        wanted=f"({any_of(lexeme_query(word) for word in scope_lexemes(scope))}) & ({wanted})",
        average=statistics.length, limit=limit, **values, **items)
    return [Scored(row["id"], row["score"]) for row in found]


def _score(n: int, term: Term) -> str:
    """idf * tf / (tf + k). ts_rank of one word is (1 + 1/4 + 1/9 + ... tf times) * 6 / pi^2, from which tf follows."""
    if term.single:
        rank = f"ts_rank('{{1,1,1,1}}', words, :q{n}::tsquery)"
        return f":idf{n}::float8 * (1 - k / (k - 0.6079271 + 0.6079271 / (1.000001 - {rank})))"
    return f"CASE WHEN words @@ :q{n}::tsquery THEN :idf{n}::float8 / (1 + k) ELSE 0 END"


def lexeme_query(word: str) -> str:
    return "'" + word.replace("\\", "\\\\").replace("'", "''") + "'"


def any_of(queries: Iterable[str]) -> str:
    return " | ".join(f"({query})" for query in queries)
