"""Captures: written once with the item that points to them, and read as they were."""

import json
from dataclasses import replace
from typing import Any

from commonplace.database import scope_sql
from commonplace.database.columns import from_micros, micros
from commonplace.database.transaction import Tx
from commonplace.database.unit_of_work import Table, reads
from commonplace.errors import Conflict, NotFound
from commonplace.model import Capture, Scope

# Whose owner is a token with none of the item's folders.
_BLIND = """owner IN (SELECT t.id FROM tokens AS t WHERE t.library_id = :library_id
            AND t.whole_library = 0 AND NOT EXISTS ( SELECT 1
            FROM token_folders AS s JOIN folder_items AS f ON f.library_id = s.library_id
            AND f.folder_id = s.folder_id WHERE s.library_id = t.library_id
            AND s.token_id = t.id AND f.item_id = :item_id))"""


class Captures(Table):
    """Written by `Items.add` with the item that points to them; there is no way to change one."""

    @reads
    def by_key(self, tx: Tx, library_id: str, owner: str, idempotency_key: str) -> Capture | None:
        row = tx.one(
            """SELECT * FROM captures
               WHERE library_id = :library_id AND owner = :owner
               AND idempotency_key = :idempotency_key""",
            library_id=library_id,
            owner=owner,
            idempotency_key=idempotency_key,
        )
        return capture(row) if row else None

    @reads
    def by_prefix(self, tx: Tx, library_id: str, owner: str, prefix: str) -> list[Capture]:
        """Those whose key begins so, oldest first."""
        found = tx.all(
            """SELECT * FROM captures
               WHERE library_id = :library_id AND owner = :owner AND substr(idempotency_key, 1,
               :length) = :prefix
               ORDER BY created_at, id""",
            library_id=library_id,
            owner=owner,
            prefix=prefix,
            length=len(prefix),
        )
        return [capture(row) for row in found]

    @reads
    def of_item(self, tx: Tx, scope: Scope, item_id: str) -> Capture:
        condition, values = scope_sql.visible(scope)
        row = tx.one(
            f"""SELECT c.* FROM captures AS c
                JOIN items AS i ON i.library_id = c.library_id AND i.id = c.item_id
                WHERE c.item_id = :item_id AND {condition}
                ORDER BY c.created_at LIMIT 1""",
            item_id=item_id,
            **values,
        )
        if row is None:
            raise NotFound("Capture not found")
        return capture(row)

    @reads
    def list_page(
        self, tx: Tx, scope: Scope, *, limit: int, offset: int
    ) -> tuple[list[Capture], int]:
        """Of items in scope, newest first, and how many there are in all."""
        condition, values = scope_sql.visible(scope)
        joined = f"""captures AS c
                     JOIN items AS i ON i.library_id = c.library_id AND i.id = c.item_id
                     WHERE {condition}"""

        found = tx.all(
            f"""SELECT c.* FROM {joined}
                ORDER BY c.created_at DESC, c.id DESC LIMIT :limit OFFSET :offset""",
            limit=limit,
            offset=offset,
            **values,
        )
        total = tx.one(f"SELECT count(*) AS n FROM {joined}", **values)
        return [capture(row) for row in found], total["n"] if total else 0


def insert_capture(tx: Tx, new: Capture) -> None:
    """Conflict: the key stands for another capture, which was perhaps written at the same moment."""
    done = tx.run(
        """INSERT INTO captures (library_id, id, item_id, title, text, hash, source,
           idempotency_key, owner, created_at)
           VALUES (:library_id, :id, :item_id, :title, :text, :hash, :source, :idempotency_key,
           :owner, :created_at)
           ON CONFLICT (library_id, owner, idempotency_key) DO NOTHING""",
        library_id=new.library_id,
        id=new.id,
        item_id=new.item_id,
        title=new.title,
        text=new.text,
        hash=new.hash,
        source=json.dumps(new.source, ensure_ascii=False),
        idempotency_key=new.idempotency_key,
        owner=new.owner,
        created_at=micros(new.created_at),
    )
    if not done:
        raise Conflict("The idempotency key was used already.")


def forget_for_tokens_without_access(tx: Tx, library_id: str, item_id: str) -> None:
    """An item was deleted where some look and stays where they do not: their keys stand for nothing, and nothing that they have
    queued quotes it, as if it were gone."""
    of_item = {"library_id": library_id, "item_id": item_id}
    for kept in map(
        capture,
        tx.all(
            f"""SELECT * FROM captures
                WHERE library_id = :library_id AND item_id = :item_id AND {_BLIND}""",
            **of_item,
        ),
    ):
        # Nobody changes a capture; one without a key says the same.
        tx.run(
            "DELETE FROM captures WHERE library_id = :library_id AND id = :id",
            library_id=library_id,
            id=kept.id,
        )
        insert_capture(tx, replace(kept, idempotency_key=None))
    tx.run(
        f"""DELETE FROM candidates
            WHERE library_id = :library_id AND (source_id = :item_id OR item_id = :item_id)
            AND {_BLIND}""",
        **of_item,
    )


def capture(row: Any) -> Capture:
    return Capture(
        row["id"],
        row["library_id"],
        row["item_id"],
        row["title"],
        row["text"],
        row["owner"],
        row["idempotency_key"],
        json.loads(row["source"]),
        from_micros(row["created_at"]),
    )
