"""OAuth: registered clients, and the codes, access tokens and refresh tokens of grants."""

from collections.abc import Callable, Sequence
from datetime import timedelta

from commonplace.database import Table, Tx, reads, reads_inline, writes
from commonplace.model import (
    OAUTH,
    ClientSource,
    OAuthClient,
    OAuthSecret,
    SecretKind,
    Token,
    now,
)
from commonplace.store import rows
from commonplace.store.people.people import grants_of, insert_token, revoke_token, token_by_id

GRACE = timedelta(seconds=60)  # in which a used refresh token gives its successor again
CODES_KEPT = timedelta(days=1)  # after their use, so that a second one is noticed
NEVER_USED, UNUSED = timedelta(hours=24), timedelta(days=180)  # until clients are deleted


class OAuth(Table):
    # -- clients

    @writes
    def add_client(self, tx: Tx, client: OAuthClient) -> None:
        rows.insert(tx, "oauth_clients", client)

    @reads
    def client(self, tx: Tx, client_id: str) -> OAuthClient | None:
        return rows.first(
            tx, OAuthClient, "SELECT * FROM oauth_clients WHERE id = :id", id=client_id
        )

    @reads
    def clients(self, tx: Tx) -> list[OAuthClient]:
        return rows.every(tx, OAuthClient, "SELECT * FROM oauth_clients ORDER BY created_at, id")

    @writes
    def delete_client(self, tx: Tx, client_id: str) -> bool:
        """Delete a client and revoke its grants. Return whether it was there."""
        tx.run(
            """UPDATE tokens SET revoked_at = :at
               WHERE kind = :kind AND client_id = :id AND revoked_at IS NULL""",
            at=now(),
            kind=OAUTH,
            id=client_id,
        )
        return tx.run("DELETE FROM oauth_clients WHERE id = :id", id=client_id) > 0

    # -- grants and their secrets

    @writes
    def grant(self, tx: Tx, grant: Token, code: OAuthSecret) -> None:
        insert_token(tx, grant, None)
        rows.insert(tx, "oauth_secrets", code)

    @reads
    def grants(self, tx: Tx, person_id: str) -> list[Token]:
        return grants_of(tx, person_id)

    @reads_inline
    def secret(self, tx: Tx, digest: str) -> tuple[OAuthSecret, Token] | None:
        """Return a secret and its grant, whether or not they are still good."""
        return tx.recall(_secret, digest)

    @writes
    def redeem(self, tx: Tx, digest: str, issued: Sequence[OAuthSecret]) -> bool:
        """Use a code up, and store what it gives. False: it had been used, so that now its grant
        is revoked."""
        at = now()
        used = tx.run(
            """UPDATE oauth_secrets SET used_at = :at, expires_at = :kept
               WHERE digest = :digest AND used_at IS NULL""",
            at=at,
            kept=at + CODES_KEPT,
            digest=digest,
        )
        grant = issued[0]
        if not used:
            revoke_token(tx, grant.library_id, grant.token_id)
            return False
        for each in issued:
            rows.insert(tx, "oauth_secrets", each)
        _use_client(tx, grant)
        return True

    @writes
    def rotate(
        self,
        tx: Tx,
        digest: str,
        access: OAuthSecret,
        salt: str,
        successor: Callable[[str], OAuthSecret],
    ) -> str | None:
        """Use a refresh token up, and store its `successor` by a salt and an access token.

        Return the salt, which is the first use's if that is not long ago. None: it is, so that now
        the grant is revoked.
        """
        at = now()
        used = tx.run(
            """UPDATE oauth_secrets SET used_at = :at, salt = :salt
               WHERE digest = :digest AND used_at IS NULL""",
            at=at,
            salt=salt,
            digest=digest,
        )
        if used:
            rows.insert(tx, "oauth_secrets", successor(salt))
            _use_client(tx, access)
        else:
            row = tx.one(
                "SELECT salt FROM oauth_secrets WHERE digest = :digest AND used_at > :ago",
                digest=digest,
                ago=at - GRACE,
            )
            if row is None or row["salt"] is None:
                revoke_token(tx, access.library_id, access.token_id)
                return None
            salt = row["salt"]
        rows.insert(tx, "oauth_secrets", access)
        return salt

    @writes
    def forget(self, tx: Tx, digest: str) -> None:
        """Delete one secret."""
        tx.run("DELETE FROM oauth_secrets WHERE digest = :digest", digest=digest)

    @writes
    def tidy(self, tx: Tx) -> None:
        """Delete grants that no client came for, expired secrets, and unused clients. Grants whose
        secrets have all expired end."""
        at = now()
        tx.run(
            """DELETE FROM tokens WHERE kind = :oauth AND EXISTS (
                 SELECT 1 FROM oauth_secrets AS s
                 WHERE s.library_id = tokens.library_id AND s.token_id = tokens.id
                 AND s.kind = :code AND s.used_at IS NULL AND s.expires_at < :at)""",
            oauth=OAUTH,
            code=SecretKind.CODE,
            at=at,
        )
        tx.run("DELETE FROM oauth_secrets WHERE expires_at < :at", at=at)
        tx.run(
            """UPDATE tokens SET expires_at = :at
               WHERE kind = :oauth AND revoked_at IS NULL AND expires_at > :at AND NOT EXISTS (
                 SELECT 1 FROM oauth_secrets AS s
                 WHERE s.library_id = tokens.library_id AND s.token_id = tokens.id)""",
            oauth=OAUTH,
            at=at,
        )
        tx.run("UPDATE oauth_secrets SET salt = NULL WHERE used_at < :ago", ago=at - GRACE)
        tx.run(
            """DELETE FROM oauth_clients WHERE source = :source
               AND (used_at < :unused OR (used_at IS NULL AND created_at < :never))""",
            source=ClientSource.REGISTERED,
            unused=at - UNUSED,
            never=at - NEVER_USED,
        )


def _secret(tx: Tx, digest: str) -> tuple[OAuthSecret, Token] | None:
    found = rows.first(
        tx, OAuthSecret, "SELECT * FROM oauth_secrets WHERE digest = :digest", digest=digest
    )
    grant = token_by_id(tx, found.library_id, found.token_id) if found else None
    return (found, grant) if found and grant else None


def _use_client(tx: Tx, secret: OAuthSecret) -> None:
    tx.run(
        """UPDATE oauth_clients SET used_at = :at WHERE id = (
             SELECT client_id FROM tokens WHERE library_id = :library_id AND id = :id)""",
        at=now(),
        library_id=secret.library_id,
        id=secret.token_id,
    )
