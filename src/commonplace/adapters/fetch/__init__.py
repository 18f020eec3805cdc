"""The fetcher for pages, feeds, documents and recordings on the web."""

from typing import TYPE_CHECKING, cast

from commonplace.adapters.lazy_import import Later
from commonplace.settings import Settings

if TYPE_CHECKING:  # it imports httpx, and most commands fetch nothing
    from commonplace.adapters.fetch.client import WebFetcher


def make_fetcher(settings: Settings) -> "WebFetcher":
    """Make the fetcher. Raises ConfigurationError for an invalid list of allowed hosts."""

    def make() -> "WebFetcher":
        from commonplace.adapters.fetch.address_guard import parse_allowed
        from commonplace.adapters.fetch.client import ANSWER_SECONDS, WebFetcher

        return WebFetcher(allowed=parse_allowed(settings.fetch_allow_hosts), timeout=ANSWER_SECONDS)

    fetcher = Later(make)
    if settings.fetch_allow_hosts:
        fetcher.now()
    return cast("WebFetcher", fetcher)
