"""People, their libraries, their tokens and the tokens' activity."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from commonplace.database import Database, Table, Tx, reads, reads_inline, writes
from commonplace.errors import Conflict, NameTaken
from commonplace.model import OAUTH, UNDO_KEPT, Capability, Event, Person, Role, Token, now
from commonplace.search_index.index import IndexedTable
from commonplace.store import item_folders, rows
from commonplace.store.people import directory

EVENTS_KEPT = 1000  # per token
_DIGESTS = 10_000  # whose library a server knows
_TOKEN = """SELECT t.*, f.folder_id, m.role FROM tokens AS t
            LEFT JOIN members AS m ON m.library_id = t.library_id AND m.person_id = t.person_id
            LEFT JOIN token_folders AS f ON f.library_id = t.library_id AND f.token_id = t.id"""


class People(IndexedTable):
    @writes
    def create(self, tx: Tx, person: Person, token: tuple[Token, str] | None = None) -> None:
        """Create a person, their own library (with the same id), and a token with its digest.

        NameTaken: the email is known.
        """
        insert_person(tx, person)
        if token is not None:
            insert_token(tx, *token)

    @reads
    def all(self, tx: Tx) -> list[Person]:
        return rows.every(tx, Person, "SELECT * FROM people ORDER BY created_at, id")

    @reads
    def count(self, tx: Tx) -> int:
        return int(tx.scalar("SELECT count(*) FROM people"))

    @reads_inline
    def first(self, tx: Tx) -> Person | None:
        """Return the server's first person."""
        return rows.first(tx, Person, "SELECT * FROM people ORDER BY created_at, id LIMIT 1")

    @reads_inline
    def role(self, tx: Tx, person_id: str, library_id: str) -> str | None:
        return tx.recall(_role, person_id, library_id)

    async def delete(self, person_id: str) -> None:
        """Delete a person and their library. Conflict: it has items, or other members."""
        await self._delete(person_id)
        self._index.forget(person_id)

    @writes
    def _delete(self, tx: Tx, person_id: str) -> None:
        if tx.one(
            "SELECT 1 FROM members WHERE library_id = :id AND person_id <> :id", id=person_id
        ):
            raise Conflict("The library has other members: remove them first.")
        if tx.one(
            """SELECT 1 FROM items WHERE library_id = :id
               UNION ALL SELECT 1 FROM trash WHERE library_id = :id LIMIT 1""",
            id=person_id,
        ):
            raise Conflict("Something was added to the library just now; try again.")
        self._index.drop_library(tx, person_id)
        _forget_tokens(tx, person_id)
        directory.drop_library(tx, person_id)
        for sql in (
            # Browsers of former members turn to their own library.
            "UPDATE web_sessions SET library_id = person_id WHERE library_id = :id",
            "DELETE FROM libraries WHERE id = :id",
            "DELETE FROM people WHERE id = :id",
        ):
            tx.run(sql, id=person_id)


class Tokens(Table):
    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self._libraries: dict[str, str] = {}  # of digests that were used; they never change

    @writes
    def create(self, tx: Tx, token: Token, digest: str) -> None:
        insert_token(tx, token, digest)

    @reads_inline
    def by_digest(self, tx: Tx, digest: str) -> Token | None:
        known = self._libraries.get(digest)
        token = tx.recall(_by_digest, digest, known)
        if token and known != token.library_id:
            if len(self._libraries) >= _DIGESTS:
                self._libraries.clear()
            self._libraries[digest] = token.library_id
        return token

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
        return revoke_token(tx, library_id, token_id)

    @writes
    def record(self, tx: Tx, events: Sequence[Event]) -> None:
        """Append to the activity log and update `last_used_at`."""
        tx.many(
            """INSERT INTO events (library_id, token_id, at, action, target, ok)
               SELECT library_id, id, :at, :action, :target, :ok FROM tokens
               WHERE library_id = :library_id AND id = :token_id""",
            [
                {name: rows.column(value) for name, value in asdict(event).items()}
                for event in events
            ],
        )
        latest = {(e.library_id, e.token_id): e.at for e in sorted(events, key=lambda e: e.at)}
        for (library_id, token_id), at in sorted(latest.items()):
            key = {"library_id": library_id, "token_id": token_id}
            tx.run(
                """UPDATE tokens SET last_used_at = :at
                   WHERE library_id = :library_id AND id = :token_id""",
                at=at,
                **key,
            )
            tx.run(
                """DELETE FROM events WHERE library_id = :library_id AND token_id = :token_id
                   AND at < (SELECT at FROM events
                             WHERE library_id = :library_id AND token_id = :token_id
                             ORDER BY at DESC LIMIT 1 OFFSET :kept)""",
                kept=EVENTS_KEPT - 1,
                **key,
            )

    @reads
    def activity(self, tx: Tx, library_id: str, token_id: str, limit: int) -> list[Event]:
        return rows.every(
            tx,
            Event,
            """SELECT * FROM events WHERE library_id = :library_id AND token_id = :token_id
               ORDER BY at DESC LIMIT :limit""",
            library_id=library_id,
            token_id=token_id,
            limit=limit,
        )


