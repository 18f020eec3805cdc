"""The two WebAuthn ceremonies: registration and authentication.

Separate from passkeys.py, which imports it on use: the webauthn package takes longer to import than
most commands run.
"""

from collections.abc import Iterable

from webauthn import (
    generate_authentication_options,
    generate_registration_options,
    verify_authentication_response,
    verify_registration_response,
)
from webauthn.helpers import base64url_to_bytes, bytes_to_base64url, options_to_json_dict
from webauthn.helpers.exceptions import (
    InvalidAuthenticationResponse,
    InvalidJSONStructure,
    InvalidRegistrationResponse,
)
from webauthn.helpers.structs import (
    AuthenticatorSelectionCriteria,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from commonplace.errors import Invalid, Unauthorized
from commonplace.model import Json, Passkey, Person

_REFUSED = "The passkey was not accepted. Try again, or sign in with your password."


def registration_options(
    person: Person, host: str, challenge: bytes, known: Iterable[Passkey]
) -> Json:
    return options_to_json_dict(
        generate_registration_options(
            rp_id=host,
            rp_name="Commonplace",
            user_id=person.id.encode(),
            user_name=person.email,
            user_display_name=person.name,
            challenge=challenge,
            exclude_credentials=[
                PublicKeyCredentialDescriptor(base64url_to_bytes(one.id)) for one in known
            ],
            authenticator_selection=AuthenticatorSelectionCriteria(
                resident_key=ResidentKeyRequirement.REQUIRED,
                user_verification=UserVerificationRequirement.PREFERRED,
            ),
        )
    )


def verify_registration(
    person_id: str, name: str, host: str, origin: str, challenge: bytes, credential: Json
) -> Passkey:
    try:
        new = verify_registration_response(
            credential=credential,
            expected_challenge=challenge,
            expected_rp_id=host,
            expected_origin=origin,
        )
    except (InvalidRegistrationResponse, InvalidJSONStructure) as error:
        raise Invalid(f"The passkey could not be added: {error}") from None
    return Passkey(
        bytes_to_base64url(new.credential_id),
        person_id,
        name,
        new.credential_public_key,
        new.sign_count,
    )


def authentication_options(host: str, challenge: bytes) -> Json:
    return options_to_json_dict(generate_authentication_options(rp_id=host, challenge=challenge))


def verify_authentication(
    known: Passkey, host: str, origin: str, challenge: bytes, credential: Json
) -> int:
    """Verify a sign-in and return the passkey's new use count."""
    try:
        proof = verify_authentication_response(
            credential=credential,
            expected_challenge=challenge,
            expected_rp_id=host,
            expected_origin=origin,
            credential_public_key=known.public_key,
            credential_current_sign_count=known.uses,
        )
    except (InvalidAuthenticationResponse, InvalidJSONStructure):
        raise Unauthorized(_REFUSED) from None
    return proof.new_sign_count
