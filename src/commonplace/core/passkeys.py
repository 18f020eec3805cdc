"""Passkeys: a browser or a key in the pocket proves who somebody is, and no secret ever travels."""

import secrets
from dataclasses import dataclass
from datetime import timedelta

import orjson
from webauthn import (
    generate_authentication_options,
    generate_registration_options,
    verify_authentication_response,
    verify_registration_response,
)
from webauthn.helpers import base64url_to_bytes, bytes_to_base64url, options_to_json_dict
from webauthn.helpers.exceptions import InvalidAuthenticationResponse, InvalidJSONStructure, InvalidRegistrationResponse
from webauthn.helpers.structs import (
    AuthenticatorSelectionCriteria,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from commonplace.core.access import digest
from commonplace.core.accounts import FROM_ONE_ADDRESS, Accounts, Visitor
from commonplace.errors import Invalid, NotFound, Unauthorized
from commonplace.model import Json, Passkey, Person, now
from commonplace.ports import Store

PURPOSE, LIFETIME = "passkey", timedelta(minutes=5)
_REFUSED = "The passkey was not accepted; try again, or sign in with your password."


@dataclass(frozen=True, slots=True)
class Site:
    """Where the browser believes to be: a passkey is good there and nowhere else."""

    host: str     # without its port
    origin: str


class Passkeys:
    def __init__(self, store: Store, accounts: Accounts) -> None:
        self._store = store
        self._accounts = accounts

    async def of(self, person: Person) -> list[Passkey]:
        return await self._store.accounts.passkeys(person.id)

    async def offer(self, person: Person, site: Site) -> Json:
        """What the browser needs to make a new one; the person may be one who is only about to be."""
        options = generate_registration_options(
            rp_id=site.host, rp_name="Commonplace", user_id=person.id.encode(), user_name=person.email,
            user_display_name=person.name, challenge=await self._challenge(),
            exclude_credentials=[PublicKeyCredentialDescriptor(base64url_to_bytes(known.id)) for known in await self.of(person)],
            authenticator_selection=AuthenticatorSelectionCriteria(
                resident_key=ResidentKeyRequirement.REQUIRED, user_verification=UserVerificationRequirement.PREFERRED))
        return options_to_json_dict(options)

    async def add(self, person_id: str, site: Site, credential: Json, name: str) -> Passkey:
        passkey = await self.made(person_id, site, credential, name)
        await self._store.accounts.add_passkey(passkey)
        return passkey

    async def made(self, person_id: str, site: Site, credential: Json, name: str) -> Passkey:
        """What the browser made, if it is an answer to an offer of ours; not kept yet."""
        challenge = await self._answered(credential)
        try:
            made = verify_registration_response(credential=credential, expected_challenge=challenge,
                                                expected_rp_id=site.host, expected_origin=site.origin)
        except (InvalidRegistrationResponse, InvalidJSONStructure) as error:
            raise Invalid(f"The passkey could not be added: {error}") from None
        return Passkey(bytes_to_base64url(made.credential_id), person_id, " ".join(name.split())[:100] or "Passkey",
                       made.credential_public_key, made.sign_count)

    async def remove(self, visitor: Visitor, passkey_id: str) -> None:
        if len(await self.of(visitor.person)) == 1 and not await self._accounts.has_password(visitor):
            raise Invalid("It is the only way you can sign in; choose a password first.")
        if not await self._store.accounts.drop_passkey(visitor.person.id, passkey_id):
            raise NotFound("Passkey not found")

    async def ask(self, site: Site) -> Json:
        """What the browser needs to let somebody choose one."""
        return options_to_json_dict(generate_authentication_options(rp_id=site.host, challenge=await self._challenge()))

    async def sign_in(self, site: Site, credential: Json, *, address: str, about: str) -> str:
        await self._accounts.throttle(f"signin-from:{address}", FROM_ONE_ADDRESS)
        challenge = await self._answered(credential)
        known = await self._store.accounts.passkey(str(credential.get("id")))
        if known is None:
            raise Unauthorized("This server does not know that passkey.")
        try:
            proof = verify_authentication_response(
                credential=credential, expected_challenge=challenge, expected_rp_id=site.host, expected_origin=site.origin,
                credential_public_key=known.public_key, credential_current_sign_count=known.uses)
        except (InvalidAuthenticationResponse, InvalidJSONStructure):
            raise Unauthorized(_REFUSED) from None
        await self._store.accounts.used_passkey(known.id, proof.new_sign_count)
        return await self._accounts.enter(known.person_id, about)

    async def _challenge(self) -> bytes:
        challenge = secrets.token_bytes(32)
        await self._store.accounts.promise(digest(bytes_to_base64url(challenge)), PURPOSE, None, now() + LIFETIME)
        return challenge

    async def _answered(self, credential: Json) -> bytes:
        """The challenge that the answer is to, which is spent with it."""
        try:
            said = orjson.loads(base64url_to_bytes(credential["response"]["clientDataJSON"]))
            challenge = str(said["challenge"])
            good, _ = await self._store.accounts.redeem(digest(challenge), PURPOSE)
            if good:
                return base64url_to_bytes(challenge)
        except (KeyError, TypeError, ValueError):
            raise Invalid("That is not a passkey's answer.") from None
        raise Unauthorized("That took too long; try again.")
