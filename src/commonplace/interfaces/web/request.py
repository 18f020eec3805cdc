"""One request of a browser: the visitor, the input, the responses; and routes, as data."""

import hashlib
import hmac
import json
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from ipaddress import ip_address, ip_network
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from commonplace.core.people.accounts import DEVICE_LIFETIME, LIFETIME, Visitor
from commonplace.core.people.passkeys import Site
from commonplace.core.services import Services
from commonplace.errors import ForbiddenScope, Invalid, Unauthorized
from commonplace.interfaces.actions.registry import ACTIONS
from commonplace.interfaces.http.gate import host_name, network_of
from commonplace.interfaces.web.forms import INPUTS, form_to_input
from commonplace.interfaces.web.jinja import Templates
from commonplace.interfaces.web.refill import PAGE
from commonplace.model import TO_READ, Caller, FolderNode, Step, folder_list
from commonplace.settings import Settings

SESSION, ANONYMOUS, NOTE, DEVICE = (
    "commonplace",
    "commonplace_visit",
    "commonplace_note",
    "commonplace_device",
)
SECONDS, DEVICE_SECONDS = int(LIFETIME.total_seconds()), int(DEVICE_LIFETIME.total_seconds())
MANY = 10_000
PagedRead = Callable[..., Awaitable[tuple[Any, int]]]  # takes `limit` and `offset`


class Elsewhere(Exception):
    """The answer is at another address."""


