"""Captures: written once with the item that points to them, and never changed."""

from collections.abc import Collection

from commonplace.database import Table, Tx, reads, scope_sql
from commonplace.errors import Conflict
from commonplace.model import Capture, Json, Scope
from commonplace.store import rows

# Those whose owner is a token with none of the item's folders.
_OF_TOKENS_WITHOUT_ACCESS = """owner IN (
    SELECT t.id FROM tokens AS t WHERE t.library_id = :library_id AND t.whole_library = 0
    AND NOT EXISTS (
        SELECT 1 FROM token_folders AS s
        JOIN folder_items AS f ON f.library_id = s.library_id AND f.folder_id = s.folder_id
        WHERE s.library_id = t.library_id AND s.token_id = t.id AND f.item_id = :item_id))"""
_VISIBLE = """captures AS c JOIN items AS i ON i.library_id = c.library_id AND i.id = c.item_id
              WHERE {condition}"""


class Captures(Table):
    """`Items.add` writes a capture with the item that points to it; none can be changed."""

    @reads
    def by_key(self, tx: Tx, library_id: str, owner: str, idempotency_key: str) -> Capture | None:
        return rows.first(
            tx,
            Capture,
            """SELECT * FROM captures WHERE library_id = :library_id AND owner = :owner
               AND idempotency_key = :idempotency_key""",
            library_id=library_id,
            owner=owner,
            idempotency_key=idempotency_key,
        )

    @reads
    def by_prefix(self, tx: Tx, library_id: str, owner: str, prefix: str) -> list[Capture]:
        """Return captures whose idempotency key starts with `prefix`, oldest first."""
        return rows.every(
            tx,
            Capture,
            """SELECT * FROM captures WHERE library_id = :library_id AND owner = :owner
               AND substr(idempotency_key, 1, :length) = :prefix ORDER BY created_at, id""",
            library_id=library_id,
            owner=owner,
            prefix=prefix,
            length=len(prefix),
        )

    @reads
    def of_item(self, tx: Tx, scope: Scope, item_id: str) -> Capture:
        return rows.require(
            tx,
            Capture,
            f"""SELECT c.* FROM {_VISIBLE.format(condition=scope_sql.visible(scope))}
                AND c.item_id = :item_id ORDER BY c.created_at LIMIT 1""",
            item_id=item_id,
            **scope_sql.within(scope),
        )

    @reads
    def list_page(
        self, tx: Tx, scope: Scope, *, limit: int, offset: int
    ) -> tuple[list[Capture], int]:
        """Return captures of items in scope, newest first, and their total."""
        visible = _VISIBLE.format(condition=scope_sql.visible(scope))
        page = rows.every(
            tx,
            Capture,
            f"""SELECT c.* FROM {visible}
                ORDER BY c.created_at DESC, c.id DESC LIMIT :limit OFFSET :offset""",
            limit=limit,
            offset=offset,
            **scope_sql.within(scope),
        )
        return page, tx.scalar(f"SELECT count(*) FROM {visible}", **scope_sql.within(scope))


def insert_capture(tx: Tx, new: Capture) -> None:
    """Insert a capture. Conflict: the idempotency key belongs to another one."""
    if not rows.insert(
        tx,
        "captures",
        new,
        "ON CONFLICT (library_id, owner, idempotency_key) DO NOTHING",
        hash=new.hash,
    ):
        raise Conflict("The idempotency key was used already.")


def extend_capture(tx: Tx, longer: Capture) -> None:
    """Replace a capture by one under the same key that begins with its words. No row is changed."""
    tx.run(
        """DELETE FROM captures WHERE library_id = :library_id AND owner = :owner
           AND idempotency_key = :idempotency_key""",
        library_id=longer.library_id,
        owner=longer.owner,
        idempotency_key=longer.idempotency_key,
    )
    insert_capture(tx, longer)


def forget_for_tokens_without_access(
    tx: Tx, library_id: str, item_id: str
) -> list[tuple[str, Json]]:
    """Hide a deleted item that stays in folders which some tokens do not see.

    Their idempotency keys for it are freed, and their candidates that quote it are deleted. Return
    these rows, each with the name of its table.
    """
    key = {"library_id": library_id, "item_id": item_id}
    found = tx.all(
        f"""SELECT * FROM captures WHERE library_id = :library_id AND item_id = :item_id
            AND idempotency_key IS NOT NULL AND {_OF_TOKENS_WITHOUT_ACCESS}""",
        **key,
    )
    forgotten = [("captures", dict(row)) for row in found]
    for _, row in forgotten:
        _replace_key(tx, row, None)
    for table, condition in (
        ("candidates", "(source_id = :item_id OR item_id = :item_id)"),
        ("idempotency_keys", "item_id = :item_id"),
    ):
        forgotten += [
            (table, dict(row))
            for row in tx.all(
                f"""DELETE FROM {table} WHERE library_id = :library_id AND {condition}
                    AND {_OF_TOKENS_WITHOUT_ACCESS} RETURNING *""",
                **key,
            )
        ]
    return forgotten


def owners_without_access(
    tx: Tx, library_id: str, item_id: str, owners: Collection[str]
) -> set[str]:
    """Return those of the owners that are tokens with none of the item's folders."""
    found = tx.column(
        f"""SELECT owner FROM (SELECT id AS owner FROM tokens WHERE library_id = :library_id) AS o
            WHERE owner IN :owners AND {_OF_TOKENS_WITHOUT_ACCESS}""",
        library_id=library_id,
        item_id=item_id,
        owners=sorted(owners),
    )
    return set(found)


def recall_key(tx: Tx, row: Json) -> None:
    """Give a capture the idempotency key of this row again, unless it was used meanwhile."""
    known = tx.one(
        """SELECT 1 FROM captures WHERE library_id = :library_id AND id = :id""",
        library_id=row["library_id"],
        id=row["id"],
    )
    used = tx.one(
        """SELECT 1 FROM captures WHERE library_id = :library_id AND owner = :owner
           AND idempotency_key = :idempotency_key""",
        library_id=row["library_id"],
        owner=row["owner"],
        idempotency_key=row["idempotency_key"],
    )
    if known and not used:
        _replace_key(tx, row, row["idempotency_key"])


def _replace_key(tx: Tx, row: Json, idempotency_key: str | None) -> None:
    # No capture is ever changed, and one without a key says the same.
    tx.run(
        "DELETE FROM captures WHERE library_id = :library_id AND id = :id",
        library_id=row["library_id"],
        id=row["id"],
    )
    values = row | {"idempotency_key": idempotency_key}
    tx.insert("captures", ", ".join(values), [tuple(values.values())])
