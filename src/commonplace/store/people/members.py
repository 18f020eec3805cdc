"""Members of a library and invitations to it. Changes lock the library."""

from dataclasses import replace
from typing import Any

from commonplace.database import Table, Tx, reads, writes
from commonplace.errors import Conflict, NotFound
from commonplace.model import Invitation, Member, Passkey, Person, Role, Token, now
from commonplace.store import rows
from commonplace.store.people import accounts, directory, people

_MEMBERS = """SELECT m.library_id, m.person_id, m.role, p.name, p.email FROM members AS m
              JOIN people AS p ON p.id = m.person_id WHERE m.library_id = :library_id"""


class Members(Table):
    @reads
    def of_library(self, tx: Tx, library_id: str) -> list[Member]:
        """Return owners first, then the others by name."""
        return rows.every(
            tx,
            Member,
            f"{_MEMBERS} ORDER BY m.role <> 'owner', p.name, p.id",
            library_id=library_id,
        )

    @writes
    def change_role(self, tx: Tx, library_id: str, person_id: str, role: str) -> Member:
        """Change a member's role. Conflict: they are the last owner."""
        member = _require(tx, library_id, person_id, stays_owner=role == "owner")
        tx.run(
            """UPDATE members SET role = :role
               WHERE library_id = :library_id AND person_id = :person_id""",
            role=role,
            library_id=library_id,
            person_id=person_id,
        )
        _cancel_invitations(tx, library_id, person_id, Role(role))
        return replace(member, role=Role(role))

    @writes
    def remove(self, tx: Tx, library_id: str, person_id: str) -> None:
        """Remove a member and revoke their tokens. Conflict: they are the last owner."""
        _require(tx, library_id, person_id, stays_owner=False)
        key = {"library_id": library_id, "person_id": person_id}
        tx.run(
            "DELETE FROM members WHERE library_id = :library_id AND person_id = :person_id", **key
        )
        people.revoke_tokens(tx, library_id, "person_id = :person_id", person_id=person_id)
        _cancel_invitations(tx, library_id, person_id, None)

    @writes
    def invite(self, tx: Tx, invitation: Invitation, digest: str) -> None:
        directory.put_names(tx, invitation.library_id, [digest])
        rows.insert(tx, "invitations", invitation, digest=digest)

    @reads
    def invitations(self, tx: Tx, library_id: str) -> list[Invitation]:
        """Return invitations, newest first."""
        return rows.every(
            tx,
            Invitation,
            "SELECT * FROM invitations WHERE library_id = :id ORDER BY created_at DESC, id",
            id=library_id,
        )

    @writes
    def withdraw(self, tx: Tx, library_id: str, invitation_id: str) -> bool:
        """Delete an invitation; return whether there was one that nobody had accepted."""
        return _delete_invitations(tx, library_id, "id = :id", id=invitation_id) > 0

    @reads
    def find_invitation(self, tx: Tx, digest: str) -> Invitation | None:
        return rows.first(
            tx,
            Invitation,
            "SELECT * FROM invitations WHERE library_id = :library_id AND digest = :digest",
            library_id=directory.find_library(tx, digest),
            digest=digest,
        )

    @reads
    def library_name(self, tx: Tx, library_id: str) -> str:
        name = tx.scalar("SELECT name FROM libraries WHERE id = :id", id=library_id)
        if name is None:
            raise NotFound("Library not found")
        return str(name)

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
        """Use up an invitation: add the membership and, if given, a token with its digest.

        A `new` person is created with a library of their own. `sign_in` is a password's hash or a
        passkey that belongs to nobody yet. Conflict: the invitation was used, or the person is a
        member. NameTaken: the email is known.
        """
        people.lock_library(tx, invitation.library_id)
        if not tx.run(
            """UPDATE invitations SET accepted_at = :at, accepted_by = :person_id
               WHERE library_id = :library_id AND id = :id AND accepted_at IS NULL
               AND expires_at > :at""",
            at=now(),
            person_id=person.id,
            library_id=invitation.library_id,
            id=invitation.id,
        ):
            raise Conflict("The invitation was already used or withdrawn. Ask for a new one.")
        if new:
            people.insert_person(tx, person)
        if isinstance(sign_in, str):
            accounts.put_password(tx, person.id, sign_in)
        elif sign_in:
            rows.insert(tx, "passkeys", replace(sign_in, person_id=person.id))
        if not tx.run(
            """INSERT INTO members (library_id, person_id, role)
               VALUES (:library_id, :person_id, :role) ON CONFLICT DO NOTHING""",
            library_id=invitation.library_id,
            person_id=person.id,
            role=invitation.role,
        ):
            raise Conflict(
                "You are a member of this library already; an owner or admin can change your role."
            )
        if token:
            people.insert_token(tx, *token)


def _require(tx: Tx, library_id: str, person_id: str, *, stays_owner: bool) -> Member:
    """Return the member. NotFound: there is none. Conflict: no owner would be left."""
    people.lock_library(tx, library_id)
    key = {"library_id": library_id, "person_id": person_id}
    member = rows.require(tx, Member, f"{_MEMBERS} AND m.person_id = :person_id", **key)
    others = """SELECT 1 FROM members WHERE library_id = :library_id AND role = 'owner'
                AND person_id <> :person_id"""
    if member.role is Role.OWNER and not stays_owner and not tx.one(others, **key):
        raise Conflict("A library needs an owner. Make another member an owner first.")
    return member


def _cancel_invitations(tx: Tx, library_id: str, person_id: str, role: Role | None) -> None:
    """Delete a person's open invitations that their new role may not give.

    With one of their own they could return.
    """
    if role is not Role.OWNER:
        _delete_invitations(
            tx,
            library_id,
            "invited_by = :person_id AND (role = 'owner' OR :may_invite = 0)",
            person_id=person_id,
            may_invite=int(role is not None and role.manages_members),
        )


def _delete_invitations(tx: Tx, library_id: str, condition: str, **values: Any) -> int:
    """Delete invitations that nobody has accepted; return how many."""
    digests = tx.column(
        f"""DELETE FROM invitations WHERE library_id = :library_id AND accepted_at IS NULL
            AND {condition} RETURNING digest""",
        library_id=library_id,
        **values,
    )
    directory.drop_names(tx, library_id, digests)
    return len(digests)