@dataclass(slots=True)
class WebRequest:
    http: Request
    services: Services
    templates: Templates
    visitor: Visitor | None = None
    secret: str = ""  # of the session, or of the visit while there is none
    # to set: value and seconds; 0 seconds: delete
    cookies: dict[str, tuple[str, int]] = field(default_factory=dict)
    sent: FormData = field(default_factory=FormData)  # set by check_form
    is_own: bool = True  # what was sent comes from a page of this person
    folders: list[FolderNode] = field(default_factory=list)  # for pages
    cursor: str = ""  # behind the events that the page knows of already
    waiting: int = 0  # candidates for review
    step: Step | None = None  # what the request does, and can be undone
    said: tuple[str, bool] | None = None  # for the page that comes: text, and whether it is wrong

    @classmethod
    async def begin(cls, http: Request, services: Services, templates: Templates) -> "WebRequest":
        request = cls(http, services, templates)
        request.secret = request.cookie(SESSION)
        request.visitor = await services.accounts.visitor(request.secret)
        if email := _email_of_proxy(http, services.settings):
            await request._sign_in_by_proxy(email)
        if request.visitor is None:
            request.secret = request.cookie(ANONYMOUS) or secrets.token_urlsafe(24)
            if not request.cookie(ANONYMOUS):
                request.cookies[ANONYMOUS] = (request.secret, SECONDS)
        elif request.visitor.extended:
            request.cookies[SESSION] = (request.secret, SECONDS)
        if request.visitor is not None and http.method == "POST":
            request.step = Step(request.visitor.person.id)
        return request

    # -- who

    @property
    def user(self) -> Visitor:
        if self.visitor is None:
            raise Unauthorized("Sign in first.")
        return self.visitor

    @property
    def caller(self) -> Caller:
        caller = self.user.caller
        return caller if self.step is None else replace(caller, step=self.step)

    @property
    def address(self) -> str:
        return network_of(self.http.client.host) if self.http.client else "unknown"

    @property
    def browser(self) -> str:
        return self.http.headers.get("user-agent", "")

    @property
    def is_https(self) -> bool:
        public = urlsplit(self.services.settings.public_url)
        return self.http.url.scheme == "https" or (
            public.scheme == "https" and public.netloc == self.http.headers.get("host")
        )

    @property
    def site(self) -> Site:
        host = self.http.headers.get("host", "")
        return Site(
            host_name(host).strip("[]"),
            f"{'https' if self.is_https else 'http'}://{host}",
        )

    @property
    def base_url(self) -> str:
        """Where others reach this server: as configured, or as this browser does."""
        return self.services.settings.public_url.rstrip("/") or self.site.origin

    @property
    def device(self) -> str:
        """The cookie of a browser that somebody has signed in with before."""
        return self.cookie(DEVICE)

    async def _sign_in_by_proxy(self, email: str) -> None:
        if self.visitor is None or self.visitor.person.email.lower() != email.lower():
            accounts = self.services.accounts
            self.secret = await accounts.sign_in_by_proxy(email, about=self.browser)
            self.visitor = await accounts.visitor(self.secret)
            self.cookies[SESSION] = (self.secret, SECONDS)

    async def start_session(self, secret: str) -> None:
        self.cookies[SESSION] = (secret, SECONDS)
        self.cookies[ANONYMOUS] = ("", 0)
        device = await self.services.accounts.remember_device(secret, self.device)
        self.cookies[DEVICE] = (device, DEVICE_SECONDS)

    def end_session(self) -> None:
        self.cookies[SESSION] = ("", 0)

    # -- what it sends

    @property
    def csrf(self) -> str:
        """A secret that only pages given to this browser know: derived from an unreadable cookie.

        Also derived from the library, so that a page left open cannot write to another library.
        """
        library = self.visitor.library.library_id if self.visitor else ""
        secret = hashlib.sha256(f"csrf:{self.secret}:{library}".encode()).hexdigest()[:43]
        return self._who + secret

    @property
    def me(self) -> str:
        """The person and their library, to whom a page and what is typed there belong."""
        visitor = self.visitor
        return f"{visitor.person.id} {visitor.library.library_id}" if visitor else ""

    @property
    def _who(self) -> str:
        return hashlib.sha256(f"who:{self.me}".encode()).hexdigest()[:16]

    async def check_form(self) -> None:
        """Refuse forms and scripts that do not come from our own pages."""
        headers = self.http.headers
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise ForbiddenScope("Forms are only accepted from this server's own pages.")
        is_form = headers.get("content-type", "").startswith(
            ("application/x-www-form-urlencoded", "multipart/form-data")
        )
        self.sent = await self.http.form(max_fields=MANY) if is_form else FormData()
        sent = headers.get("x-csrf-token") or self.sent.get("csrf")
        if not isinstance(sent, str) or not hmac.compare_digest(sent.encode(), self.csrf.encode()):
            # A page of the same person, from before they signed in again, only needs a new token.
            # Scripts get it here; it is no secret to whoever can read our answers.
            self.is_own = isinstance(sent, str) and sent.startswith(self._who)
            raise ForbiddenScope(
                "Your session changed. Nothing was saved; send it again."
                if self.is_own
                else "Someone else is signed in here now, or another library is open. Nothing was "
                "saved.",
                **({"csrf": self.csrf} if self.is_own else {}),
            )

    @property
    def form(self) -> dict[str, str]:
        """The fields of the form, without files; empty but for a POST."""
        return {name: value for name, value in self.sent.items() if isinstance(value, str)}

    def text(self, name: str) -> str:
        """Return a field of the form, empty if it is not there."""
        return self.form.get(name, "")

    def form_list(self, name: str) -> list[str]:
        return [value for value in self.sent.getlist(name) if isinstance(value, str)]

    def files(self, name: str) -> list[UploadFile]:
        """Return the files of a form; an empty field sends one without a name."""
        return [
            file
            for file in self.sent.getlist(name)
            if isinstance(file, UploadFile) and file.filename
        ]

    def input(self, action: str, fields: str = "", /, **given: Any) -> Any:
        """Return the input of an action: the path, the named fields of the form, and `given`."""
        known = INPUTS[action].model_fields
        path = {name: value for name, value in self.http.path_params.items() if name in known}
        return form_to_input(action, fields, self.sent, path | given)

    async def act(self, action: str, fields: str = "", /, **given: Any) -> Any:
        """Run an action with such an input, and return what the core returns."""
        args = self.input(action, fields, **given)
        return await ACTIONS[action].call(self.services, self.caller, args)

    async def json(self) -> dict[str, Any]:
        try:
            body = await self.http.json()
        except (ValueError, UnicodeDecodeError):
            raise Invalid("The body must be JSON.") from None
        if not isinstance(body, dict):
            raise Invalid("The body must be an object.")
        return body

    async def passkey(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the body that passkeys.js sent, and the credential in it."""
        body = await self.json()
        credential = body.get("credential")
        if not isinstance(credential, dict):
            raise Invalid("`credential` is required.")
        return body, credential

    def has_nul(self) -> bool:
        """Whether the address or the form contains NUL."""
        values = (
            *self.http.path_params.items(),
            *self.http.query_params.multi_items(),
            *self.sent.multi_items(),
        )
        return any("\0" in value for _, value in values if isinstance(value, str))

    def path(self, name: str) -> str:
        """Return a parameter of the path."""
        return str(self.http.path_params[name])

    def query(self, name: str, default: str = "") -> str:
        return self.http.query_params.get(name, default)

    def number(self, name: str, default: int, least: int = 1, most: int = 1_000_000) -> int:
        found = whole_number(self.query(name))
        return default if found is None else min(max(found, least), most)

    async def read_frame(self) -> None:
        """Read what every page shows around its own content."""
        if self.visitor and (self.http.method == "GET" or self.wants_page):
            found = await self.services.folders.list_folders(self.caller, TO_READ)
            self.folders = folder_list(found)
            self.cursor = await self.services.events.cursor(self.caller)
            _, self.waiting = await self.services.reflection.candidates(self.caller, limit=1)

    @property
    def by_script(self) -> bool:
        """Whether forms.js sent the form, and goes on to the page that the answer names."""
        return "x-form" in self.http.headers

    @property
    def wants_page(self) -> bool:
        """Whether a browser navigates, rather than a script that calls."""
        return "text/html" in self.http.headers.get("accept", "")

    # -- answers

    def page(
        self, template: str, /, status: int = 200, *, no_store: bool = False, **values: Any
    ) -> Response:
        """Render a page; `no_store` for one that shows a secret."""
        # A part for a page that is open: what was noted is for the page that comes.
        note = "" if "x-part" in self.http.headers else self.cookie(NOTE)
        if note:
            self.cookies.setdefault(NOTE, ("", 0))
        return HTMLResponse(
            self.templates.render(
                template, request=self, me=self.visitor, note=_parse_note(note), **values
            ),
            status,
            {"Cache-Control": "no-store"} if no_store else None,
        )

    async def read_page(self, size: int, link: str, read: PagedRead) -> dict[str, Any]:
        """Return what one page of a list shows. Past the last page, turn to that.

        `link`: the address of the list, up to the page number.
        """
        page = self.number("page", 1)
        found, total = await read(limit=size, offset=(page - 1) * size)
        pages = -(-total // size)
        if page > pages > 0:  # what stood there was archived, filed elsewhere or deleted
            raise Elsewhere(f"{link}page={pages}")
        return {"found": found, "total": total, "page": page, "pages": pages, "link": link}

    def redirect(self, path: str, note: str = "", *, wrong: bool = False) -> Response:
        if note:
            self.said = note[:500], wrong
        return RedirectResponse(path, 303)

    async def end_step(self, said: str) -> str | None:
        """Return the id by which what was done can be undone; None if nothing can be."""
        if self.step is None or not self.step.recorded:
            return None
        await self.services.recent_changes.name(self.caller, self.step.id, said)
        return self.step.id

    async def keep_note(self) -> None:
        """Keep what is said for the page that comes, with the way to undo it."""
        if self.said is not None:
            said = [*self.said, await self.end_step(self.said[0])]
            self.cookies[NOTE] = (quote(json.dumps(said)), 60)

    @property
    def back(self) -> str:
        """The page that the form was on."""
        return self.referrer or "/"

    @property
    def referrer(self) -> str:
        """The page that the form was on; empty when unknown or not ours."""
        if page := self.text(PAGE):  # which was shown at the address of its form
            return "/" + page.lstrip("/\\")
        before = urlsplit(self.http.headers.get("referer", ""))
        if before.netloc != self.http.headers.get("host", "") or not before.path.startswith("/"):
            return ""
        return ("/" + before.path.lstrip("/")) + (f"?{before.query}" if before.query else "")

    # -- cookies

    def cookie(self, name: str) -> str:
        return self.http.cookies.get(self._cookie_name(name), "")

    def set_cookies(self, response: Response) -> Response:
        for name, (value, seconds) in self.cookies.items():
            response.set_cookie(
                self._cookie_name(name),
                value,
                max_age=seconds,
                path="/",
                secure=self.is_https,
                httponly=True,
                samesite="lax",
            )
        return response

    def _cookie_name(self, name: str) -> str:
        """Return a name with the port: cookies ignore ports, and servers must not share them."""
        host = self.http.headers.get("host", "")
        named = f"{name}{host[len(host_name(host)) :].replace(':', '_')}"
        return f"__Host-{named}" if self.is_https else named


def _email_of_proxy(http: Request, settings: Settings) -> str:
    """Return the person that a trusted proxy has signed in; "" if it names nobody."""
    name = settings.auth_proxy_header
    named = http.headers.getlist(name) if name else []
    if not any(named):
        return ""
    peer = http.scope["state"]["peer"]
    if len(named) > 1 or peer is None or not _is_within(peer[0], settings.proxies):
        raise ForbiddenScope(f"{name} is accepted once, and only from COMMONPLACE_TRUSTED_PROXIES.")
    return named[0].strip()


def _is_within(address: str, networks: list[str]) -> bool:
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    ip = getattr(ip, "ipv4_mapped", None) or ip
    return any(ip in ip_network(network) for network in networks)


def whole_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 8 else None


def _parse_note(cookie: str) -> tuple[str, bool, str | None] | None:
    try:
        text, wrong, step = json.loads(unquote(cookie))
        return str(text), bool(wrong), step and str(step)
    except (ValueError, TypeError):
        return None


# -- routes

Handler = Callable[[WebRequest], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Route:
    method: str
    path: str
    handler: Handler
    open: bool = False  # also for those who are not signed in


get, post = partial(Route, "GET"), partial(Route, "POST")


def post_then(path: str, run: Callable[[WebRequest], Awaitable[Any]], to: str, said: str) -> Route:
    """A form that does something, and then leads to a page that says so.

    `to` and `said` may use what `run` returned, as in `{done.name}`. `to` is empty: the page that
    the form was on.
    """

    async def handle(request: WebRequest) -> Response:
        done = await run(request)
        return request.redirect(to.format(done=done) or request.back, said.format(done=done))

    return post(path, handle)


def act(action: str, fields: str = "") -> Callable[[WebRequest], Awaitable[Any]]:
    """Run an action with the named fields of the form."""
    return lambda request: request.act(action, fields)