def lock_library(tx: Tx, library_id: str) -> None:
    """Make writers that check before they write wait for each other. SQLite has one writer."""
    if tx.engine == "postgres":
        tx.one("SELECT 1 FROM libraries WHERE id = :id FOR NO KEY UPDATE", id=library_id)


def insert_person(tx: Tx, person: Person) -> None:
    """Insert a person and their library. NameTaken: the email is known."""
    if tx.one("SELECT 1 FROM people WHERE lower(email) = lower(:email)", email=person.email):
        raise NameTaken(f"There is already a person with the email {person.email}.", field="email")
    rows.insert(tx, "people", person)
    tx.run(
        "INSERT INTO libraries (id, name, created_at) VALUES (:id, :name, :at)",
        id=person.id,
        name=person.name,
        at=person.created_at,
    )
    tx.run(
        "INSERT INTO members (library_id, person_id, role) VALUES (:id, :id, 'owner')", id=person.id
    )
    tx.run(
        """INSERT INTO usage (library_id, items, sections, size, writes)
           VALUES (:id, 0, 0, 0, 0)""",
        id=person.id,
    )


def libraries_of(tx: Tx, person_id: str) -> list[str]:
    """Return the ids of the libraries that a person is a member of."""
    return tx.column("SELECT library_id FROM members WHERE person_id = :id", id=person_id)


def _forget_tokens(tx: Tx, person_id: str) -> None:
    """Delete what a person's tokens, which are deleted with them, leave in any library: names in
    the directory, answers to calls, and open invitations."""
    tokens = tx.tuples(
        "SELECT library_id, id, digest FROM tokens WHERE person_id = :id", id=person_id
    )
    names = [(library_id, digest) for library_id, _, digest in tokens if digest]
    names += tx.tuples(
        "SELECT library_id, digest FROM oauth_secrets WHERE library_id IN :libraries"
        " AND token_id IN :tokens",
        libraries=sorted({library_id for library_id, *_ in tokens}),
        tokens=[token_id for _, token_id, _ in tokens],
    )
    names += tx.tuples(
        """DELETE FROM invitations WHERE invited_by = :id AND accepted_at IS NULL
           RETURNING library_id, digest""",
        id=person_id,
    )
    for library_id, name in names:
        directory.drop_names(tx, library_id, [name])
    tx.run(
        "DELETE FROM idempotency_keys WHERE owner IN :owners",
        owners=[person_id, *(token_id for _, token_id, _ in tokens)],
    )


