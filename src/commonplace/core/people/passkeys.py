"""Passkeys: sign in without a shared secret.

The webauthn package is imported on use: that takes longer than most commands run.
"""

import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from datetime import timedelta

import orjson

from commonplace.core.people.accounts import Accounts, Visitor
from commonplace.core.people.authorization import digest
from commonplace.errors import Invalid, NotFound, Unauthorized
from commonplace.model import Json, Passkey, Person, now
from commonplace.store import Store

PURPOSE, LIFETIME = "passkey", timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Site:
    """The site as the browser knows it. Passkeys are bound to it."""

    host: str  # without its port
    origin: str


@dataclass(eq=False)
class Passkeys:
    _store: Store
    _accounts: Accounts

    async def of(self, person: Person) -> list[Passkey]:
        return await self._store.accounts.passkeys(person.id)

    async def registration_options(self, person: Person, site: Site) -> Json:
        """Return the options for creating a passkey. The person may not be stored yet."""
        from webauthn import generate_registration_options, helpers
        from webauthn.helpers import structs

        return helpers.options_to_json_dict(
            generate_registration_options(
                rp_id=site.host,
                rp_name="Commonplace",
                user_id=person.id.encode(),
                user_name=person.email,
                user_display_name=person.name,
                challenge=await self._challenge(),
                exclude_credentials=[
                    structs.PublicKeyCredentialDescriptor(helpers.base64url_to_bytes(one.id))
                    for one in await self.of(person)
                ],
                authenticator_selection=structs.AuthenticatorSelectionCriteria(
                    resident_key=structs.ResidentKeyRequirement.REQUIRED,
                    user_verification=structs.UserVerificationRequirement.PREFERRED,
                ),
            )
        )

    async def add(self, person_id: str, site: Site, credential: Json, name: str) -> Passkey:
        passkey = await self.verify_registration(person_id, site, credential, name)
        await self._store.accounts.add_passkey(passkey)
        return passkey

    async def verify_registration(
        self, person_id: str, site: Site, credential: Json, name: str
    ) -> Passkey:
        """Verify a new passkey against a challenge of ours. It is not stored yet."""
        from webauthn import helpers, verify_registration_response
        from webauthn.helpers import exceptions

        challenge = await self._answered(credential)
        try:
            new = verify_registration_response(
                credential=credential,
                expected_challenge=challenge,
                expected_rp_id=site.host,
                expected_origin=site.origin,
            )
        except (
            exceptions.InvalidRegistrationResponse,
            exceptions.InvalidJSONStructure,
        ) as error:
            raise Invalid(f"The passkey could not be added: {error}") from None
        return Passkey(
            helpers.bytes_to_base64url(new.credential_id),
            person_id,
            " ".join(name.split())[:100] or "Passkey",
            new.credential_public_key,
            new.sign_count,
        )

    async def remove(self, visitor: Visitor, passkey_id: str) -> None:
        if len(await self.of(visitor.person)) == 1 and not await self._accounts.has_password(
            visitor
        ):
            raise Invalid("This passkey is your only way to sign in. Set a password first.")
        if not await self._store.accounts.delete_passkey(visitor.person.id, passkey_id):
            raise NotFound("Passkey not found")

    async def authentication_options(self, site: Site) -> Json:
        """Return the options for choosing a passkey."""
        from webauthn import generate_authentication_options, helpers

        return helpers.options_to_json_dict(
            generate_authentication_options(rp_id=site.host, challenge=await self._challenge())
        )

    async def sign_in(
        self, site: Site, credential: Json, *, address: str, about: str, device: str | None = None
    ) -> str:
        from webauthn import verify_authentication_response
        from webauthn.helpers import exceptions

        known = await self._store.accounts.passkey(str(credential.get("id")))
        await self._accounts.limit_attempts(known.person_id if known else "", address, device)
        challenge = await self._answered(credential)
        if known is None:
            raise Unauthorized("This passkey is unknown to the server.")
        try:
            proof = verify_authentication_response(
                credential=credential,
                expected_challenge=challenge,
                expected_rp_id=site.host,
                expected_origin=site.origin,
                credential_public_key=known.public_key,
                credential_current_sign_count=known.uses,
            )
        except (exceptions.InvalidAuthenticationResponse, exceptions.InvalidJSONStructure):
            raise Unauthorized(
                "The passkey was not accepted. Try again, or sign in with your password."
            ) from None
        await self._store.accounts.record_passkey_use(known.id, proof.new_sign_count)
        return await self._accounts.open_session(known.person_id, about)

    async def _challenge(self) -> bytes:
        challenge = secrets.token_bytes(32)
        said = urlsafe_b64encode(challenge).decode().rstrip("=")
        await self._store.accounts.add_secret(digest(said), PURPOSE, None, now() + LIFETIME)
        return challenge

    async def _answered(self, credential: Json) -> bytes:
        """Return the challenge that a response answers, and use it up."""
        try:
            challenge = str(
                orjson.loads(_decoded(credential["response"]["clientDataJSON"]))["challenge"]
            )
            good, _ = await self._store.accounts.redeem_secret(digest(challenge), PURPOSE)
            if good:
                return _decoded(challenge)
        except (KeyError, TypeError, ValueError):
            raise Invalid("This is not a passkey response.") from None
        raise Unauthorized("The passkey request expired. Try again.")


def _decoded(text: str) -> bytes:
    # WebAuthn omits the padding; extra padding is harmless
    return urlsafe_b64decode(f"{text}===")
