"""Jinja templates with their filters. Everything is escaped unless markdown_html.py made it."""

import gzip
import hashlib
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from commonplace import __version__
from commonplace.interfaces.web.forms import attributes, field, options
from commonplace.interfaces.web.icons import ICONS
from commonplace.model import now

STATIC = files(__package__).joinpath("static")
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class Templates:
    def __init__(self) -> None:
        self.static = {
            file.name: file.read_bytes()
            for file in STATIC.iterdir()
            if file.name.endswith(tuple(TYPES))
        }
        self.packed = {name: gzip.compress(body, 9, mtime=0) for name, body in self.static.items()}
        self.version = hashlib.sha256(
            b"".join(self.static[name] for name in sorted(self.static))
        ).hexdigest()[:12]
        self._env = Environment(
            loader=PackageLoader(__package__),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._env.globals |= {
            "static": self._static,
            "icon": icon,
            "release": __version__,
            "attributes": attributes,
            "field": field,
            "options": options,
        }
        self._env.filters |= {
            "ago": ago,
            "day": day,
            "web": web_address,
            "site": site,
            "count": count,
            "clock": clock,
            "size": size,
            "reading": reading,
            "at_second": at_second,
        }

    def render(self, template: str, /, **values: Any) -> str:
        return self._env.get_template(template).render(**values)

    def _static(self, name: str) -> str:
        """Return the path of a static file, versioned by content so that browsers cache it for
        good."""
        return f"/static/{self.version}/{name}"


@cache
def icon(name: str) -> Markup:
    # Markup of our own constants only.
    return Markup(
        '<svg class="icon" viewBox="0 0 20 20" aria-hidden="true" focusable="false">{}</svg>'
    ).format(Markup(ICONS[name]))


def ago(at: datetime | None) -> Markup:
    if at is None:
        return Markup("never")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        at.astimezone(UTC).isoformat(timespec="seconds"),
        at.astimezone(UTC).strftime("%-d %B %Y, %H:%M UTC"),
        _ago(now() - at, at),
    )


def _ago(passed: timedelta, at: datetime) -> str:
    seconds = passed.total_seconds()
    if seconds < 60:
        return "just now" if seconds >= 0 else at.strftime("%-d %b %Y")
    for unit, length, most in (("min", 60, 60), ("h", 3600, 24), ("d", 86400, 7)):
        if seconds < length * most:
            return f"{int(seconds // length)} {unit} ago"
    return at.strftime("%-d %b") if at.year == now().year else at.strftime("%-d %b %Y")


def day(at: datetime | None) -> str:
    return at.strftime("%-d %B %Y") if at else "never"


def web_address(url: str | None) -> str:
    """Return the URL if it may become a link: http and https only."""
    return url if url and url.lower().startswith(("http://", "https://")) else ""


def site(url: str | None) -> str:
    return web_address(url).partition("://")[2].partition("/")[0].removeprefix("www.")[:60]


def count(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def clock(seconds: float) -> str:
    whole = int(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


def at_second(url: str, seconds: float) -> str:
    """Return the address of a recording at this second."""
    if site(url) in ("youtube.com", "m.youtube.com", "youtu.be"):
        return f"{url.partition('#')[0]}{'&' if '?' in url else '?'}t={int(seconds)}s"
    return f"{url.partition('#')[0]}#t={int(seconds)}"


def reading(words: int) -> str:
    minutes = round(words / 230)
    return (
        f"{minutes} min to read"
        if minutes < 90
        else f"{count(round(minutes / 60), 'hour')} to read"
    )


def size(number: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" or number >= 10 else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"