def insert_token(tx: Tx, token: Token, digest: str | None) -> None:
    # A folder may have been deleted since it was looked up.
    item_folders.require_folders(tx, token.library_id, token.folders or ())
    directory.put_names(tx, token.library_id, [digest] if digest else [])
    tx.run(
        """INSERT INTO tokens (library_id, id, person_id, name, kind, digest, client_id,
                               redirect_host, resource, capabilities, whole_library, kb_only,
                               created_at, expires_at)
           VALUES (:library_id, :id, :person_id, :name, :kind, :digest, :client_id,
                   :redirect_host, :resource, :capabilities, :whole, :kb_only,
                   :created_at, :expires_at)""",
        library_id=token.library_id,
        id=token.id,
        person_id=token.person_id,
        name=token.name,
        kind=token.kind,
        digest=digest,
        client_id=token.client_id,
        redirect_host=token.redirect_host,
        resource=token.resource,
        capabilities=" ".join(sorted(token.capabilities)),
        whole=int(token.folders is None),
        kb_only=int(token.kb_only),
        created_at=token.created_at,
        expires_at=token.expires_at,
    )
    tx.insert(
        "token_folders",
        "library_id, token_id, folder_id",
        [(token.library_id, token.id, folder_id) for folder_id in sorted(token.folders or ())],
    )


def token_by_id(tx: Tx, library_id: str, token_id: str) -> Token | None:
    found = tx.all(
        f"{_TOKEN} WHERE t.library_id = :library_id AND t.id = :id",
        library_id=library_id,
        id=token_id,
    )
    return next(iter(_tokens(found)), None)


def grants_of(tx: Tx, person_id: str) -> list[Token]:
    """Return the OAuth grants of a person that are still good, in all libraries, newest first."""
    return _tokens(
        tx.all(
            f"""{_TOKEN} WHERE t.library_id IN :libraries AND t.person_id = :person_id
                AND t.kind = :oauth AND t.revoked_at IS NULL AND t.expires_at > :now
                ORDER BY t.created_at DESC, t.id""",
            libraries=libraries_of(tx, person_id),
            person_id=person_id,
            oauth=OAUTH,
            now=now(),
        )
    )


def revoke_token(tx: Tx, library_id: str, token_id: str) -> bool:
    return revoke_tokens(tx, library_id, "id = :id", id=token_id) > 0


def revoke_tokens(tx: Tx, library_id: str, condition: str, **values: Any) -> int:
    """Revoke tokens of a library, whose webhooks end with them; return how many. Those revoked
    already are revoked anew: undoing what revoked them first does not bring them back."""
    revoked = tx.column(
        f"""UPDATE tokens SET revoked_at = :at WHERE library_id = :library_id
            AND revoked_at IS NULL AND {condition} RETURNING id""",
        library_id=library_id,
        at=now(),
        **values,
    )
    tx.run(
        f"""UPDATE tokens SET revoked_at = :at WHERE library_id = :library_id
            AND revoked_at >= :since AND revoked_at < :at AND {condition}""",
        library_id=library_id,
        at=now(),
        since=now() - UNDO_KEPT,
        **values,
    )
    if revoked:
        tx.run(
            "DELETE FROM webhooks WHERE library_id = :library_id AND token_id IN :ids",
            library_id=library_id,
            ids=revoked,
        )
    return len(revoked)


def _role(tx: Tx, person_id: str, library_id: str) -> str | None:
    role: str | None = tx.scalar(
        "SELECT role FROM members WHERE library_id = :library_id AND person_id = :person_id",
        library_id=library_id,
        person_id=person_id,
    )
    return role


def _by_digest(tx: Tx, digest: str, known: str | None) -> Token | None:
    """Return the token. `known`: the library that its digest led to before."""
    found = tx.all(
        f"{_TOKEN} WHERE t.library_id = :library_id AND t.digest = :digest",
        library_id=known or directory.find_library(tx, digest),
        digest=digest,
    )
    if known and not found:  # revoked, or restored into another library
        return _by_digest(tx, digest, None)
    return next(iter(_tokens(found)), None)


def _tokens(found: Sequence[Any]) -> list[Token]:
    """Make tokens of rows that the join gives per token and folder."""
    folders: dict[str, set[str]] = {}
    first: dict[str, Any] = {}
    for row in found:
        first.setdefault(row["id"], row)
        folders.setdefault(row["id"], set()).update({row["folder_id"]} - {None})
    return [
        rows.value(
            Token,
            row,
            capabilities=frozenset(map(Capability, row["capabilities"].split())),
            folders=None if row["whole_library"] else frozenset(folders[token_id]),
            role=Role(row["role"]) if row["role"] else None,
        )
        for token_id, row in first.items()
    ]
