"""Idempotency keys: who called first with a key, and the answer that later calls repeat."""

from dataclasses import dataclass
from datetime import timedelta

from commonplace.database import Table, Tx, writes
from commonplace.model import now
from commonplace.store import rows

KEPT = timedelta(hours=24)
# A claim without an answer is then taken over: no call takes that long, so its process died.
RUNNING = timedelta(minutes=10)
_KEY = "library_id = :library_id AND owner = :owner AND key = :key"


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    request_digest: str  # of the first call
    status: int | None = None  # None: the first call is still running
    answer: str | None = None  # JSON


class IdempotencyKeys(Table):
    """`owner` is a token's id, else the person's."""

    @writes
    def claim(
        self, tx: Tx, library_id: str, owner: str, key: str, request_digest: str
    ) -> StoredAnswer | None:
        """Claim a key; None: the caller is the first. Deletes expired keys of the library."""
        at, call = now(), {"library_id": library_id, "owner": owner, "key": key}
        tx.run(
            f"""DELETE FROM idempotency_keys WHERE library_id = :library_id
                AND (created_at < :expired
                     OR ({_KEY} AND status IS NULL AND created_at < :abandoned))""",
            expired=at - KEPT,
            abandoned=at - RUNNING,
            **call,
        )
        new = StoredAnswer(request_digest)
        # Again if the other call has released the key between the two statements.
        while not rows.insert(
            tx, "idempotency_keys", new, "ON CONFLICT DO NOTHING", created_at=at, **call
        ):
            if first := rows.first(
                tx, StoredAnswer, f"SELECT * FROM idempotency_keys WHERE {_KEY}", **call
            ):
                return first
        return None

    @writes
    def finish(
        self,
        tx: Tx,
        library_id: str,
        owner: str,
        key: str,
        status: int,
        answer: str,
        item_id: str | None = None,
    ) -> None:
        """Store the answer of the call that holds the claim. The first answer stays, until the item
        that it tells of is deleted."""
        tx.run(
            f"""UPDATE idempotency_keys SET status = :status, answer = :answer, item_id =
                (SELECT id FROM items WHERE library_id = :library_id AND id = :item_id)
                WHERE {_KEY} AND status IS NULL""",
            library_id=library_id,
            owner=owner,
            key=key,
            status=status,
            answer=answer,
            item_id=item_id,
        )

    @writes
    def release(self, tx: Tx, library_id: str, owner: str, key: str) -> None:
        """Forget a claim whose call failed. An answer that was stored stays."""
        tx.run(
            f"DELETE FROM idempotency_keys WHERE {_KEY} AND status IS NULL",
            library_id=library_id,
            owner=owner,
            key=key,
        )

    @writes
    def prune(self, tx: Tx) -> None:
        """Delete expired keys of all libraries: answers hold what may have been deleted since."""
        tx.run("DELETE FROM idempotency_keys WHERE created_at < :expired", expired=now() - KEPT)
