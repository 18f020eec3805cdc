"""The way out to the web: one fetcher for pages, feeds, documents and recordings."""

from commonplace.adapters.fetch.client import WebFetcher
from commonplace.adapters.fetch.guard import Allowed
from commonplace.settings import Settings


def make_fetcher(settings: Settings) -> WebFetcher:
    """ConfigurationError when the list of allowed hosts cannot be understood."""
    return WebFetcher(allowed=Allowed.parse(settings.fetch_allow_hosts), timeout=settings.fetch_timeout)
