"""The way out to the web: one fetcher for pages, feeds, documents and recordings."""

from typing import TYPE_CHECKING, cast

from commonplace.adapters.lazy_import import Later
from commonplace.settings import Settings

if TYPE_CHECKING:  # it brings httpx along, and most commands fetch nothing
    from commonplace.adapters.fetch.client import WebFetcher


def make_fetcher(settings: Settings) -> "WebFetcher":
    """ConfigurationError when the list of allowed hosts cannot be understood."""
    fetcher = Later(lambda: _made(settings))
    if settings.fetch_allow_hosts:
        fetcher.now()
    return cast("WebFetcher", fetcher)


def _made(settings: Settings) -> "WebFetcher":
    from commonplace.adapters.fetch.address_guard import AllowedHosts
    from commonplace.adapters.fetch.client import WebFetcher

    return WebFetcher(
        allowed=AllowedHosts.parse(settings.fetch_allow_hosts), timeout=settings.fetch_timeout
    )
