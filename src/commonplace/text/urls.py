"""Canonical forms of URLs: the key by which libraries share a source."""

import re
from urllib.parse import SplitResult, parse_qs, quote, unquote_to_bytes, urlsplit

import idna

from commonplace.errors import Invalid

AUDIO = (".mp3", ".m4a", ".wav", ".ogg", ".flac", ".aac")

# Parameters that track people and never change the page.
_TRACKING = frozenset(
    {
        "fbclid",
        "gclid",
        "gclsrc",
        "dclid",
        "gbraid",
        "wbraid",
        "gad_source",
        "gad_campaignid",
        "msclkid",
        "yclid",
        "ysclid",
        "twclid",
        "ttclid",
        "li_fat_id",
        "igshid",
        "igsh",
        "rdt_cid",
        "epik",
        "scclid",
        "sc_cid",
        "srsltid",
        "mc_cid",
        "mc_eid",
        "mkt_tok",
        "_hsenc",
        "_hsmi",
        "hsctatracking",
        "vero_id",
        "vero_conv",
        "oly_anon_id",
        "oly_enc_id",
        "rb_clickid",
        "wickedid",
        "_openstat",
        "_ga",
        "_gl",
        "_kx",
        "_bta_tid",
        "_bta_c",
        "dm_i",
        "ml_subscriber",
        "ml_subscriber_hash",
        "s_cid",
        "pk_campaign",
        "pk_kwd",
        "pk_keyword",
        "pk_source",
        "pk_medium",
        "pk_content",
        "pk_cid",
        "piwik_campaign",
        "piwik_kwd",
        "piwik_keyword",
        "matomo_campaign",
        "matomo_kwd",
        "matomo_keyword",
        "ref_src",
        "ref_url",
    }
)
_TRACKING_OF_HOST = {
    "open.spotify.com": frozenset({"si"}),
    "x.com": frozenset({"s", "t"}),
}

# Hosts that show the same pages under the same paths, as their owners redirect between them.
_SAME_HOST = {
    "twitter.com": "x.com",
    "www.twitter.com": "x.com",
    "mobile.twitter.com": "x.com",
    "m.twitter.com": "x.com",
    "www.x.com": "x.com",
    "mobile.x.com": "x.com",
    "m.facebook.com": "www.facebook.com",
    "mbasic.facebook.com": "www.facebook.com",
    "facebook.com": "www.facebook.com",
    "m.reddit.com": "www.reddit.com",
    "old.reddit.com": "www.reddit.com",
    "reddit.com": "www.reddit.com",
    "m.youtube.com": "www.youtube.com",
    "youtube.com": "www.youtube.com",
}
_MOBILE_WIKI = re.compile(
    r"(?<![a-z-])([a-z-]+)\.m\.(wikipedia|wiktionary|wikibooks|wikiquote|wikisource|wikivoyage)"
    r"\.org"
)

_YOUTUBE = (
    "youtube.com",
    "www.youtube.com",
    "m.youtube.com",
    "music.youtube.com",
    "gaming.youtube.com",
    "youtube-nocookie.com",
    "www.youtube-nocookie.com",
)
_YOUTUBE_PATH = re.compile(r"/(?:shorts|embed|live|v|e)/([^/]+)/?")
_YOUTUBE_ID = re.compile(r"(?!videoseries)[A-Za-z0-9_-]{11}")

_HOST = re.compile(
    r"[a-z0-9._:-]*"
)  # as urlsplit gives it: in lower case, an IPv6 address without its brackets
_PERCENT = re.compile(r"%([0-9A-Fa-f]{2})?")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_PATH_SAFE, _QUERY_SAFE = "%/:@!$&'()*+,;=", "%/:@!$&'()*+,;=?"


def canonical(url: str) -> str:
    """Return the key to compare a URL by. Invalid: not the address of a web page.

    http or https, `www.`, a trailing slash and the order of parameters stay: pages may differ.
    """
    parts, host = _split(url)
    if video := _youtube_id(parts, host):
        return f"https://www.youtube.com/watch?v={video}"
    same = _SAME_HOST.get(host) or _MOBILE_WIKI.sub(r"\1.\2.org", host)
    port = "" if parts.port in (None, 443 if parts.scheme == "https" else 80) else f":{parts.port}"
    path = _without_dots(_spelled(parts.path, _PATH_SAFE)) or "/"
    query = "&".join(
        pair
        for pair in _spelled(parts.query, _QUERY_SAFE).split("&")
        if not _is_tracking(pair, same)
    )
    route = (
        parts.fragment if parts.fragment.startswith(("!", "/")) else ""
    )  # a page of its own in some sites
    return (
        f"{parts.scheme}://{f'[{same}]' if ':' in same else same}{port}{path}"
        f"{'?' + query if query else ''}{'#' + _spelled(route, _QUERY_SAFE) if route else ''}"
    )


def youtube_id(url: str) -> str | None:
    """Return the id of the video in any form of a YouTube address."""
    return _youtube_id(*_split(url))


def looks_like_audio(url: str) -> bool:
    try:
        return _split(url)[0].path.lower().endswith(AUDIO)
    except Invalid:
        return False  # pages link to all kinds of things


def _split(url: str) -> tuple[SplitResult, str]:
    """Return the parts of a URL, and its host in lower-case ASCII."""
    try:
        parts = urlsplit(url.strip())
        host, _ = parts.hostname or "", parts.port
        host = host if host.isascii() else idna.encode(host, uts46=True).decode("ascii")
        if not _HOST.fullmatch(host):
            raise ValueError(host)
    except ValueError:
        raise Invalid(f"This is not a URL: {url[:200]!r}.") from None
    host = host.rstrip(".")
    if parts.scheme not in ("http", "https") or not host:
        raise Invalid(
            f"{url[:200]!r} is not a URL. A URL starts with http:// or https:// and names a host."
        )
    if parts.username is not None:
        raise Invalid("A URL must not contain a user name or password.")
    return parts, host


def _youtube_id(parts: SplitResult, host: str) -> str | None:
    if host in ("youtu.be", "www.youtu.be"):
        found = parts.path.strip("/")
    elif host not in _YOUTUBE:
        return None
    elif parts.path.rstrip("/") == "/watch":
        found = parse_qs(parts.query).get("v", [""])[0]
    else:
        match = _YOUTUBE_PATH.fullmatch(parts.path)
        found = match[1] if match else ""
    return found if _YOUTUBE_ID.fullmatch(found) else None


def _is_tracking(pair: str, host: str) -> bool:
    name = pair.partition("=")[0].lower()
    return (
        not pair
        or name.startswith(("utm_", "mtm_", "hsa_", "__hs"))
        or name in _TRACKING
        or name in _TRACKING_OF_HOST.get(host, ())
    )


def _spelled(text: str, safe: str) -> str:
    """Normalize escapes: none where none is needed, upper-case elsewhere, and no bare `%`."""
    return quote(_PERCENT.sub(_escape, text), safe=safe, errors="replace")


def _escape(match: re.Match[str]) -> str:
    if match[1] is None:
        return "%25"
    byte = unquote_to_bytes(match[0])
    return byte.decode("ascii") if byte[0] in _UNRESERVED else match[0].upper()


def _without_dots(path: str) -> str:
    """RFC 3986, 5.2.4."""
    kept: list[str] = []
    *folders, last = path.split("/")
    for part in folders:
        if part == ".." and len(kept) > 1:
            kept.pop()
        elif part not in (".", ".."):
            kept.append(part)
    if last == ".." and len(kept) > 1:
        kept.pop()
    return "/".join([*kept, "" if last in (".", "..") else last])
