"""Consent: a signed-in person gives an OAuth client access to a library, or does not."""

import asyncio
import json
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from starlette.responses import Response

from commonplace.core.people.accounts import caller_in
from commonplace.core.people.oauth import Asked, Consent
from commonplace.core.people.oauth_clients import origin_of
from commonplace.errors import ForbiddenScope, NotFound
from commonplace.interfaces.web.headers import AUTHORIZE, allow_form_target, allow_opener
from commonplace.interfaces.web.pages.tokens import expiries
from commonplace.interfaces.web.request import WebRequest, get, post, whole_number
from commonplace.model import TO_READ, folder_list, is_loopback

if TYPE_CHECKING:
    from commonplace.interfaces.web.consent_request import ConsentRequest

LIFETIMES = {"1": "1 day", "30": "30 days", "90": "90 days", "365": "1 year"}


async def authorize(request: WebRequest) -> Response:
    """Show the page, or take its answer."""
    # The SDK is imported when it is used: it takes as long as the rest of the server.
    await asyncio.to_thread(import_module, "commonplace.interfaces.web.consent_request")
    from commonplace.interfaces.web.consent_request import ConsentRequest

    wanted = ConsentRequest(request)
    refusal = await wanted.check()
    if wanted.asked is None:
        answer = _refuse(request, wanted, refusal)
    elif request.http.method == "POST":
        answer = await _decide(request, wanted, wanted.asked)
    else:
        answer = await _show(request, wanted, wanted.asked)
    return allow_opener(answer, AUTHORIZE)


async def _show(request: WebRequest, wanted: "ConsentRequest", asked: Asked) -> Response:
    if request.query("prompt") == "none":
        return wanted.back(error="login_required")
    if request.visitor is None:
        address = f"{AUTHORIZE}?{request.http.url.query}"
        return request.redirect(f"/sign-in?next={quote(address)}")
    return await _page(request, wanted, asked, request.query("library"))


async def _decide(request: WebRequest, wanted: "ConsentRequest", asked: Asked) -> Response:
    if request.text("answer") != "connect":
        request.services.oauth.deny()
        return wanted.back(error="access_denied")
    consent = Consent(
        request.text("library"),
        request.text("write") == "1",
        None if request.text("sees") == "all" else tuple(request.form_list("folder")),
        request.text("kb_only") == "1",
        whole_number(request.text("days")) or 0,
    )
    return wanted.back(code=await request.services.oauth.grant(request.user, asked, consent))


def _refuse(request: WebRequest, wanted: "ConsentRequest", refusal: Response) -> Response:
    """Answer the client where it is known, and else the person."""
    if refusal.status_code == 302:
        return wanted.with_issuer(refusal)
    if wanted.error is None:
        message = json.loads(bytes(refusal.body))["error_description"]
    elif isinstance(wanted.error, NotFound):
        message = wanted.error.message
    else:
        raise wanted.error
    return request.page("error.html", 400, title="Cannot connect", message=message)


async def _page(
    request: WebRequest, wanted: "ConsentRequest", asked: Asked, library_id: str
) -> Response:
    if request.user.viewing is not None:
        raise ForbiddenScope('Leave "View as" first.')
    caller = caller_in(request.user, library_id or request.user.library.library_id)
    libraries = [
        (library.name, f"{AUTHORIZE}?{urlencode(wanted.sent | {'library': library.library_id})}")
        for library in request.user.libraries
        if library.library_id != caller.library_id
    ]
    page = request.page(
        "consent.html",
        no_store=True,
        asked=asked,
        sent=wanted.sent,
        library=next(
            each for each in request.user.libraries if each.library_id == caller.library_id
        ),
        libraries=libraries,
        folders=folder_list(await request.services.folders.list_folders(caller, TO_READ)),
        may_write=caller.can_write and "write" in asked.scopes,
        here=is_loopback(asked.redirect_uri) or asked.redirect_host.endswith(":"),
        lifetimes=expiries(LIFETIMES),
    )
    return allow_form_target(page, origin_of(asked.redirect_uri))


ROUTES = (get(AUTHORIZE, authorize, open=True), post(AUTHORIZE, authorize, open=True))
