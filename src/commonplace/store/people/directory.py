"""The directory: which library a digest or the id of a published disk leads to.

A library's rows can be on another server than those of others. Whoever knows only a name looks it
up here, and reads the rest by the library's id.
"""

from collections.abc import Sequence

from commonplace.database import Tx


def put_names(tx: Tx, library_id: str, names: Sequence[str]) -> None:
    """Make names lead to a library. One that leads elsewhere stays as it is."""
    for name in names:
        tx.run(
            """INSERT INTO directory (key, library_id) VALUES (:key, :library_id)
               ON CONFLICT (key) DO NOTHING""",
            key=name,
            library_id=library_id,
        )


def find_library(tx: Tx, name: str | None) -> str | None:
    found = tx.scalar("SELECT library_id FROM directory WHERE key = :key", key=name)
    return None if found is None else str(found)


def taken_names(tx: Tx, names: Sequence[str]) -> set[str]:
    """Return those of the names that lead somewhere."""
    return set(tx.column("SELECT key FROM directory WHERE key IN :keys", keys=list(names)))


def drop_names(tx: Tx, library_id: str, names: Sequence[str]) -> int:
    """Delete those of the names that lead to the library; return how many."""
    return tx.run(
        "DELETE FROM directory WHERE key IN :keys AND library_id = :library_id",
        keys=list(names),
        library_id=library_id,
    )


def drop_library(tx: Tx, library_id: str) -> None:
    tx.run("DELETE FROM directory WHERE library_id = :id", id=library_id)
