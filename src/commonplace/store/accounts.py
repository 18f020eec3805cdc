"""Passwords, passkeys, browsers that are signed in, and secrets that are good for one use."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import datetime
from typing import Any

from commonplace.database.columns import from_micros, from_optional_micros, micros
from commonplace.database.transaction import Tx
from commonplace.database.unit_of_work import Table, reads, reads_inline, writes
from commonplace.errors import NameTaken
from commonplace.model import Membership, Passkey, Person, Role, WebSession, now
from commonplace.store import rows


class Accounts(Table):
    @reads
    def person(self, tx: Tx, person_id: str) -> Person | None:
        row = tx.one("SELECT * FROM people WHERE id = :id", id=person_id)
        return rows.person(row) if row else None

    @reads
    def find_by_email(self, tx: Tx, email: str) -> Person | None:
        row = tx.one("SELECT * FROM people WHERE lower(email) = lower(:email)", email=email)
        return rows.person(row) if row else None

    @writes
    def rename(self, tx: Tx, person_id: str, name: str, email: str) -> None:
        """A library that bears the person's name goes along. NameTaken: somebody else has the address."""
        _rename(tx, person_id, name, email)

    @writes
    def claim(
        self,
        tx: Tx,
        digest: str,
        purpose: str,
        person_id: str,
        name: str,
        email: str,
        hash: str | None,
    ) -> bool:
        """Redeem a secret, rename the person and set their password, or none of it; whether the secret was good. Other
        secrets of the person for that purpose end with it. A new password signs out all browsers of the person; None keeps
        the old one."""

        if not _redeem(tx, digest, purpose)[0]:
            return False
        _rename(tx, person_id, name, email)
        _void(tx, person_id, purpose)
        if hash is not None:
            put_password(tx, person_id, hash)
            _close_sessions(tx, person_id, None, None)
        return True

    # -- passwords and passkeys

    @reads
    def password_hash(self, tx: Tx, person_id: str) -> str | None:
        """Its hash."""
        row = tx.one("SELECT hash FROM passwords WHERE person_id = :id", id=person_id)
        return row["hash"] if row else None

    @writes
    def set_password(
        self, tx: Tx, person_id: str, hash: str, *, keep: str | None = None, void: str | None = None
    ) -> None:
        """And sign out all browsers of the person but the one with the session `keep`, by digest. `void`: the purpose of
        secrets for one use that end with the old password."""

        put_password(tx, person_id, hash)
        _void(tx, person_id, void)
        _close_sessions(tx, person_id, None, keep)

    @writes
    def add_passkey(self, tx: Tx, passkey: Passkey) -> None:
        insert_passkey(tx, passkey)

    @reads
    def passkey(self, tx: Tx, passkey_id: str) -> Passkey | None:
        row = tx.one("SELECT * FROM passkeys WHERE id = :id", id=passkey_id)
        return _passkey(row) if row else None

    @reads
    def passkeys(self, tx: Tx, person_id: str) -> list[Passkey]:
        found = tx.all(
            "SELECT * FROM passkeys WHERE person_id = :id ORDER BY created_at, id", id=person_id
        )
        return [_passkey(row) for row in found]

    @writes
    def record_passkey_use(self, tx: Tx, passkey_id: str, uses: int) -> None:
        tx.run(
            "UPDATE passkeys SET uses = :uses, used_at = :at WHERE id = :id",
            id=passkey_id,
            uses=uses,
            at=micros(now()),
        )

    @writes
    def delete_passkey(self, tx: Tx, person_id: str, passkey_id: str) -> bool:
        dropped: int = tx.run(
            "DELETE FROM passkeys WHERE id = :id AND person_id = :person_id",
            id=passkey_id,
            person_id=person_id,
        )
        return dropped > 0

    # -- sessions

    @writes
    def open_session(self, tx: Tx, session: WebSession) -> None:
        tx.run("DELETE FROM web_sessions WHERE expires_at < :now", now=micros(now()))
        tx.run(
            """INSERT INTO web_sessions (digest, person_id, library_id, view_as, about,
               created_at, expires_at)
               VALUES (:digest, :person_id, :library_id, :view_as, :about, :created_at,
               :expires_at)""",
            digest=session.digest,
            person_id=session.person_id,
            library_id=session.library_id,
            view_as=session.view_as,
            about=session.about,
            created_at=micros(session.created_at),
            expires_at=micros(session.expires_at),
        )

    @reads_inline
    def session(self, tx: Tx, digest: str) -> tuple[WebSession, Person, list[Membership]] | None:
        """A session that has not expired, whose it is, and the libraries they are in: their own first."""
        found = tx.recall(_whose, digest)
        return found if found and found[0].expires_at > now() else None

    @reads
    def sessions(self, tx: Tx, person_id: str) -> list[WebSession]:
        found = tx.all(
            """SELECT * FROM web_sessions
               WHERE person_id = :id AND expires_at > :now
               ORDER BY created_at""",
            id=person_id,
            now=micros(now()),
        )
        return [_session(row) for row in found]

    @writes
    def extend_session(self, tx: Tx, digest: str, expires_at: datetime) -> None:
        tx.run(
            "UPDATE web_sessions SET expires_at = :at WHERE digest = :digest",
            at=micros(expires_at),
            digest=digest,
        )

    @writes
    def set_view_as(self, tx: Tx, digest: str, token_id: str | None) -> None:
        tx.run(
            "UPDATE web_sessions SET view_as = :token_id WHERE digest = :digest",
            token_id=token_id,
            digest=digest,
        )

    @writes
    def switch_library(self, tx: Tx, digest: str, library_id: str) -> None:
        """The session is in that library from now on, seen with the person's own eyes."""
        tx.run(
            """UPDATE web_sessions SET library_id = :library_id, view_as = NULL
               WHERE digest = :digest""",
            library_id=library_id,
            digest=digest,
        )

    @writes
    def close_sessions(
        self, tx: Tx, person_id: str, *, only: str | None = None, but: str | None = None
    ) -> None:
        """All of a person's, or only one, or all but one; by digest."""
        _close_sessions(tx, person_id, only, but)

    # -- secrets for one use

    @writes
    def add_secret(
        self, tx: Tx, digest: str, purpose: str, person_id: str | None, expires_at: datetime
    ) -> None:
        """A secret that is good for one use. What has expired is forgotten."""

        tx.run("DELETE FROM once_only WHERE expires_at < :now", now=micros(now()))
        tx.run(
            """INSERT INTO once_only (digest, purpose, person_id, expires_at)
               VALUES (:digest, :purpose, :person_id, :at)""",
            digest=digest,
            purpose=purpose,
            person_id=person_id,
            at=micros(expires_at),
        )

    @reads
    def check_secret(self, tx: Tx, digest: str, purpose: str) -> tuple[bool, str | None]:
        """Whether it is still good, and for whom."""
        return _promised(tx, digest, purpose)

    @writes
    def redeem_secret(self, tx: Tx, digest: str, purpose: str) -> tuple[bool, str | None]:
        """The same, and from now on it is not; of two who try at once, one succeeds."""
        return _redeem(tx, digest, purpose)


