"""Who belongs to the library, who is asked to, and turning from one library to another."""

from starlette.responses import Response

from commonplace.core.people.client_setup import address
from commonplace.core.people.members import INVITATION_DAYS
from commonplace.errors import CommonplaceError, Invalid, NotFound
from commonplace.interfaces.http.gate import STATUS
from commonplace.interfaces.web.request import Visit
from commonplace.interfaces.web.route import get, post
from commonplace.model import Invitation, Role, now

ROLES = {
    Role.VIEWER: "reads",
    Role.MEMBER: "reads and writes",
    Role.ADMIN: "also says who belongs here",
    Role.OWNER: "may do everything",
}
TERMS = {"1": "a day", str(INVITATION_DAYS): "a week", "30": "a month", "90": "three months"}


async def show(visit: Visit) -> Response:
    return await _show(visit)


async def _show(visit: Visit, made: tuple[Invitation, str] | None = None) -> Response:
    services, me = visit.services, visit.known
    members = await services.members.all(visit.caller)
    asked = await services.members.invitations(visit.caller) if me.manages_members else []
    base = address(services.settings) if services.settings.public_url else visit.site.origin
    response = visit.page(
        "people.html",
        members=members,
        invitations=[each for each in asked if each.accepted_at is None],
        names={member.person_id: member.name for member in members},
        now=now(),
        roles=ROLES,
        terms=TERMS,
        default_term=str(INVITATION_DAYS),
        made=(made[0], f"{base}/join/{made[1]}") if made else None,
        mine=visit.caller.library_id == me.person.id,
        gives=[role for role in ROLES if role is not Role.OWNER or me.library.role is Role.OWNER],
    )
    response.headers["Cache-Control"] = "no-store"
    return response


async def invite(visit: Visit) -> Response:
    form = await visit.form()
    days, email = form.get("days", str(INVITATION_DAYS)), form.get("email", "").strip()
    if days not in TERMS:
        raise Invalid("Choose how long the invitation is good for.")
    if email and ("@" not in email or len(email) > 200):
        raise Invalid("That is no e-mail address; leave it empty to invite whoever has the link.")
    role = _role(form.get("role", ""))
    return await _show(
        visit, await visit.services.members.invite(visit.caller, role, email or None, int(days))
    )


async def withdraw(visit: Visit) -> Response:
    await visit.services.members.withdraw(visit.caller, visit.request.path_params["invitation_id"])
    return visit.go("/people", "The invitation is withdrawn: its link leads nowhere now.")


async def change_role(visit: Visit) -> Response:
    role = _role((await visit.form()).get("role", ""))
    member = await visit.services.members.change_role(
        visit.caller, visit.request.path_params["person_id"], role
    )
    return visit.go("/people", f"{member.name} is {member.role} now.")


async def remove(visit: Visit) -> Response:
    await visit.services.members.remove(visit.caller, visit.request.path_params["person_id"])
    return visit.go(
        "/people", "They are out, and so are their tokens for this library. What they added stays."
    )


async def leave(visit: Visit) -> Response:
    name = visit.known.library.name
    await visit.services.members.leave(visit.caller)
    return visit.go("/", f"You have left “{name}”; this is your own library.")


async def rename(visit: Visit) -> Response:
    await visit.services.members.rename_library(visit.caller, (await visit.form()).get("name", ""))
    return visit.go("/people", "The library has a new name.")


async def turn_to(visit: Visit) -> Response:
    library = await visit.services.accounts.switch_library(
        visit.known, (await visit.form()).get("library", "")
    )
    return visit.go("/", f"You are in “{library.name}” now.")


def _role(text: str) -> Role:
    if text not in {*Role}:
        raise Invalid("Choose a role.")
    return Role(text)


# -- accepting


async def show_invitation(visit: Visit) -> Response:
    return await _invitation(visit)


async def _invitation(
    visit: Visit, status: int = 200, error: str = "", name: str = "", email: str = ""
) -> Response:
    secret = visit.request.path_params["secret"]
    asked = await visit.services.invitations.asked(secret)
    already = visit.visitor is not None and any(
        each.library_id == asked.invitation.library_id for each in visit.visitor.libraries
    )
    response = visit.page(
        "join.html",
        status,
        asked=asked,
        does=ROLES[asked.invitation.role],
        error=error,
        name=name,
        email=email or asked.invitation.email or "",
        already=already,
        secret=secret,
    )
    response.headers["Cache-Control"] = "no-store"
    return response


async def accept(visit: Visit) -> Response:
    """As who they are; or with a name, an address and a password, as somebody new."""
    secret, form, joining = (
        visit.request.path_params["secret"],
        await visit.form(),
        visit.services.invitations,
    )
    if visit.visitor is not None:
        done = await joining.as_known(visit.visitor, secret)
        return visit.go("/", f"Welcome: you are {done.role} of this library now.")
    name, email = form.get("name", ""), form.get("email", "")
    try:
        await visit.enter(
            await joining.with_password(
                secret, name, email, form.get("password", ""), about=visit.browser
            )
        )
    except NotFound:
        raise
    except CommonplaceError as error:
        return await _invitation(visit, STATUS.get(type(error), 500), error.message, name, email)
    return visit.go("/", "Welcome. You also have a library of your own; the names are at the top.")


async def offer_passkey(visit: Visit) -> Response:
    body = await visit.json()
    return visit.json_answer(
        await visit.services.invitations.offer_passkey(
            visit.request.path_params["secret"],
            str(body.get("name", "")),
            str(body.get("email", "")),
            visit.site,
        )
    )


async def accept_by_passkey(visit: Visit) -> Response:
    body = await visit.json()
    credential = body.get("credential")
    if not isinstance(credential, dict):
        raise Invalid("`credential` is required.")
    await visit.enter(
        await visit.services.invitations.with_passkey(
            visit.request.path_params["secret"],
            str(body.get("name", "")),
            str(body.get("email", "")),
            visit.site,
            credential,
            about=visit.browser,
        )
    )
    return visit.json_answer({"ok": True})


DOORS = (
    get("/people", show),
    post("/people", invite),
    post("/people/invitations/{invitation_id}/withdraw", withdraw),
    post("/people/{person_id}/role", change_role),
    post("/people/{person_id}/remove", remove),
    post("/leave", leave),
    post("/library", turn_to),
    post("/library/name", rename),
    get("/join/{secret}", show_invitation, open=True),
    post("/join/{secret}", accept, open=True),
    post("/join/{secret}/offer", offer_passkey, open=True),
    post("/join/{secret}/passkey", accept_by_passkey, open=True),
)
