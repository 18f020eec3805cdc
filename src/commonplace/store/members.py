"""Members of a library and invitations into it. Whoever changes a library's members takes turns."""

from dataclasses import replace
from typing import Any

from commonplace.database.columns import from_micros, from_optional_micros, micros
from commonplace.database.transaction import Tx
from commonplace.database.unit_of_work import Table, reads, writes
from commonplace.errors import Conflict, NotFound
from commonplace.model import Invitation, Member, Passkey, Person, Role, Token, now
from commonplace.store.accounts import insert_passkey, put_password
from commonplace.store.people import insert_person, insert_token

_MEMBER = """SELECT m.library_id, m.person_id, m.role, p.name, p.email
             FROM members AS m
             JOIN people AS p ON p.id = m.person_id
             WHERE m.library_id = :library_id"""
_THE_LAST = "A library needs an owner: make somebody else one first."


class Members(Table):
    @reads
    def of_library(self, tx: Tx, library_id: str) -> list[Member]:
        """Owners first, then by name."""
        found = tx.all(f"{_MEMBER} ORDER BY p.name, p.id", library_id=library_id)
        return sorted((_member(row) for row in found), key=lambda member: member.role != "owner")

    @writes
    def change_role(self, tx: Tx, library_id: str, person_id: str, role: str) -> Member:
        """Conflict: they are the last owner."""

        self._require(tx, library_id, person_id, stays_owner=role == "owner")
        tx.run(
            """UPDATE members SET role = :role
               WHERE library_id = :library_id AND person_id = :person_id""",
            role=role,
            library_id=library_id,
            person_id=person_id,
        )
        _withdraw_of(tx, library_id, person_id, Role(role))
        return _member(
            tx.one(
                f"{_MEMBER} AND m.person_id = :person_id",
                library_id=library_id,
                person_id=person_id,
            )
        )

    @writes
    def remove(self, tx: Tx, library_id: str, person_id: str) -> None:
        """Their tokens for the library are revoked with it. Conflict: they are the last owner."""

        self._require(tx, library_id, person_id, stays_owner=False)
        tx.run(
            "DELETE FROM members WHERE library_id = :library_id AND person_id = :person_id",
            library_id=library_id,
            person_id=person_id,
        )
        tx.run(
            """UPDATE tokens SET revoked_at = :at
               WHERE library_id = :library_id AND person_id = :person_id AND revoked_at IS NULL""",
            library_id=library_id,
            person_id=person_id,
            at=micros(now()),
        )
        _withdraw_of(tx, library_id, person_id, None)

    def _require(self, tx: Tx, library_id: str, person_id: str, *, stays_owner: bool) -> None:
        """That there is such a member, and an owner afterwards."""
        _take_turns(tx, library_id)
        member = tx.one(
            f"{_MEMBER} AND m.person_id = :person_id", library_id=library_id, person_id=person_id
        )
        if member is None:
            raise NotFound("Member not found")
        if (
            member["role"] == "owner"
            and not stays_owner
            and not tx.one(
                """SELECT 1 FROM members
                   WHERE library_id = :library_id AND role = 'owner'
                   AND person_id <> :person_id""",
                library_id=library_id,
                person_id=person_id,
            )
        ):
            raise Conflict(_THE_LAST)

    @writes
    def invite(self, tx: Tx, invitation: Invitation, digest: str) -> None:
        tx.run(
            """INSERT INTO invitations (library_id, id, role, email, digest, invited_by,
               created_at, expires_at)
               VALUES (:library_id, :id, :role, :email, :digest, :invited_by, :created_at,
               :expires_at)""",
            library_id=invitation.library_id,
            id=invitation.id,
            role=invitation.role,
            email=invitation.email,
            digest=digest,
            invited_by=invitation.invited_by,
            created_at=micros(invitation.created_at),
            expires_at=micros(invitation.expires_at),
        )

    @reads
    def invitations(self, tx: Tx, library_id: str) -> list[Invitation]:
        """Newest first."""
        found = tx.all(
            "SELECT * FROM invitations WHERE library_id = :library_id ORDER BY created_at DESC, id",
            library_id=library_id,
        )
        return [_invitation(row) for row in found]

    @writes
    def withdraw(self, tx: Tx, library_id: str, invitation_id: str) -> bool:
        """Whether there was one that nobody had accepted yet."""
        gone: int = tx.run(
            """DELETE FROM invitations
               WHERE library_id = :library_id AND id = :id AND accepted_at IS NULL""",
            library_id=library_id,
            id=invitation_id,
        )
        return gone > 0

    @reads
    def find_invitation(self, tx: Tx, digest: str) -> Invitation | None:
        row = tx.one("SELECT * FROM invitations WHERE digest = :digest", digest=digest)
        return _invitation(row) if row else None

    @reads
    def library_name(self, tx: Tx, library_id: str) -> str:
        row = tx.one("SELECT name FROM libraries WHERE id = :id", id=library_id)
        if row is None:
            raise NotFound("Library not found")
        return str(row["name"])

    @writes
    def rename_library(self, tx: Tx, library_id: str, name: str) -> None:
        tx.run("UPDATE libraries SET name = :name WHERE id = :id", id=library_id, name=name)

    @writes
    def accept(
        self,
        tx: Tx,
        invitation: Invitation,
        person: Person,
        token: tuple[Token, str] | None,
        *,
        new: bool,
        sign_in: str | Passkey | None = None,
    ) -> None:
        """In one transaction: the person (when `new`, with a library of their own), the membership, the token (with its
        digest) if they want one, what they sign in with (a password's hash, or a passkey of nobody yet), and the invitation is
        used up. Conflict: it is by now, or they are a member already. NameTaken: the address is known."""

        _take_turns(tx, invitation.library_id)
        at = now()
        if not tx.run(
            """UPDATE invitations SET accepted_at = :at, accepted_by = :person_id
               WHERE library_id = :library_id AND id = :id AND accepted_at IS NULL
               AND expires_at > :at""",
            at=micros(at),
            person_id=person.id,
            library_id=invitation.library_id,
            id=invitation.id,
        ):
            raise Conflict("The invitation was used or withdrawn meanwhile; ask for a new one.")
        if new:
            insert_person(tx, person)
        if isinstance(sign_in, str):
            put_password(tx, person.id, sign_in)
        elif sign_in:
            insert_passkey(tx, replace(sign_in, person_id=person.id))
        if not tx.run(
            """INSERT INTO members (library_id, person_id, role)
               VALUES (:library_id, :person_id, :role)
               ON CONFLICT DO NOTHING""",
            library_id=invitation.library_id,
            person_id=person.id,
            role=invitation.role,
        ):
            raise Conflict(
                "You are a member of this library already; an owner or admin can change your role."
            )
        if token:
            insert_token(tx, *token)


