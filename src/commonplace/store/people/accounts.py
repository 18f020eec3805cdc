"""Sign-in: passwords, passkeys, browser sessions and one-time secrets."""

from datetime import datetime

from commonplace.database import Table, Tx, from_micros, reads, reads_inline, writes
from commonplace.errors import NameTaken
from commonplace.model import Membership, Passkey, Person, WebSession, now
from commonplace.store import rows


class Accounts(Table):
    @reads
    def person(self, tx: Tx, person_id: str) -> Person | None:
        return rows.first(tx, Person, "SELECT * FROM people WHERE id = :id", id=person_id)

    @reads
    def find_by_email(self, tx: Tx, email: str) -> Person | None:
        return rows.first(
            tx, Person, "SELECT * FROM people WHERE lower(email) = lower(:email)", email=email
        )

    @writes
    def rename(self, tx: Tx, person_id: str, name: str, email: str) -> None:
        """Change a person's name and email, and the name of a library that is called like them.

        NameTaken: somebody else has the email.
        """
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
        """Redeem a secret, rename the person and set their password, or do none of it.

        Return whether the secret was valid. The person's other secrets for that purpose end too.
        A new password signs out all of their browsers; None keeps the old one.
        """
        if not _redeem(tx, digest, purpose)[0]:
            return False
        _rename(tx, person_id, name, email)
        _void_secrets(tx, person_id, purpose)
        if hash is not None:
            put_password(tx, person_id, hash)
            _close_sessions(tx, person_id, None, None)
        return True

    # -- passwords and passkeys

    @reads
    def password_hash(self, tx: Tx, person_id: str) -> str | None:
        hash: str | None = tx.scalar(
            "SELECT hash FROM passwords WHERE person_id = :id", id=person_id
        )
        return hash

    @writes
    def set_password(
        self,
        tx: Tx,
        person_id: str,
        hash: str,
        *,
        keep: str | None = None,
        void: str | None = None,
    ) -> None:
        """Set a password and sign out all of the person's browsers.

        `keep` is the digest of the one session that stays. `void` is a purpose: one-time secrets
        for it end with the old password.
        """
        put_password(tx, person_id, hash)
        _void_secrets(tx, person_id, void)
        _close_sessions(tx, person_id, None, keep)

    @writes
    def add_passkey(self, tx: Tx, passkey: Passkey) -> None:
        rows.insert(tx, "passkeys", passkey)

    @reads
    def passkey(self, tx: Tx, passkey_id: str) -> Passkey | None:
        return rows.first(tx, Passkey, "SELECT * FROM passkeys WHERE id = :id", id=passkey_id)

    @reads
    def passkeys(self, tx: Tx, person_id: str) -> list[Passkey]:
        return rows.every(
            tx,
            Passkey,
            "SELECT * FROM passkeys WHERE person_id = :id ORDER BY created_at, id",
            id=person_id,
        )

    @writes
    def record_passkey_use(self, tx: Tx, passkey_id: str, uses: int) -> None:
        tx.run(
            "UPDATE passkeys SET uses = :uses, used_at = :at WHERE id = :id",
            id=passkey_id,
            uses=uses,
            at=now(),
        )

    @writes
    def delete_passkey(self, tx: Tx, person_id: str, passkey_id: str) -> bool:
        return (
            tx.run(
                "DELETE FROM passkeys WHERE id = :id AND person_id = :person_id",
                id=passkey_id,
                person_id=person_id,
            )
            > 0
        )

    # -- sessions

    @writes
    def open_session(self, tx: Tx, session: WebSession) -> None:
        tx.run("DELETE FROM web_sessions WHERE expires_at < :now", now=now())
        rows.insert(tx, "web_sessions", session)

    @reads_inline
    def session(self, tx: Tx, digest: str) -> tuple[WebSession, Person, list[Membership]] | None:
        """Return a session that has not expired, its person, and their libraries, own first."""
        found = tx.recall(_session, digest)
        return found if found and found[0].expires_at > now() else None

    @reads
    def sessions(self, tx: Tx, person_id: str) -> list[WebSession]:
        return rows.every(
            tx,
            WebSession,
            """SELECT * FROM web_sessions WHERE person_id = :id AND expires_at > :now
               ORDER BY created_at""",
            id=person_id,
            now=now(),
        )

    @writes
    def extend_session(self, tx: Tx, digest: str, expires_at: datetime) -> None:
        tx.run(
            "UPDATE web_sessions SET expires_at = :at WHERE digest = :digest",
            at=expires_at,
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
        """Move the session to another library, and end "View as"."""
        tx.run(
            """UPDATE web_sessions SET library_id = :library_id, view_as = NULL
               WHERE digest = :digest""",
            library_id=library_id,
            digest=digest,
        )

    @writes
    def seal(self, tx: Tx, digest: str, sealed: str | None, until: datetime | None) -> None:
        """Keep an encrypted secret with the session, in place of the last one."""
        tx.run(
            """UPDATE web_sessions SET sealed = :sealed, sealed_until = :until
               WHERE digest = :digest""",
            sealed=sealed,
            until=until,
            digest=digest,
        )

    @writes
    def forget_sealed(self, tx: Tx) -> None:
        """Delete encrypted secrets that are not shown any more."""
        tx.run(
            """UPDATE web_sessions SET sealed = NULL, sealed_until = NULL
               WHERE sealed_until < :now""",
            now=now(),
        )

    @writes
    def close_sessions(
        self, tx: Tx, person_id: str, *, only: str | None = None, but: str | None = None
    ) -> None:
        """Close all sessions of a person, `only` one of them, or all `but` one; by digest."""
        _close_sessions(tx, person_id, only, but)

    # -- one-time secrets

    @writes
    def add_secret(
        self, tx: Tx, digest: str, purpose: str, person_id: str | None, expires_at: datetime
    ) -> None:
        """Store a secret that is valid for one use. Deletes expired ones."""
        tx.run("DELETE FROM once_only WHERE expires_at < :now", now=now())
        tx.run(
            """INSERT INTO once_only (digest, purpose, person_id, expires_at)
               VALUES (:digest, :purpose, :person_id, :at)""",
            digest=digest,
            purpose=purpose,
            person_id=person_id,
            at=expires_at,
        )

    @reads
    def check_secret(self, tx: Tx, digest: str, purpose: str) -> tuple[bool, str | None]:
        """Return whether the secret is still valid, and for whom."""
        return _check(tx, digest, purpose)

    @writes
    def redeem_secret(self, tx: Tx, digest: str, purpose: str) -> tuple[bool, str | None]:
        """Check a secret and use it up; of two calls at once, one succeeds."""
        return _redeem(tx, digest, purpose)


def _rename(tx: Tx, person_id: str, name: str, email: str) -> None:
    who = {"id": person_id, "email": email}
    if tx.one("SELECT 1 FROM people WHERE lower(email) = lower(:email) AND id <> :id", **who):
        raise NameTaken(f"The email {email} is already in use.", field="email")
    tx.run(
        """UPDATE libraries SET name = :name
           WHERE id = :id AND name = (SELECT p.name FROM people AS p WHERE p.id = :id)""",
        name=name,
        id=person_id,
    )
    tx.run("UPDATE people SET name = :name, email = :email WHERE id = :id", name=name, **who)


def _check(tx: Tx, digest: str, purpose: str) -> tuple[bool, str | None]:
    row = tx.one(
        """SELECT person_id FROM once_only
           WHERE digest = :digest AND purpose = :purpose AND expires_at > :now""",
        digest=digest,
        purpose=purpose,
        now=now(),
    )
    return row is not None, row["person_id"] if row else None


def _redeem(tx: Tx, digest: str, purpose: str) -> tuple[bool, str | None]:
    valid, person_id = _check(tx, digest, purpose)
    deleted = tx.run("DELETE FROM once_only WHERE digest = :digest", digest=digest)
    return bool(deleted) and valid, person_id


def _void_secrets(tx: Tx, person_id: str, purpose: str | None) -> None:
    """Delete a person's unused secrets for one purpose."""
    tx.run(
        "DELETE FROM once_only WHERE person_id = :id AND purpose = :purpose",
        id=person_id,
        purpose=purpose,
    )


def _close_sessions(tx: Tx, person_id: str, only: str | None, but: str | None) -> None:
    tx.run(
        """DELETE FROM web_sessions WHERE person_id = :id AND digest = coalesce(:only, digest)
           AND digest <> coalesce(:but, '')""",
        id=person_id,
        only=only,
        but=but,
    )


def put_password(tx: Tx, person_id: str, hash: str) -> None:
    tx.run(
        """INSERT INTO passwords (person_id, hash, changed_at) VALUES (:id, :hash, :at)
           ON CONFLICT (person_id)
           DO UPDATE SET hash = excluded.hash, changed_at = excluded.changed_at""",
        id=person_id,
        hash=hash,
        at=now(),
    )


def _session(tx: Tx, digest: str) -> tuple[WebSession, Person, list[Membership]] | None:
    row = tx.one(
        """SELECT s.*, p.name, p.email, p.created_at AS joined_at FROM web_sessions AS s
           JOIN people AS p ON p.id = s.person_id WHERE s.digest = :digest""",
        digest=digest,
    )
    if row is None:
        return None
    person = Person(row["person_id"], row["name"], row["email"], from_micros(row["joined_at"]))
    libraries = rows.every(
        tx,
        Membership,
        """SELECT m.library_id, l.name, m.role FROM members AS m
           JOIN libraries AS l ON l.id = m.library_id WHERE m.person_id = :person_id
           ORDER BY m.library_id <> m.person_id, l.name, l.id""",
        person_id=person.id,
    )
    return rows.value(WebSession, row), person, libraries
