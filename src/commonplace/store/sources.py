"""Public sources, by canonical URL: which libraries have each, and under which id.

The texts are in the libraries. Whoever adds a source that some library has copies it from there:
it is fetched, transcribed and embedded once, and `content_id` is the same everywhere. A source is
deleted with the last library's copy.
"""

from collections.abc import Sequence
from typing import NamedTuple

from commonplace.database import Tx
from commonplace.model import Content

_COPIES = 8  # libraries that are looked at for vectors of a source

_HELD = "SELECT library_id FROM source_libraries WHERE key = :key AND content_id = :content_id"


class Source(NamedTuple):
    key: str
    content_id: str
    library_id: str  # one that has it


def find(tx: Tx, key: str) -> Source | None:
    """Return the source of an address, or of one that the address leads to."""
    row = tx.one("SELECT * FROM sources WHERE key = :key", key=key)
    if row and row["content_id"] is None:
        row = tx.one("SELECT * FROM sources WHERE key = :key", key=row["leads_to"])
    if row is None or row["content_id"] is None:
        return None
    library_id = tx.scalar(f"{_HELD} LIMIT 1", key=row["key"], content_id=row["content_id"])
    return Source(row["key"], row["content_id"], library_id) if library_id else None


def known(tx: Tx, keys: Sequence[str]) -> set[str]:
    """Return those of the keys that a library has."""
    if not keys:
        return set()
    return set(
        tx.column(
            "SELECT key FROM sources WHERE key IN :keys AND content_id IS NOT NULL", keys=list(keys)
        )
    )


def take(tx: Tx, library_id: str, new: Content, *, newest: bool = False) -> tuple[str, bool]:
    """Record that a library has a source; return its content id, and whether it has this text.

    The first library's text is the source's, until one that reads it again (`newest`) has another.
    """
    # The row stays locked, so that of two libraries that add a source the second gets the id of
    # the first.
    same = "sources.hash = excluded.hash"
    replaced = f"sources.content_id IS NULL OR ({int(newest)} = 1 AND NOT {same})"
    row = tx.all(
        f"""INSERT INTO sources (key, content_id, hash) VALUES (:key, :id, :hash)
            ON CONFLICT (key) DO UPDATE SET
              content_id = CASE WHEN {replaced} THEN excluded.content_id
                           ELSE sources.content_id END,
              hash = CASE WHEN {replaced} THEN excluded.hash ELSE sources.hash END
            RETURNING content_id, hash""",
        key=new.key,
        id=new.id,
        hash=new.hash,
    )[0]
    note_holder(tx, library_id, new.key, row["content_id"])
    return row["content_id"], row["hash"] == new.hash


def note_holder(tx: Tx, library_id: str, key: str, content_id: str) -> None:
    """Record which text of a source a library has."""
    tx.run(
        """INSERT INTO source_libraries (key, library_id, content_id)
           VALUES (:key, :library_id, :content_id)
           ON CONFLICT (key, library_id) DO UPDATE SET content_id = excluded.content_id""",
        key=key,
        library_id=library_id,
        content_id=content_id,
    )


def put_aliases(tx: Tx, key: str, addresses: Sequence[str]) -> None:
    """Make other addresses lead to a source: those that redirect to it, or name it as canonical."""
    tx.many(
        """INSERT INTO sources (key, leads_to) VALUES (:address, :key)
           ON CONFLICT (key) DO UPDATE SET leads_to = excluded.leads_to""",
        [{"address": address, "key": key} for address in addresses if address != key],
    )


def set_hash(tx: Tx, key: str, content_id: str, hash: str) -> None:
    """Record that a recording has its text now."""
    tx.run(
        "UPDATE sources SET hash = :hash WHERE key = :key AND content_id = :content_id",
        key=key,
        content_id=content_id,
        hash=hash,
    )


def holders(tx: Tx, key: str, content_id: str) -> list[str]:
    """Return the libraries that have this text of a source."""
    return tx.column(_HELD, key=key, content_id=content_id)


def copies(tx: Tx, key: str, content_id: str) -> list[str]:
    """Return some of the libraries that have this text of a source."""
    return tx.column(f"{_HELD} LIMIT {_COPIES}", key=key, content_id=content_id)


def leave(tx: Tx, library_id: str, key: str) -> None:
    """Record that a library has a source no longer. The last one's goes, with its other addresses;
    else it is the text that the others have."""
    # Locked first, as by those who take it.
    row = tx.all(
        "UPDATE sources SET hash = hash WHERE key = :key RETURNING content_id, hash", key=key
    )
    tx.run(
        "DELETE FROM source_libraries WHERE key = :key AND library_id = :library_id",
        key=key,
        library_id=library_id,
    )
    if not row or row[0]["content_id"] is None:
        return
    if tx.one(f"{_HELD} LIMIT 1", key=key, content_id=row[0]["content_id"]):
        return
    other = tx.one(
        "SELECT library_id, content_id FROM source_libraries WHERE key = :key LIMIT 1", key=key
    )
    if other:
        tx.run(
            "UPDATE sources SET content_id = :content_id, hash = :hash WHERE key = :key",
            key=key,
            content_id=other["content_id"],
            hash=tx.scalar(
                "SELECT hash FROM contents WHERE library_id = :library_id AND id = :content_id",
                **other,
            ),
        )
        return
    tx.run("DELETE FROM sources WHERE key = :key OR leads_to = :key", key=key)
