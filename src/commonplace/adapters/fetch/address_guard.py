"""Refuse private networks: resolve a host once, check all its addresses, connect to one of them."""

import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

import anyio
import httpcore
import httpx

from commonplace.errors import ConfigurationError, IngestFailed

Address = IPv4Address | IPv6Address
# Hosts that may be in a private network: (name, port), or (name, None) for all ports.
AllowedHosts = frozenset[tuple[str, int | None]]
Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
MOST_ADDRESSES = 4  # tried for one host

# Written out, because `ipaddress.is_global` differs between versions of Python.
_CLOSED_V4 = [
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",  # multicast, reserved, broadcast
        "168.63.129.16/32",  # looks public, but is the metadata service of a cloud
    )
]
_OPEN_V6 = IPv6Network("2000::/3")  # all that is assigned for public use so far
_CLOSED_V6 = [
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments, among them Teredo
        "2001:db8::/32",
        "2002::/16",
        "3fff::/20",
    )
]
_NAT64 = IPv6Network("64:ff9b::/96")


def is_public(address: Address) -> bool:
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or (
            IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None
        )
        if inner is None:
            return address in _OPEN_V6 and not any(address in network for network in _CLOSED_V6)
        address = inner
    return not any(address in network for network in _CLOSED_V4)


def parse_url(text: str, base: httpx.URL | None = None) -> httpx.URL:
    """Parse an http(s) URL with a normalized host and without credentials and fragment."""
    try:
        url = base.join(text) if base else httpx.URL(text.strip())
        if url.scheme not in ("http", "https"):
            scheme = url.scheme[:20] or "one without a scheme"
            raise IngestFailed(f"Only http and https URLs can be fetched, not {scheme}.")
        url = url.copy_with(host=_normalize_host(url.raw_host.decode("ascii")), fragment=None)
    except (httpx.InvalidURL, ValueError):
        raise IngestFailed("The URL is invalid.") from None
    if not url.raw_host:
        raise IngestFailed("The URL has no host.")
    if url.port is not None and not 0 < url.port < 1 << 16:
        raise IngestFailed(f"The URL has an invalid port ({url.port}).")
    if url.userinfo:
        raise IngestFailed("The URL contains a user name or password, which is not allowed.")
    return url


def _normalize_host(host: str) -> str:
    """Drop the trailing dot; 2130706433, 0x7f.1 and 0177.0.0.1 become dotted addresses."""
    host = host.removesuffix(".")
    if "%" in host:  # an escape, or the name of a network interface
        raise ValueError(host)
    last = host.rpartition(".")[2]
    if ":" not in host and (last.isdigit() or last.startswith("0x")):
        try:
            return socket.inet_ntoa(socket.inet_aton(host))
        except OSError:
            raise ValueError(host) from None
    return host


def parse_allowed(text: str) -> AllowedHosts:
    return frozenset(_allowed_host(entry.strip()) for entry in text.split(",") if entry.strip())


def _allowed_host(entry: str) -> tuple[str, int | None]:
    try:
        parts = urlsplit(f"//{entry}")
        if parts.netloc != entry or parts.username is not None or not parts.hostname:
            raise ValueError(entry)
        host = httpx.URL(scheme="http", host=_normalize_host(parts.hostname)).raw_host
        return host.decode("ascii"), parts.port
    except (httpx.InvalidURL, ValueError):
        raise ConfigurationError(
            f"COMMONPLACE_FETCH_ALLOW_HOSTS: {entry!r} is not a host or host:port."
        ) from None


async def system_resolver(host: str, port: int) -> list[str]:
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class AddressGuard:
    def __init__(self, allowed: AllowedHosts, resolver: Resolver = system_resolver) -> None:
        self._allowed, self._resolver = allowed, resolver
        self._network = httpcore.AnyIOBackend()

    async def connect(self, host: str, port: int, seconds: float) -> httpcore.AsyncNetworkStream:
        """Connect to an address that was checked; a second lookup could give another one."""
        addresses = (await self._addresses(host, port))[:MOST_ADDRESSES]
        failure: httpcore.ConnectError | httpcore.ConnectTimeout | None = None
        for address in addresses:
            try:
                return await self._network.connect_tcp(str(address), port, seconds / len(addresses))
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = failure or error
        raise failure or IngestFailed(
            f"Could not resolve {host}. Check the URL or your connection."
        )

    async def check(self, host: str, port: int) -> None:
        """Raise IngestFailed if a host is in a private network. One that is not found may be."""
        try:
            addresses = await self._look_up(host, port)
        except IngestFailed:
            return
        self._refuse_private(host, port, addresses)

    async def _addresses(self, host: str, port: int) -> list[Address]:
        addresses = await self._look_up(host, port)
        self._refuse_private(host, port, addresses)
        return addresses

    def _refuse_private(self, host: str, port: int, addresses: Sequence[Address]) -> None:
        private = next((address for address in addresses if not is_public(address)), None)
        if private is not None and self._allowed.isdisjoint([(host, port), (host, None)]):
            raise IngestFailed(
                f"The URL leads to a private network ({private}), which is not allowed. "
                "To allow the host, add it to COMMONPLACE_FETCH_ALLOW_HOSTS."
            )

    async def _look_up(self, host: str, port: int) -> list[Address]:
        try:
            return [ip_address(host)]
        except ValueError:
            pass  # a name
        try:
            return [ip_address(address) for address in await self._resolver(host, port)]
        except (OSError, UnicodeError) as error:
            raise IngestFailed(
                f"Could not resolve {host}. Check the URL or your connection.",
                transient=isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN,
            ) from None
