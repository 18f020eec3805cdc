"""The statements of searches. The same text for the same shape of a question, to be prepared."""

import re
from collections.abc import Sequence

from commonplace.model import WRONG, ItemFilter
from commonplace.search_index.bm25 import FAINT
from commonplace.text.stems import NUMBERS

SEARCHABLE = ItemFilter(not_statuses=(WRONG,))  # what word frequencies are counted in

_SPECIAL = re.compile(r"[^a-zA-Z0-9_./-]")
_OF_SECTION = "v.library_id = :library_id AND v.item_id = w.item_id::text"
_JOIN_VECTORS = f"""LEFT JOIN vectors AS v ON {_OF_SECTION} AND v.section_id = w.section_id
                    AND v.stamp = :stamp"""
_COSINE = "-(v.embedding <#> :vector::halfvec)"

_OF_FOUND = "unnest(:items::text[], :ids::bigint[]) AS f (item_id, section_id)"
_SAME = "x.library_id = :library_id AND x.item_id = f.item_id AND x.section_id = f.section_id"
SEQUENCES = f"SELECT x.section_id, x.sequence FROM {_OF_FOUND} JOIN sequences AS x ON {_SAME}"
VECTORS = f"""SELECT x.section_id, halfvec_send(x.embedding)
              FROM {_OF_FOUND} JOIN vectors AS x ON {_SAME}"""

# The best by words. Two libraries may share a key. The primary key's index does not have this
# collation: the planner would read all of the library's rows there to intersect them.
WORDED = """SELECT w.item_id::text AS item_id, w.section_id,
                   -(w.weights <#> :single::sparsevec) AS words,
                   -(w.weights <#> :faint::sparsevec) AS faint
            FROM section_words AS w
            WHERE w.keys && :keys::int[] AND w.library_id = :library COLLATE "C" AND {condition}
            ORDER BY w.weights <#> :leaning::sparsevec, w.section_id LIMIT :best"""


_LEANING = f"words + {FAINT} * faint"
# The best rows of `b` by words and by cosine, each once.
_BEST_ROWS = f"""
        (SELECT section_id, item_id, words, faint, cosine FROM b WHERE {_LEANING} > 0
         ORDER BY {_LEANING} DESC, section_id LIMIT :best)
        UNION
        (SELECT section_id, item_id, words, faint, cosine FROM b WHERE cosine IS NOT NULL
         ORDER BY cosine DESC, section_id LIMIT :limit)"""
_BEST = "b.section_id, b.item_id::text, b.words, b.faint, b.cosine"


def singles(numbers: Sequence[int]) -> dict[str, str]:
    """Return a vector for each term, whose inner product with weights is the term's own."""
    return {f"e{n}": f"{{{number + 1}:1}}/{NUMBERS}" for n, number in enumerate(numbers)}


def count_terms(terms: int, condition: str) -> str:
    counts = "".join(
        f", count(*) FILTER (WHERE w.weights <#> :e{n}::sparsevec < 0)" for n in range(terms)
    )
    return f"""SELECT count(*){counts} FROM section_words AS w
               WHERE w.library_id = :library AND {condition}"""


def corrections(terms: int, multiplicity: str) -> str:
    """Return what is to be added to the number of sections, and to that of each term."""
    counts = "".join(
        f", coalesce(sum(m.times) FILTER (WHERE w.weights <#> :e{n}::sparsevec < 0), 0)::bigint"
        for n in range(terms)
    )
    return f"""WITH m AS MATERIALIZED ({multiplicity})
               SELECT coalesce(sum(m.times), 0)::bigint{counts} FROM m JOIN section_words AS w
               ON w.library_id = :library AND w.item_id = m.item_id::uuid"""


def counting(
    single: int, faint: int, with_vector: bool, condition: str, asked: str, counted: str
) -> str:
    """Rank all rows of a condition that are `asked`, with frequencies among those `counted`.

    Return the number of rows counted and whether all have vectors, and the best rows.
    """
    terms = range(single + faint)
    weights = "".join(f", w.weights <#> :e{n}::sparsevec AS w{n}" for n in terms)
    having = "".join(f", count(*) FILTER (WHERE w{n} < 0) AS d{n}" for n in terms)
    rarities = "".join(f", ln(1 + (n - d{n} + 0.5::float8) / (d{n} + 0.5)) AS i{n}" for n in terms)
    words, faint_words = (
        " + ".join(f"w{n} * i{n}" for n in part) or "0::float8"
        for part in (range(single), range(single, single + faint))
    )
    return f"""WITH s AS MATERIALIZED (
          SELECT w.item_id, w.section_id, {_COSINE if with_vector else "NULL::float8"} AS cosine,
                 {asked} AS asked, {counted} AS counted{weights}
          FROM section_words AS w {_JOIN_VECTORS if with_vector else ""}
          WHERE w.library_id = :library AND {condition}),
        f AS MATERIALIZED (SELECT count(*) AS n, count(cosine) AS seen{having} FROM s
                           WHERE counted),
        i AS MATERIALIZED (SELECT n, n = seen AS complete{rarities} FROM f),
        b AS MATERIALIZED (
          SELECT item_id, section_id, cosine, -({words}) AS words, -({faint_words}) AS faint
          FROM s CROSS JOIN i WHERE asked)
        SELECT i.n, i.complete, {_BEST} FROM i LEFT JOIN ({_BEST_ROWS}) AS b ON TRUE"""


