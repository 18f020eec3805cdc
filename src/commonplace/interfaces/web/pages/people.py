"""Members of the library, invitations, and switching between libraries."""

from starlette.responses import JSONResponse, Response

from commonplace.core.people.members import INVITATION_DAYS
from commonplace.interfaces.web.request import WebRequest, act, get, post, post_then
from commonplace.model import Invitation, Role, now

ROLES = {
    Role.VIEWER: "can read",
    Role.MEMBER: "can read and edit",
    Role.ADMIN: "can manage members",
    Role.OWNER: "full control",
}
TERMS = {"1": "1 day", str(INVITATION_DAYS): "1 week", "30": "1 month", "90": "3 months"}


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
    return await show(request, await request.act("invite_member", "role email expires_days"))


async def leave(request: WebRequest) -> Response:
    name = request.user.library.name
    await request.services.members.leave(request.caller)
    return request.redirect("/", f"You left “{name}”. This is your own library.")


# -- accepting


async def show_invitation(request: WebRequest) -> Response:
    secret, libraries = request.path("secret"), request.visitor.libraries if request.visitor else ()
    asked = await request.services.members.find_invitation(secret)
    return request.page(
        "join.html",
        no_store=True,
        asked=asked,
        does=ROLES[asked.invitation.role],
        already=asked.invitation.library_id in [each.library_id for each in libraries],
        secret=secret,
    )


async def accept(request: WebRequest) -> Response:
    """Accept as the signed-in person, or as a new one with a name, email and password."""
    secret, joining = request.path("secret"), request.services.invitations
    if request.visitor is not None:
        done = await joining.accept_as_visitor(request.visitor, secret)
        return request.redirect("/", f"Welcome. Your role in this library: {done.role}.")
    await request.start_session(
        await joining.accept_with_password(
            secret,
            request.text("name"),
            request.text("email"),
            request.text("password"),
            about=request.browser,
        )
    )
    return request.redirect(
        "/",
        "Welcome. You also have a library of your own. Switch libraries at the top of the sidebar.",
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
    post_then(
        "/people/invitations/{invitation_id}/withdraw",
        act("withdraw_invitation"),
        "/people",
        "Invitation withdrawn. Its link no longer works.",
    ),
    post_then(
        "/people/{person_id}/role",
        act("change_role", "role"),
        "/people",
        "{done.name}'s role is now {done.role}.",
    ),
    post_then(
        "/people/{person_id}/remove",
        act("remove_member"),
        "/people",
        "Member removed. Their tokens for this library no longer work. What they added stays.",
    ),
    post("/leave", leave),
    post_then(
        "/library",
        lambda request: request.services.accounts.switch_library(
            request.user, request.text("library")
        ),
        "/",
        "Switched to “{done.name}”.",
    ),
    post_then(
        "/library/name",
        lambda request: request.services.members.rename_library(
            request.caller, request.text("name")
        ),
        "/people",
        "Library renamed.",
    ),
    get("/join/{secret}", show_invitation, open=True),
    post("/join/{secret}", accept, open=True),
    post("/join/{secret}/offer", offer_passkey, open=True),
    post("/join/{secret}/passkey", accept_by_passkey, open=True),
)
