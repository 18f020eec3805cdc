"""People, their libraries, their tokens and what the tokens did."""

from collections.abc import Sequence
from typing import Any

from commonplace.database.columns import micros
from commonplace.database.transaction import Tx
from commonplace.database.unit_of_work import Table, reads, reads_inline, writes
from commonplace.errors import Conflict, NameTaken
from commonplace.model import Event, Person, Token, now
from commonplace.search_index.index import IndexedTable
from commonplace.store import rows
from commonplace.store.item_folders import require_folders

EVENTS_KEPT = 1000  # per token
_TOKEN = """SELECT t.*, f.folder_id, m.role
            FROM tokens AS t
            LEFT JOIN members AS m ON m.library_id = t.library_id AND m.person_id = t.person_id
            LEFT JOIN token_folders AS f ON f.library_id = t.library_id AND f.token_id = t.id"""


class People(IndexedTable):
    @writes
    def create(self, tx: Tx, person: Person, token: tuple[Token, str] | None = None) -> None:
        """A person, a library of their own, which has the person's id, and a token with its digest, if given. NameTaken: the
        email is known."""

        insert_person(tx, person)
        if token is not None:
            insert_token(tx, *token)

    @reads
    def all(self, tx: Tx) -> list[Person]:
        found = tx.all("SELECT * FROM people ORDER BY created_at, id")
        return [rows.person(row) for row in found]

    @reads_inline
    def role(self, tx: Tx, person_id: str, library_id: str) -> str | None:
        return tx.recall(_role, person_id, library_id)

    async def delete(self, person_id: str) -> None:
        """The person, their library and all that hangs on it. Conflict: items are in it, or others belong to it."""

        def work(tx: Tx) -> None:
            if tx.one(
                "SELECT 1 FROM members WHERE library_id = :id AND person_id <> :id", id=person_id
            ):
                raise Conflict("Others belong to this library: remove them first.")
            if tx.one("SELECT 1 FROM items WHERE library_id = :id", id=person_id):
                raise Conflict("Something was added to the library just now; try again.")
            tx.run(
                "DELETE FROM invitations WHERE invited_by = :id AND accepted_at IS NULL",
                id=person_id,
            )
            # Browsers of those who were here once turn to their own library.
            tx.run(
                "UPDATE web_sessions SET library_id = person_id WHERE library_id = :id",
                id=person_id,
            )
            tx.run("DELETE FROM libraries WHERE id = :id", id=person_id)
            tx.run("DELETE FROM people WHERE id = :id", id=person_id)

        await self._db.write(work)
        self._index.forget(person_id)


class Tokens(Table):
    @writes
    def create(self, tx: Tx, token: Token, digest: str) -> None:
        insert_token(tx, token, digest)

    @reads_inline
    def by_digest(self, tx: Tx, digest: str) -> Token | None:
        return tx.recall(_by_digest, digest)

    @reads
    def of_library(self, tx: Tx, library_id: str) -> list[Token]:
        return _tokens(
            tx.all(
                f"{_TOKEN} WHERE t.library_id = :library_id ORDER BY t.created_at, t.id",
                library_id=library_id,
            )
        )

    @writes
    def revoke(self, tx: Tx, library_id: str, token_id: str) -> bool:
        revoked: int = tx.run(
            """UPDATE tokens SET revoked_at = :at
               WHERE library_id = :library_id AND id = :id AND revoked_at IS NULL""",
            library_id=library_id,
            id=token_id,
            at=micros(now()),
        )
        return revoked > 0

    @writes
    def record(self, tx: Tx, events: Sequence[Event]) -> None:
        """Append to the activity log and move `last_used_at`."""

        tx.many(
            """INSERT INTO events (library_id, token_id, at, action, target,
               ok) SELECT library_id, id, :at, :action, :target, :ok
               FROM tokens
               WHERE library_id = :library_id AND id = :token_id""",
            [
                {
                    "library_id": e.library_id,
                    "token_id": e.token_id,
                    "at": micros(e.at),
                    "action": e.action,
                    "target": e.target,
                    "ok": int(e.ok),
                }
                for e in events
            ],
        )
        latest = {(e.library_id, e.token_id): e.at for e in sorted(events, key=lambda e: e.at)}
        for (library_id, token_id), at in sorted(latest.items()):
            tx.run(
                """UPDATE tokens SET last_used_at = :at
                   WHERE library_id = :library_id AND id = :token_id""",
                library_id=library_id,
                token_id=token_id,
                at=micros(at),
            )
            tx.run(
                """DELETE FROM events
                   WHERE library_id = :library_id AND token_id = :token_id AND at < (SELECT at
                   FROM events WHERE library_id = :library_id AND token_id = :token_id
                   ORDER BY at DESC LIMIT 1 OFFSET :kept)""",
                library_id=library_id,
                token_id=token_id,
                kept=EVENTS_KEPT - 1,
            )

    @reads
    def activity(self, tx: Tx, library_id: str, token_id: str, limit: int) -> list[Event]:
        found = tx.all(
            """SELECT * FROM events
               WHERE library_id = :library_id AND token_id = :token_id
               ORDER BY at DESC LIMIT :limit""",
            library_id=library_id,
            token_id=token_id,
            limit=limit,
        )
        return [rows.event(row) for row in found]


