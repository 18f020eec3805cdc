"""One request of a browser: the visitor, the input, and the responses."""

import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from commonplace.core.people.accounts import DEVICE_LIFETIME, LIFETIME, Visitor
from commonplace.core.people.passkeys import Site
from commonplace.core.services import Services
from commonplace.errors import ForbiddenScope, Invalid, Unauthorized
from commonplace.interfaces.http.gate import host_name, network_of
from commonplace.interfaces.web.jinja import Templates
from commonplace.model import Caller

SESSION, ANONYMOUS, NOTE, DEVICE = (
    "commonplace",
    "commonplace_visit",
    "commonplace_note",
    "commonplace_device",
)
MANY = 10_000


@dataclass(slots=True)
class WebRequest:
    http: Request
    services: Services
    templates: Templates
    visitor: Visitor | None
    secret: str  # of the session, or of the visit while there is none
    cookies: dict[str, tuple[str, int]] = field(
        default_factory=dict
    )  # to set: value and seconds; 0 seconds: delete
    sent: FormData = field(default_factory=FormData)  # set by check_form

    @classmethod
    async def begin(cls, http: Request, services: Services, templates: Templates) -> "WebRequest":
        kept = http.cookies.get(_cookie_name(SESSION, http, services))
        visitor = await services.accounts.visitor(kept)
        if visitor is not None and kept:
            request = cls(http, services, templates, visitor, kept)
            if visitor.extended:
                request.cookies[SESSION] = (kept, int(LIFETIME.total_seconds()))
            return request
        passing = http.cookies.get(_cookie_name(ANONYMOUS, http, services))
        request = cls(http, services, templates, None, passing or secrets.token_urlsafe(24))
        if passing is None:
            request.cookies[ANONYMOUS] = (request.secret, int(LIFETIME.total_seconds()))
        return request

    # -- who

    @property
    def user(self) -> Visitor:
        if self.visitor is None:
            raise Unauthorized("Sign in first.")
        return self.visitor

    @property
    def caller(self) -> Caller:
        return self.user.caller

    @property
    def address(self) -> str:
        return network_of(self.http.client.host) if self.http.client else "unknown"

    @property
    def browser(self) -> str:
        return self.http.headers.get("user-agent", "")

    @property
    def site(self) -> Site:
        host = self.http.headers.get("host", "")
        return Site(
            host_name(host).strip("[]"),
            f"{'https' if _is_https(self.http, self.services) else 'http'}://{host}",
        )

    @property
    def base_url(self) -> str:
        """Where others reach this server: as configured, or as this browser does."""
        return self.services.settings.public_url.rstrip("/") or self.site.origin

    @property
    def device(self) -> str | None:
        """The cookie of a browser that somebody has signed in with before."""
        return self.http.cookies.get(_cookie_name(DEVICE, self.http, self.services))

    async def start_session(self, secret: str) -> None:
        self.cookies[SESSION] = (secret, int(LIFETIME.total_seconds()))
        self.cookies[ANONYMOUS] = ("", 0)
        device = await self.services.accounts.remember_device(secret, self.device)
        self.cookies[DEVICE] = (device, int(DEVICE_LIFETIME.total_seconds()))

    def end_session(self) -> None:
        self.cookies[SESSION] = ("", 0)

    # -- what it sends

    @property
    def csrf(self) -> str:
        """A secret that only pages given to this browser know: derived from an unreadable cookie.

        Also derived from the library, so that a page left open cannot write to another library.
        """
        library = self.visitor.library.library_id if self.visitor else ""
        return hashlib.sha256(f"csrf:{self.secret}:{library}".encode()).hexdigest()[:43]

    async def check_form(self) -> None:
        """Refuse forms and scripts that do not come from our own pages."""
        headers = self.http.headers
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise ForbiddenScope("Forms are taken from this server's own pages only.")
        is_form = headers.get("content-type", "").startswith(
            ("application/x-www-form-urlencoded", "multipart/form-data")
        )
        self.sent = await self.http.form(max_fields=MANY) if is_form else FormData()
        sent = headers.get("x-csrf-token") or self.sent.get("csrf")
        if not isinstance(sent, str) or not hmac.compare_digest(sent.encode(), self.csrf.encode()):
            raise ForbiddenScope(
                "This page is too old to be sent; load it again, and repeat what you did."
            )

    @property
    def form(self) -> dict[str, str]:
        """The fields of the form, without files; empty but for a POST."""
        return {name: value for name, value in self.sent.items() if isinstance(value, str)}

    def form_list(self, name: str) -> list[str]:
        return [value for value in self.sent.getlist(name) if isinstance(value, str)]

    def files(self, name: str) -> list[UploadFile]:
        """Return the files of a form; an empty field sends one without a name."""
        return [
            file
            for file in self.sent.getlist(name)
            if isinstance(file, UploadFile) and file.filename
        ]

    async def json(self) -> dict[str, Any]:
        try:
            body = await self.http.json()
        except (ValueError, UnicodeDecodeError):
            raise Invalid("The body is not JSON.") from None
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
        text = self.query(name)
        return (
            min(max(int(text), least), most)
            if text.isascii() and text.isdigit() and len(text) < 8
            else default
        )

    @property
    def wants_page(self) -> bool:
        """Whether a browser navigates, rather than a script that calls."""
        return "text/html" in self.http.headers.get("accept", "")

    # -- answers

    def page(
        self, template: str, /, status: int = 200, *, no_store: bool = False, **values: Any
    ) -> Response:
        """Render a page; `no_store` for one that shows a secret."""
        note = self.http.cookies.get(_cookie_name(NOTE, self.http, self.services))
        if note is not None:
            self.cookies.setdefault(NOTE, ("", 0))
        return HTMLResponse(
            self.templates.render(
                template, request=self, me=self.visitor, note=_parse_note(note), **values
            ),
            status,
            {"Cache-Control": "no-store"} if no_store else None,
        )

    def fragment(self, template: str, /, **values: Any) -> Response:
        """Render a part of a page for a script to insert."""
        return HTMLResponse(
            self.templates.render(template, request=self, me=self.visitor, note=None, **values)
        )

    def redirect(self, path: str, note: str = "", *, wrong: bool = False) -> Response:
        if note:
            self.cookies[NOTE] = (quote(json.dumps([note[:500], wrong])), 60)
        return RedirectResponse(path, 303)

    @property
    def back(self) -> str:
        """The page that the form was on."""
        return self.referrer or "/"

    @property
    def referrer(self) -> str:
        """The page that the form was on; empty when unknown or not ours."""
        before = urlsplit(self.http.headers.get("referer", ""))
        if before.netloc != self.http.headers.get("host", "") or not before.path.startswith("/"):
            return ""
        return ("/" + before.path.lstrip("/")) + (f"?{before.query}" if before.query else "")

    def set_cookies(self, response: Response) -> Response:
        secure = _is_https(self.http, self.services)
        for name, (value, seconds) in self.cookies.items():
            response.set_cookie(
                _cookie_name(name, self.http, self.services),
                value,
                max_age=seconds,
                path="/",
                secure=secure,
                httponly=True,
                samesite="lax",
            )
        return response


def _parse_note(cookie: str | None) -> tuple[str, bool] | None:
    try:
        text, wrong = json.loads(unquote(cookie or ""))
        return str(text), bool(wrong)
    except (ValueError, TypeError):
        return None


def _is_https(http: Request, services: Services) -> bool:
    public = urlsplit(services.settings.public_url)
    return http.url.scheme == "https" or (
        public.scheme == "https" and public.netloc == http.headers.get("host")
    )


def _cookie_name(cookie: str, http: Request, services: Services) -> str:
    """Return a name with the port: cookies ignore ports, and servers must not share them."""
    host = http.headers.get("host", "")
    named = f"{cookie}{host[len(host_name(host)) :].replace(':', '_')}"
    return f"__Host-{named}" if _is_https(http, services) else named
