import threading
from pathlib import Path

import apsw
import sqlite_vec
from drivers.base import Base, plain
from work import Work


class Driver(Base):
    """sqlite-vec beside FTS5, as its documentation shows. Python's own sqlite3 may lack extensions, so apsw's is used."""

    modes = ("semantic", "keyword")
    scopes = True

    def open(self, folder: Path, work: Work) -> None:
        self.work, self.file, self.local = work, str(folder / "notes.db"), threading.local()
        self._db().execute(f"""
            CREATE VIRTUAL TABLE IF NOT EXISTS vectors USING vec0(
              n INTEGER PRIMARY KEY, part TEXT, v FLOAT[{work.dimensions}] distance_metric=cosine);
            CREATE TABLE IF NOT EXISTS notes (n INTEGER PRIMARY KEY, part TEXT, text TEXT);
            CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(text, content='');""")

    def _db(self):
        if not hasattr(self.local, "db"):
            self.local.db = apsw.Connection(self.file)
            self.local.db.enable_load_extension(True)
            self.local.db.load_extension(sqlite_vec.loadable_path())
            self.local.db.execute("PRAGMA journal_mode=WAL; PRAGMA busy_timeout=30000")
        return self.local.db

    def bulk(self, notes: range) -> None:
        db = self._db()
        with db:
            for n in notes:
                db.execute(
                    "INSERT INTO notes VALUES (?, ?, ?)", (n, Work.group(n), self.work.texts[n])
                )
                db.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (n, self.work.texts[n]))
                db.execute(
                    "INSERT INTO vectors VALUES (?, ?, ?)",
                    (n, Work.group(n), self.work.vectors[n].tobytes()),
                )

    def search_text(self, mode, text, vector, group=None):
        if mode == "semantic":
            part = " AND part = ?" if group else ""
            rows = self._db().execute(
                f"SELECT n, (SELECT text FROM notes WHERE notes.n = vectors.n) FROM vectors WHERE v MATCH ? AND k = 10{part}",
                (vector.tobytes(), *([group] if group else [])),
            )
        else:
            words = " OR ".join(f'"{w}"' for w in plain(text).split())
            part = " AND rowid IN (SELECT n FROM notes WHERE part = ?)" if group else ""
            rows = self._db().execute(
                f"SELECT rowid, (SELECT text FROM notes WHERE n = words.rowid) FROM words WHERE words MATCH ?{part} ORDER BY rank LIMIT 10",
                (words, *([group] if group else [])),
            )
        return [row[0] for row in rows]

    def get(self, n: int) -> None:
        assert self._db().execute("SELECT text FROM notes WHERE n = ?", (n,)).fetchone()

    def delete(self, n: int) -> None:
        db = self._db()
        with db:
            db.execute("DELETE FROM notes WHERE n = ?", (n,))
            db.execute(
                "INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)",
                (n, self.work.texts[n]),
            )
            db.execute("DELETE FROM vectors WHERE n = ?", (n,))

    def close(self) -> None:
        self._db().close()
        self.local = threading.local()
