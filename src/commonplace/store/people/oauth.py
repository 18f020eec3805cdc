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
from commonplace.store.people import directory
from commonplace.store.people.people import (
    grants_of,
    insert_token,
    revoke_token,
    revoke_tokens,
    token_by_id,
)

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
        of_client = "kind = :kind AND client_id = :client_id"
        values = {"kind": OAUTH, "client_id": client_id}
        for library_id in tx.column(
            f"SELECT DISTINCT library_id FROM tokens WHERE {of_client}", **values
        ):
            revoke_tokens(tx, library_id, of_client, **values)
        return tx.run("DELETE FROM oauth_clients WHERE id = :id", id=client_id) > 0

    # -- grants and their secrets

    @writes
    def grant(self, tx: Tx, grant: Token, code: OAuthSecret) -> None:
        insert_token(tx, grant, None)
        _insert_secret(tx, code)

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
        at, grant = now(), issued[0]
        used = tx.run(
            """UPDATE oauth_secrets SET used_at = :at, expires_at = :kept
               WHERE library_id = :library_id AND digest = :digest AND used_at IS NULL""",
            at=at,
            kept=at + CODES_KEPT,
            library_id=grant.library_id,
            digest=digest,
        )
        if not used:
            revoke_token(tx, grant.library_id, grant.token_id)
            return False
        for each in issued:
            _insert_secret(tx, each)
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
               WHERE library_id = :library_id AND digest = :digest AND used_at IS NULL""",
            at=at,
            salt=salt,
            library_id=access.library_id,
            digest=digest,
        )
        if used:
            _insert_secret(tx, successor(salt))
            _use_client(tx, access)
        else:
            row = tx.one(
                """SELECT salt FROM oauth_secrets
                   WHERE library_id = :library_id AND digest = :digest AND used_at > :ago""",
                library_id=access.library_id,
                digest=digest,
                ago=at - GRACE,
            )
            if row is None or row["salt"] is None:
                revoke_token(tx, access.library_id, access.token_id)
                return None
            salt = row["salt"]
        _insert_secret(tx, access)
        return salt

    @writes
    def forget(self, tx: Tx, digest: str) -> None:
        """Delete one secret."""
        if library_id := directory.find_library(tx, digest):
            tx.run(
                "DELETE FROM oauth_secrets WHERE library_id = :library_id AND digest = :digest",
                library_id=library_id,
                digest=digest,
            )
            directory.drop_names(tx, library_id, [digest])

    @writes
    def tidy(self, tx: Tx) -> None:
        """Delete grants that no client came for, expired secrets, and unused clients. Grants whose
        secrets have all expired end."""
        at = now()
        unclaimed = tx.tuples(
            """SELECT DISTINCT library_id, token_id FROM oauth_secrets
               WHERE expires_at < :at AND kind = :code AND used_at IS NULL""",
            code=SecretKind.CODE,
            at=at,
        )
        for library_id, digest in tx.tuples(
            "DELETE FROM oauth_secrets WHERE expires_at < :at RETURNING library_id, digest", at=at
        ):
            directory.drop_names(tx, library_id, [digest])
        for library_id, token_id in unclaimed:
            tx.run(
                "DELETE FROM tokens WHERE library_id = :library_id AND id = :id",
                library_id=library_id,
                id=token_id,
            )
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


def _insert_secret(tx: Tx, secret: OAuthSecret) -> None:
    directory.put_names(tx, secret.library_id, [secret.digest])
    rows.insert(tx, "oauth_secrets", secret)


def _secret(tx: Tx, digest: str) -> tuple[OAuthSecret, Token] | None:
    found = rows.first(
        tx,
        OAuthSecret,
        "SELECT * FROM oauth_secrets WHERE library_id = :library_id AND digest = :digest",
        library_id=directory.find_library(tx, digest),
        digest=digest,
    )
    grant = token_by_id(tx, found.library_id, found.token_id) if found else None
    return (found, grant) if found and grant else None


def _use_client(tx: Tx, secret: OAuthSecret) -> None:
    client_id = tx.scalar(
        "SELECT client_id FROM tokens WHERE library_id = :library_id AND id = :id",
        library_id=secret.library_id,
        id=secret.token_id,
    )
    tx.run("UPDATE oauth_clients SET used_at = :at WHERE id = :id", at=now(), id=client_id)
