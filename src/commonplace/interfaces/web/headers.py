"""Headers of all pages, and the exceptions for pages on the way of an OAuth client."""

from starlette.responses import Response

AUTHORIZE = "/oauth/authorize"
POLICY, OPENER = "Content-Security-Policy", "Cross-Origin-Opener-Policy"
_FORMS = "form-action 'self'"
HEADERS = {
    POLICY: (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src "
        "'self'; "
        f"connect-src 'self'; {_FORMS}; base-uri 'none'; frame-ancestors 'none'"
    ),
    # Not no-referrer: with it, browsers send forms without saying where they come from.
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    OPENER: "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "private, no-cache",
}


def allow_opener(response: Response, path: str) -> Response:
    """Keep the window in touch with the client that opened it, if the path leads to consent."""
    if path.partition("?")[0] == AUTHORIZE:
        response.headers[OPENER] = "unsafe-none"
    return response


def allow_form_target(response: Response, origin: str) -> Response:
    """Let a form's answer redirect to another origin, which browsers block otherwise."""
    response.headers[POLICY] = HEADERS[POLICY].replace(_FORMS, f"{_FORMS} {origin}")
    return response