def _withdraw_of(tx: Tx, library_id: str, person_id: str, role: Role | None) -> None:
    """Open invitations that they could not give any more in this role: one of their own would bring them back."""
    if role is not Role.OWNER:
        tx.run(
            """DELETE FROM invitations
               WHERE library_id = :library_id AND invited_by = :person_id
               AND accepted_at IS NULL AND (role = 'owner' OR :rules = 0)""",
            library_id=library_id,
            person_id=person_id,
            rules=int(role is not None and role.manages_members),
        )


def _take_turns(tx: Tx, library_id: str) -> None:
    # SQLite has one writer at a time; on Postgres two owners must not demote each other at the same moment.
    if tx.engine == "postgres":
        tx.one("SELECT 1 FROM libraries WHERE id = :id FOR NO KEY UPDATE", id=library_id)


def _member(row: Any) -> Member:
    return Member(row["library_id"], row["person_id"], row["name"], row["email"], Role(row["role"]))


def _invitation(row: Any) -> Invitation:
    return Invitation(
        row["id"],
        row["library_id"],
        Role(row["role"]),
        row["email"],
        row["invited_by"],
        from_micros(row["created_at"]),
        from_micros(row["expires_at"]),
        from_optional_micros(row["accepted_at"]),
        row["accepted_by"],
    )