def exact(with_words: bool, with_vector: bool, condition: str) -> str:
    """Rank all rows of a condition. Return whether all have vectors, and the best rows."""
    words, faint = (
        f"-(w.weights <#> :{name}::sparsevec)" if with_words else "0::float8"
        for name in ("single", "faint")
    )
    return f"""WITH b AS MATERIALIZED (
          SELECT w.item_id, w.section_id, {_COSINE if with_vector else "NULL::float8"} AS cosine,
                 {words} AS words, {faint} AS faint
          FROM section_words AS w {_JOIN_VECTORS if with_vector else ""}
          WHERE w.library_id = :library AND {condition}),
        i AS (SELECT count(*) = count(cosine) AS complete FROM b)
        SELECT i.complete, {_BEST} FROM i LEFT JOIN ({_BEST_ROWS}) AS b ON TRUE"""


def compared(condition: str) -> str:
    """Return the nearest of all rows of a condition."""
    return f"""SELECT v.item_id, v.section_id, {_COSINE} AS cosine FROM vectors AS v
               WHERE v.library_id = :library_id AND v.stamp = :stamp AND {condition}
               ORDER BY (v.embedding <#> :vector::halfvec) + 0, v.section_id LIMIT :limit"""


def nearest(library_id: str, stamp: str, dimensions: int, condition: str) -> str:
    """Return the nearest rows by the HNSW index, which the planner finds by its own condition."""
    return f"""SELECT v.item_id, v.section_id, {_COSINE} AS cosine FROM vectors AS v
               WHERE {hnsw_condition(library_id, stamp)} AND {condition}
               ORDER BY v.embedding::halfvec({dimensions}) <#> :vector::halfvec({dimensions})
               LIMIT :limit"""


def hnsw_condition(library_id: str, stamp: str) -> str:
    return f"library_id = {_literal(library_id)} AND stamp = {_literal(stamp)}"


def by_indexes(worded: str, near: str, condition: str) -> str:
    """Return the best by words and by cosine, and look up the score that one of them lacks."""
    own = "x.library_id = {library} AND x.item_id = u.item_id{cast} AND x.section_id = u.section_id"
    of_words = own.format(library=":library", cast="::uuid")
    words, faint = (
        f"coalesce(u.{name}, (SELECT -(x.weights <#> :{weights}::sparsevec) FROM section_words AS x"
        f" WHERE {of_words}))"
        if worded
        else "0::float8"
        for name, weights in (("words", "single"), ("faint", "faint"))
    )
    cosine = (
        f"""coalesce(u.cosine, (SELECT -(x.embedding <#> :vector::halfvec) FROM vectors AS x
            WHERE {own.format(library=":library_id", cast="")} AND x.stamp = :stamp))"""
        if near
        else "NULL::float8"
    )
    return f"""WITH worded AS MATERIALIZED ({(worded or _NO_WORDS).format(condition=condition)}),
        near AS MATERIALIZED ({near or _NO_VECTORS}),
        u AS (SELECT section_id, coalesce(w.item_id, n.item_id) AS item_id, w.words, w.faint,
                     n.cosine
              FROM worded AS w FULL JOIN near AS n USING (section_id))
        SELECT u.section_id, u.item_id, {words}, {faint}, {cosine} FROM u"""


_NO_ROW = "SELECT ''::text AS item_id, 0::bigint AS section_id"
_NO_WORDS = f"{_NO_ROW}, 0::float8 AS words, 0::float8 AS faint WHERE false"
_NO_VECTORS = f"{_NO_ROW}, 0::float8 AS cosine WHERE false"


def _literal(text: str) -> str:
    """Quote a text. Colons would be names of values, and are escaped as all special characters."""
    return "U&'" + _SPECIAL.sub(lambda found: f"\\+{ord(found[0]):06x}", text) + "'"