def _rename(tx: Tx, person_id: str, name: str, email: str) -> None:
    if tx.one(
        "SELECT 1 FROM people WHERE lower(email) = lower(:email) AND id <> :id",
        email=email,
        id=person_id,
    ):
        raise NameTaken(f"Somebody else has the address {email}.")
    tx.run(
        """UPDATE libraries SET name = :name
           WHERE id = :id AND name = (SELECT p.name FROM people AS p WHERE p.id = :id)""",
        name=name,
        id=person_id,
    )
    tx.run(
        "UPDATE people SET name = :name, email = :email WHERE id = :id",
        name=name,
        email=email,
        id=person_id,
    )


def _redeem(tx: Tx, digest: str, purpose: str) -> tuple[bool, str | None]:
    good, person_id = _promised(tx, digest, purpose)
    return bool(
        tx.run("DELETE FROM once_only WHERE digest = :digest", digest=digest)
    ) and good, person_id


def _void(tx: Tx, person_id: str, purpose: str | None) -> None:
    """Delete the secrets of a person for one purpose that nobody has used yet."""
    tx.run(
        "DELETE FROM once_only WHERE person_id = :id AND purpose = :purpose",
        id=person_id,
        purpose=purpose,
    )


def _close_sessions(tx: Tx, person_id: str, only: str | None, but: str | None) -> None:
    tx.run(
        """DELETE FROM web_sessions
           WHERE person_id = :id AND digest = coalesce(:only, digest)
           AND digest <> coalesce(:but, '')""",
        id=person_id,
        only=only,
        but=but,
    )


