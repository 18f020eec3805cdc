"""Members of the library, invitations, and switching between libraries."""

from starlette.responses import JSONResponse, Response

from commonplace.core.people.members import INVITATION_DAYS
from commonplace.errors import CommonplaceError, Invalid, NotFound
from commonplace.interfaces.http.gate import STATUS
from commonplace.interfaces.web.request import WebRequest
from commonplace.interfaces.web.route import get, post
from commonplace.model import Invitation, Role, now

ROLES = {
    Role.VIEWER: "reads",
    Role.MEMBER: "reads and writes",
    Role.ADMIN: "also says who belongs here",
    Role.OWNER: "may do everything",
}
TERMS = {"1": "a day", str(INVITATION_DAYS): "a week", "30": "a month", "90": "three months"}


async def show(request: WebRequest, made: tuple[Invitation, str] | None = None) -> Response:
    services, me = request.services, request.user
    members = await services.members.all(request.caller)
    asked = await services.members.invitations(request.caller) if me.manages_members else []
    return request.page(
        "people.html",
        no_store=True,
        members=members,
        invitations=[each for each in asked if each.accepted_at is None],
        names={member.person_id: member.name for member in members},
        now=now(),
        roles=ROLES,
        terms=TERMS,
        default_term=str(INVITATION_DAYS),
        made=(made[0], f"{request.base_url}/join/{made[1]}") if made else None,
        mine=request.caller.library_id == me.person.id,
        gives=[role for role in ROLES if role is not Role.OWNER or me.library.role is Role.OWNER],
    )


async def invite(request: WebRequest) -> Response:
    days, email = (
        request.form.get("days", str(INVITATION_DAYS)),
        request.form.get("email", "").strip(),
    )
    if days not in TERMS:
        raise Invalid("Choose how long the invitation is good for.")
    if email and ("@" not in email or len(email) > 200):
        raise Invalid("That is no e-mail address; leave it empty to invite whoever has the link.")
    return await show(
        request,
        await request.services.members.invite(
            request.caller, _role(request), email or None, int(days)
        ),
    )


async def withdraw(request: WebRequest) -> Response:
    await request.services.members.withdraw(request.caller, request.path("invitation_id"))
    return request.redirect("/people", "The invitation is withdrawn: its link leads nowhere now.")


async def change_role(request: WebRequest) -> Response:
    member = await request.services.members.change_role(
        request.caller, request.path("person_id"), _role(request)
    )
    return request.redirect("/people", f"{member.name} is {member.role} now.")


async def remove(request: WebRequest) -> Response:
    await request.services.members.remove(request.caller, request.path("person_id"))
    return request.redirect(
        "/people", "They are out, and so are their tokens for this library. What they added stays."
    )


async def leave(request: WebRequest) -> Response:
    name = request.user.library.name
    await request.services.members.leave(request.caller)
    return request.redirect("/", f"You have left “{name}”; this is your own library.")


async def rename(request: WebRequest) -> Response:
    await request.services.members.rename_library(request.caller, request.form.get("name", ""))
    return request.redirect("/people", "The library has a new name.")


async def turn_to(request: WebRequest) -> Response:
    library = await request.services.accounts.switch_library(
        request.user, request.form.get("library", "")
    )
    return request.redirect("/", f"You are in “{library.name}” now.")


def _role(request: WebRequest) -> Role:
    text = request.form.get("role", "")
    if text not in {*Role}:
        raise Invalid("Choose a role.")
    return Role(text)


# -- accepting


async def show_invitation(
    request: WebRequest, status: int = 200, error: str = "", name: str = "", email: str = ""
) -> Response:
    secret = request.path("secret")
    asked = await request.services.members.find_invitation(secret)
    return request.page(
        "join.html",
        status,
        no_store=True,
        asked=asked,
        does=ROLES[asked.invitation.role],
        error=error,
        name=name,
        email=email or asked.invitation.email or "",
        already=request.visitor is not None
        and any(
            each.library_id == asked.invitation.library_id for each in request.visitor.libraries
        ),
        secret=secret,
    )


async def accept(request: WebRequest) -> Response:
    """Accept as the signed-in person, or as a new one with a name, email and password."""
    secret, form, joining = (
        request.path("secret"),
        request.form,
        request.services.invitations,
    )
    if request.visitor is not None:
        done = await joining.accept_as_visitor(request.visitor, secret)
        return request.redirect("/", f"Welcome: you are {done.role} of this library now.")
    name, email = form.get("name", ""), form.get("email", "")
    try:
        await request.start_session(
            await joining.accept_with_password(
                secret, name, email, form.get("password", ""), about=request.browser
            )
        )
    except NotFound:
        raise
    except CommonplaceError as error:
        return await show_invitation(
            request, STATUS.get(type(error), 500), error.message, name, email
        )
    return request.redirect(
        "/", "Welcome. You also have a library of your own; the names are at the top."
    )


async def offer_passkey(request: WebRequest) -> Response:
    body = await request.json()
    return JSONResponse(
        await request.services.invitations.offer_passkey(
            request.path("secret"),
            str(body.get("name", "")),
            str(body.get("email", "")),
            request.site,
        )
    )


async def accept_by_passkey(request: WebRequest) -> Response:
    body, credential = await request.passkey()
    await request.start_session(
        await request.services.invitations.accept_with_passkey(
            request.path("secret"),
            str(body.get("name", "")),
            str(body.get("email", "")),
            request.site,
            credential,
            about=request.browser,
        )
    )
    return JSONResponse({"ok": True})


ROUTES = (
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