def insert_person(tx: Tx, person: Person) -> None:
    if tx.one("SELECT 1 FROM people WHERE lower(email) = lower(:email)", email=person.email):
        raise NameTaken(f"There is already a person with the address {person.email}.")
    at = micros(person.created_at)
    tx.run(
        "INSERT INTO people (id, name, email, created_at) VALUES (:id, :name, :email, :at)",
        id=person.id,
        name=person.name,
        email=person.email,
        at=at,
    )
    tx.run(
        "INSERT INTO libraries (id, name, created_at) VALUES (:id, :name, :at)",
        id=person.id,
        name=person.name,
        at=at,
    )
    tx.run(
        "INSERT INTO members (library_id, person_id, role) VALUES (:id, :id, 'owner')", id=person.id
    )


def insert_token(tx: Tx, token: Token, digest: str) -> None:
    require_folders(
        tx, token.library_id, token.folders or ()
    )  # one may have been deleted since it was looked up
    tx.run(
        """INSERT INTO tokens (library_id, id, person_id, name, digest, capabilities,
           whole_library, kb_only, created_at, expires_at)
           VALUES (:library_id, :id, :person_id, :name, :digest, :capabilities, :whole,
           :kb_only, :created_at, :expires_at)""",
        library_id=token.library_id,
        id=token.id,
        person_id=token.person_id,
        name=token.name,
        digest=digest,
        capabilities=" ".join(sorted(token.capabilities)),
        whole=int(token.folders is None),
        kb_only=int(token.kb_only),
        created_at=micros(token.created_at),
        expires_at=micros(token.expires_at),
    )
    tx.many(
        """INSERT INTO token_folders (library_id, token_id, folder_id)
           VALUES (:library_id, :token_id, :folder_id)""",
        [
            {"library_id": token.library_id, "token_id": token.id, "folder_id": folder_id}
            for folder_id in sorted(token.folders or ())
        ],
    )


def _role(tx: Tx, person_id: str, library_id: str) -> str | None:
    row = tx.one(
        "SELECT role FROM members WHERE library_id = :library_id AND person_id = :person_id",
        library_id=library_id,
        person_id=person_id,
    )
    return row["role"] if row else None


def _by_digest(tx: Tx, digest: str) -> Token | None:
    found = tx.all(f"{_TOKEN} WHERE t.digest = :digest", digest=digest)
    return _tokens(found)[0] if found else None


def _tokens(found: Sequence[Any]) -> list[Token]:
    """One row per token and folder, as the join gives them."""
    folders: dict[str, set[str]] = {}
    first: dict[str, Any] = {}
    for row in found:
        first.setdefault(row["id"], row)
        folders.setdefault(row["id"], set()).update({row["folder_id"]} - {None})
    return [rows.token(row, frozenset(folders[token_id])) for token_id, row in first.items()]