def put_password(tx: Tx, person_id: str, hash: str) -> None:
    tx.run(
        """INSERT INTO passwords (person_id, hash, changed_at)
           VALUES (:id, :hash, :at)
           ON CONFLICT (person_id) DO UPDATE
           SET hash = excluded.hash, changed_at = excluded.changed_at""",
        id=person_id,
        hash=hash,
        at=micros(now()),
    )


def insert_passkey(tx: Tx, passkey: Passkey) -> None:
    tx.run(
        """INSERT INTO passkeys (id, person_id, name, public_key, uses, created_at)
           VALUES (:id, :person_id, :name, :public_key, :uses, :at)""",
        id=passkey.id,
        person_id=passkey.person_id,
        name=passkey.name,
        uses=passkey.uses,
        public_key=urlsafe_b64encode(passkey.public_key).decode(),
        at=micros(passkey.created_at),
    )


def _whose(tx: Tx, digest: str) -> tuple[WebSession, Person, list[Membership]] | None:
    row = tx.one(
        """SELECT s.*, p.name, p.email, p.created_at AS joined_at
           FROM web_sessions AS s
           JOIN people AS p ON p.id = s.person_id
           WHERE s.digest = :digest""",
        digest=digest,
    )
    if row is None:
        return None
    person = Person(row["person_id"], row["name"], row["email"], from_micros(row["joined_at"]))
    libraries = tx.all(
        """SELECT m.library_id, l.name, m.role
           FROM members AS m
           JOIN libraries AS l ON l.id = m.library_id
           WHERE m.person_id = :person_id
           ORDER BY l.name, l.id""",
        person_id=person.id,
    )
    return (
        _session(row),
        person,
        sorted(
            (
                Membership(each["library_id"], each["name"], Role(each["role"]))
                for each in libraries
            ),
            key=lambda each: each.library_id != person.id,
        ),
    )


def _promised(tx: Tx, digest: str, purpose: str) -> tuple[bool, str | None]:
    row = tx.one(
        """SELECT person_id FROM once_only
           WHERE digest = :digest AND purpose = :purpose AND expires_at > :now""",
        digest=digest,
        purpose=purpose,
        now=micros(now()),
    )
    return row is not None, row["person_id"] if row else None


def _passkey(row: Any) -> Passkey:
    return Passkey(
        row["id"],
        row["person_id"],
        row["name"],
        urlsafe_b64decode(row["public_key"]),
        row["uses"],
        from_micros(row["created_at"]),
        from_optional_micros(row["used_at"]),
    )


def _session(row: Any) -> WebSession:
    return WebSession(
        digest=row["digest"],
        person_id=row["person_id"],
        library_id=row["library_id"],
        expires_at=from_micros(row["expires_at"]),
        about=row["about"],
        view_as=row["view_as"],
        created_at=from_micros(row["created_at"]),
    )
