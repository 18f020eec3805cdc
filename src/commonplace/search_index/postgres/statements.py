"""The statements of searches. The same text for the same shape of a question, to be prepared."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from commonplace.model import WRONG, ItemFilter
from commonplace.search_index.bm25 import FAINT
from commonplace.text.stems import NUMBERS

SEARCHABLE = ItemFilter(not_statuses=(WRONG,))  # what word frequencies are counted in

_SPECIAL = re.compile(r"[^a-zA-Z0-9_./-]")
_COSINE = "-(v.embedding <#> :vector::halfvec)"

_OF_FOUND = "unnest(:items::text[], :ids::bigint[]) AS f (item_id, section_id)"
_SAME = "x.library_id = :library_id AND x.item_id = f.item_id AND x.section_id = f.section_id"
SEQUENCES = f"SELECT x.section_id, x.sequence FROM {_OF_FOUND} JOIN sequences AS x ON {_SAME}"
VECTORS = f"""SELECT x.section_id, halfvec_send(x.embedding)
              FROM {_OF_FOUND} JOIN vectors AS x ON {_SAME}"""

# The best by words. Two libraries may share a key. The primary key's index does not have this
# collation: the planner would read all of the library's rows there to intersect them. The rows that
# are chosen from are many, so that each is compared with one vector only.
_WORDED = """SELECT w.item_id::text AS item_id, w.section_id, {words} AS words, {faint} AS faint
            FROM (SELECT w.item_id, w.section_id, w.weights FROM section_words AS w
                  WHERE w.keys && :keys::int[] AND w.library_id = :library COLLATE "C"
                  AND {condition}
                  ORDER BY w.weights <#> :leaning::sparsevec, w.section_id LIMIT :best) AS w"""


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


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a condition, in both tables."""

    lists: str  # parts of WITH, each ending with a comma
    words: str  # condition for `w`, of section_words
    vectors: str  # condition for `v`, of vectors

    def read(self, columns: str, with_vector: bool) -> str:
        """Select these columns of `w`, and the cosine."""
        words = f"""SELECT w.item_id, w.section_id{columns} FROM section_words AS w
                    WHERE w.library_id = :library AND {self.words}"""
        if not with_vector:
            return f"SELECT w.*, NULL::float8 AS cosine FROM ({words}) AS w"
        # A full join reads each table once: for a left one, the planner would look up each vector.
        # OFFSET keeps it from carrying vectors to where they are joined.
        return f"""SELECT w.*, v.cosine FROM ({words}) AS w
            FULL JOIN (SELECT v.section_id, {_COSINE} AS cosine FROM vectors AS v
                       WHERE v.library_id = :library_id AND v.stamp = :stamp AND {self.vectors}
                       OFFSET 0) AS v ON v.section_id = w.section_id"""


def counting(
    single: int, faint: int, with_vector: bool, rows: Rows, asked: str, counted: str
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
    columns = f", {asked} AS asked, {counted} AS counted{weights}"
    return f"""WITH {rows.lists} s AS MATERIALIZED ({rows.read(columns, with_vector)}),
        f AS MATERIALIZED (SELECT count(*) AS n, count(cosine) AS seen{having} FROM s
                           WHERE counted),
        i AS MATERIALIZED (SELECT n, n = seen AS complete{rarities} FROM f),
        b AS MATERIALIZED (
          SELECT item_id, section_id, cosine, -({words}) AS words, -({faint_words}) AS faint
          FROM s CROSS JOIN i WHERE asked)
        SELECT i.n, i.complete, {_BEST} FROM i LEFT JOIN ({_BEST_ROWS}) AS b ON TRUE"""


def exact(single: bool, faint: bool, with_vector: bool, rows: Rows) -> str:
    """Rank all rows of a condition. Return whether all have vectors, and the best rows."""
    words, faint_words = _products({"single": single, "faint": faint})
    columns = f", {words} AS words, {faint_words} AS faint"
    return f"""WITH {rows.lists} b AS MATERIALIZED ({rows.read(columns, with_vector)}),
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


def worded(single: bool, faint: bool, condition: str) -> str:
    """Return the best rows by words."""
    words, faint_words = _products({"single": single, "faint": faint})
    return _WORDED.format(words=words, faint=faint_words, condition=condition)


def by_indexes(single: bool, faint: bool, words: str, near: str) -> str:
    """Return the best by words and by cosine, and look up the scores that one of them lacks."""
    own = "{row}.library_id = {library} AND {row}.item_id = {item} AND {row}.section_id = {section}"
    of_words = own.format(
        row="w", library=":library", item="n.item_id::uuid", section="n.section_id"
    )
    asked = {"single": single and bool(words), "faint": faint and bool(words)}
    product, faint_product = _products(asked)
    looked_up = f"FROM section_words AS w WHERE {of_words}" if words else ""
    cosine = (
        f"""coalesce(u.cosine, (SELECT {_COSINE} FROM vectors AS v WHERE
            {own.format(row="v", library=":library_id", item="u.item_id", section="u.section_id")}
            AND v.stamp = :stamp))"""
        if near
        else "NULL::float8"
    )
    return f"""WITH worded AS MATERIALIZED ({words or _NO_WORDS}),
        near AS MATERIALIZED ({near or _NO_VECTORS}),
        u AS (SELECT w.*, n.cosine FROM worded AS w LEFT JOIN near AS n USING (section_id)
              UNION ALL
              SELECT n.item_id, n.section_id, x.words, x.faint, n.cosine
              FROM near AS n LEFT JOIN LATERAL (
                  SELECT {product} AS words, {faint_product} AS faint {looked_up}) AS x ON TRUE
              WHERE n.section_id NOT IN (SELECT section_id FROM worded))
        SELECT u.section_id, u.item_id, u.words, u.faint, {cosine} FROM u"""


def _products(asked: dict[str, bool]) -> list[str]:
    """Return the scores of a section of `w`, by names of question vectors that have terms."""
    return [
        f"-(w.weights <#> :{name}::sparsevec)" if terms else "0::float8"
        for name, terms in asked.items()
    ]


_NO_ROW = "SELECT ''::text AS item_id, 0::bigint AS section_id"
_NO_WORDS = f"{_NO_ROW}, 0::float8 AS words, 0::float8 AS faint WHERE false"
_NO_VECTORS = f"{_NO_ROW}, 0::float8 AS cosine WHERE false"


def _literal(text: str) -> str:
    """Quote a text. Colons would be names of values, and are escaped as all special characters."""
    return "U&'" + _SPECIAL.sub(lambda found: f"\\+{ord(found[0]):06x}", text) + "'"
