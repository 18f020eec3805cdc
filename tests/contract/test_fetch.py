"""The fetcher, against a real web server on this machine; and the addresses that it must never talk to."""

import gzip
import ssl
import tracemalloc
import zlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from ipaddress import ip_address
from pathlib import Path
from threading import Barrier, Lock

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from commonplace.adapters.fetch import make_fetcher
from commonplace.adapters.fetch.address_guard import Resolver, is_public, parse_allowed
from commonplace.adapters.fetch.client import WebFetcher
from commonplace.errors import ConfigurationError, IngestFailed
from commonplace.settings import Settings
from tests.webserver import (
    NASTY,
    WebServer,
    Wire,
    certificate_for,
    in_turn,
    page,
    redirect,
    web_server,
)

pytestmark = pytest.mark.anyio

MB = 1_000_000
UNROUTED = "3ffe::1"  # public by its looks; the network it was part of is gone


class Names:
    """A resolver with the given answers, one after the other, the last for ever."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers, self.asked = list(answers), 0

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture(scope="module")
def shared_server() -> Iterator[WebServer]:
    with web_server() as server:
        yield server


@pytest.fixture
def server(shared_server: WebServer) -> WebServer:
    shared_server.requests.clear()
    shared_server.pages = dict(NASTY)
    return shared_server


@pytest.fixture
def fetcher(server: WebServer, tmp_path: Path) -> WebFetcher:
    return WebFetcher(allowed=parse_allowed(server.host), folder=tmp_path)


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path) -> Iterator[None]:
    yield
    assert list(tmp_path.iterdir()) == []


async def test_what_is_known_is_asked_about_and_not_sent_again(
    fetcher: WebFetcher, server: WebServer
) -> None:
    date = "Sat, 01 Mar 2025 08:00:00 GMT"
    server.pages["/page"] = in_turn(
        page("hello", ETag='W/"a b"', Last_Modified=date),
        page("", status=304),
        page("newer"),
        page("odd", ETag="\x85"),
    )
    async with fetcher.get(f"{server.url}/page", max_bytes=MB) as first:
        assert (first.validators, first.unchanged) == (
            {"etag": 'W/"a b"', "last_modified": date},
            False,
        )
    assert not {"if-none-match", "if-modified-since"} & server.requests[0].headers.keys()
    async with fetcher.get(f"{server.url}/page", max_bytes=MB, known=first.validators) as second:
        assert (second.unchanged, second.size, second.validators) == (True, 0, first.validators)
    asked = server.requests[1].headers
    assert (asked["if-none-match"], asked["if-modified-since"]) == ('W/"a b"', date)
    async with fetcher.get(f"{server.url}/page", max_bytes=MB, known=second.validators) as third:
        assert (third.unchanged, third.validators, third.path.read_text()) == (False, {}, "newer")
    async with fetcher.get(f"{server.url}/page", max_bytes=MB) as fourth:
        assert fourth.validators == {}, "what could not be sent back is not kept"


async def failure(fetcher: WebFetcher, url: str, max_bytes: int = MB) -> str:
    """The sentence, which comes within seconds whatever the server does."""
    with anyio.fail_after(60), pytest.raises(IngestFailed) as caught:
        async with fetcher.get(url, max_bytes=max_bytes):
            pass
    return caught.value.message


async def body(fetcher: WebFetcher, url: str, max_bytes: int = MB) -> bytes:
    async with fetcher.get(url, max_bytes=max_bytes) as fetched:
        data = await anyio.Path(fetched.path).read_bytes()
        assert fetched.size == len(data)
        return data


async def test_a_page_is_in_a_file_for_as_long_as_the_context(
    server: WebServer, fetcher: WebFetcher
) -> None:
    server.pages["/page"] = page("Grüße")
    async with fetcher.get(f"{server.url}/page?a=1&b=%20#part", max_bytes=MB) as fetched:
        assert fetched.path.read_bytes().decode() == "Grüße"
        assert (fetched.url, fetched.media_type, fetched.charset, fetched.size) == (
            f"{server.url}/page?a=1&b=%20",
            "text/html",
            "utf-8",
            7,
        )
    assert not fetched.path.exists()
    assert server.requests[0].path == "/page?a=1&b=%20"


async def test_a_failing_reader_leaves_no_file(server: WebServer, fetcher: WebFetcher) -> None:
    server.pages["/page"] = page("hello")
    with pytest.raises(ZeroDivisionError):
        async with fetcher.get(f"{server.url}/page", max_bytes=MB):
            raise ZeroDivisionError


async def test_it_says_who_it_is(
    server: WebServer, fetcher: WebFetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "HTTP_PROXY", "http://127.0.0.1:1"
    )  # a proxy would see what the guard does not
    server.pages["/page"] = page("hello", Set_Cookie="a=b")
    await body(fetcher, f"{server.url}/page")
    await body(fetcher, f"{server.url}/page")
    headers = server.requests[1].headers
    assert "Commonplace/" in headers["user-agent"] and "://" not in headers["user-agent"]
    assert headers["host"] == server.host
    assert "cookie" not in headers


@pytest.mark.parametrize(
    ("said", "media_type", "charset"),
    [
        ("text/html; charset=ISO-8859-1", "text/html", "iso-8859-1"),
        ('Text/HTML;Charset="UTF-8"; x=y', "text/html", "utf-8"),
        ("text/html; charset=klingon", "text/html", None),
        ("text/html; charset=base64", "text/html", None),
        ("text/html; charset=", "text/html", None),
        ("audio/mpeg", "audio/mpeg", None),
        ("html", "", None),
        ("text/html, text/plain", "", None),
        ("\x80\x81/<script>; charset=\x82", "", None),
        ("", "", None),
        (None, "", None),
    ],
)
async def test_content_types(
    server: WebServer, fetcher: WebFetcher, said: str | None, media_type: str, charset: str | None
) -> None:
    server.pages["/page"] = page(b"\xff\xfe", said)
    async with fetcher.get(f"{server.url}/page", max_bytes=MB) as fetched:
        assert (fetched.media_type, fetched.charset) == (media_type, charset)


@pytest.mark.parametrize(
    ("path", "said", "tasted"),
    [
        ("/a.bin", "audio/mpeg", True),
        ("/a.bin", "video/mp4", True),
        ("/a.mp3", "application/octet-stream", True),
        ("/a.bin", "application/octet-stream", False),
        ("/a.mp3", "text/html", False),
    ],
)
async def test_of_a_recording_no_more_is_fetched_than_tells_what_it_is(
    server: WebServer, fetcher: WebFetcher, path: str, said: str, tasted: bool
) -> None:
    server.pages[path] = page(bytes(4 * MB), said)
    async with fetcher.get(server.url + path, max_bytes=5 * MB, sample_bytes=1000) as fetched:
        assert 1000 <= fetched.size <= 4 * MB and (fetched.size < 4 * MB) == tasted
    async with fetcher.get(server.url + path, max_bytes=5 * MB) as fetched:
        assert fetched.size == 4 * MB


@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        ("gzip", gzip.compress(b"hello", mtime=0)),
        ("X-GZIP", gzip.compress(b"hel", mtime=0) + gzip.compress(b"lo", mtime=0)),
        ("gzip", gzip.compress(b"hello", mtime=0) + b"\0\0"),
        ("deflate", zlib.compress(b"hello")),
        ("identity", b"hello"),
    ],
)
async def test_compressed_answers(
    server: WebServer, fetcher: WebFetcher, encoding: str, data: bytes
) -> None:
    server.pages["/page"] = page(data, Content_Encoding=encoding)
    assert await body(fetcher, f"{server.url}/page") == b"hello"


async def test_an_answer_may_be_as_large_as_allowed(server: WebServer, fetcher: WebFetcher) -> None:
    server.pages["/plain"] = page(bytes(MB))
    server.pages["/packed"] = page(gzip.compress(bytes(MB)), Content_Encoding="gzip")
    assert len(await body(fetcher, f"{server.url}/plain", MB)) == MB
    assert len(await body(fetcher, f"{server.url}/packed", MB)) == MB
    assert await failure(fetcher, f"{server.url}/plain", MB - 1) == "The file is larger than 1 MB."
    assert await failure(fetcher, f"{server.url}/packed", MB - 1) == "The file is larger than 1 MB."


async def test_redirects_are_followed(server: WebServer, fetcher: WebFetcher) -> None:
    server.pages |= {
        "/a": redirect("b/c"),
        "/b/c": redirect(f"//{server.host}/d?x=1#y", 308),
        "/d": page("hello"),
    }
    async with fetcher.get(f"{server.url}/a", max_bytes=MB) as fetched:
        assert fetched.url == f"{server.url}/d?x=1"


PRIVATE = "The URL leads to a private network"
REFUSED = "which is not allowed. To allow the host, add it to COMMONPLACE_FETCH_ALLOW_HOSTS."
SENTENCES = {
    "/not-found": "The page answered 404 Not Found.",
    "/gone": "The page answered 410 Gone.",
    "/out-of-order": "The page answered 500 Internal Server Error.",
    "/unknown-status": "The page answered 799.",
    "/not-modified": "The page answered 304 Not Modified.",
    "/redirect-to-nowhere": "The page answered 302 Found.",
    "/redirect-to-itself": "The URL redirects in a circle: {url} -> {url}",
    "/circle": "The URL redirects in a circle: {url} -> {url}/2 -> {url}/3 -> {url}",
    "/endless-redirects": "The URL redirects more than 8 times.",
    "/slow-redirects": "The server did not answer within 1 s.",
    "/redirect-to-loopback": f"{PRIVATE} (127.0.0.1), {REFUSED}",
    "/redirect-to-metadata": f"{PRIVATE} (169.254.169.254), {REFUSED}",
    "/redirect-to-mapped": f"{PRIVATE} (::ffff:a00:1), {REFUSED}",
    "/redirect-to-decimal": f"{PRIVATE} (127.0.0.1), {REFUSED}",
    "/redirect-to-file": "Only http and https URLs can be fetched, not file.",
    "/redirect-to-ftp": "Only http and https URLs can be fetched, not ftp.",
    "/redirect-to-data": "Only http and https URLs can be fetched, not data.",
    "/redirect-to-password": "The URL contains a user name or password, which is not allowed.",
    "/redirect-to-rubbish": "The URL is invalid.",
    "/silent": "The server did not answer within 1 s.",
    "/slow-headers": "The server did not answer within 1 s.",
    "/slow-body": "The server sends too slowly.",
    "/stalled-body": "The server sends too slowly.",
    "/endless-body": "The file is larger than 1 MB.",
    "/endless-nothing": "The file is larger than 1 MB.",
    "/endless-hints": "The server did not answer within 1 s.",
    "/endless-headers": "The server sent an invalid response: ",
    "/huge-header": "The server sent an invalid response: ",
    "/announces-too-much": "The file is larger than 1 MB.",
    "/gzip-bomb": "The file is larger than 1 MB.",
    "/gzip-bomb-twice": "The response has an unknown compression (gzip, gzip).",
    "/gzip-cut": "The response ended before it was complete.",
    "/gzip-damaged": "The response's compression is damaged.",
    "/brotli": "The response has an unknown compression (br).",
    "/zstd": "The response has an unknown compression (zstd).",
    "/empty": "The response is empty.",
    "/no-content": "The response is empty.",
    "/truncated": "The server sent an invalid response: peer closed connection",
    "/truncated-chunks": "The server sent an invalid response: peer closed connection",
    "/bad-chunks": "The server sent an invalid response: ",
    "/two-lengths": "The server sent an invalid response: ",
    "/reset": "The server closed the connection before the response was complete.",
    "/hangs-up": "The server sent an invalid response: Server disconnected",
    "/not-http": "The server sent an invalid response: ",
}


TAKES_TIME = (
    "/silent",
    "/slow-headers",
    "/slow-body",
    "/stalled-body",
    "/slow-redirects",
    "/endless-hints",
)


@pytest.mark.parametrize("path", SENTENCES)
async def test_what_servers_do_is_told_in_a_sentence(
    server: WebServer, tmp_path: Path, path: str
) -> None:
    fetcher = WebFetcher(
        allowed=parse_allowed(server.host),
        timeout=1 if path in TAKES_TIME else 20,
        folder=tmp_path,
    )
    url = server.url + path
    assert (await failure(fetcher, url)).startswith(SENTENCES[path].replace("{url}", url))


async def test_all_that_the_server_can_do_is_tried() -> None:
    assert set(SENTENCES) == {path for path in NASTY if not path.startswith("/circle/")}


async def test_a_bomb_takes_no_memory(server: WebServer, fetcher: WebFetcher) -> None:
    tracemalloc.start()
    try:
        await failure(fetcher, f"{server.url}/gzip-bomb", 32 * MB)
        assert tracemalloc.get_traced_memory()[1] < 8 * MB
    finally:
        tracemalloc.stop()


async def test_nobody_there(server: WebServer, tmp_path: Path) -> None:
    async with await anyio.create_tcp_listener(
        local_host="127.0.0.1"
    ) as listener:  # for its port only
        host = f"127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
    fetcher = WebFetcher(allowed=parse_allowed(host), folder=tmp_path)
    assert await failure(fetcher, f"http://{host}/") == "The server 127.0.0.1 cannot be reached."


async def test_a_caller_who_gives_up_leaves_no_file(server: WebServer, tmp_path: Path) -> None:
    fetcher = WebFetcher(allowed=parse_allowed(server.host), timeout=60, folder=tmp_path)
    with anyio.move_on_after(0.2) as scope:
        async with fetcher.get(f"{server.url}/stalled-body", max_bytes=MB):
            pytest.fail("this never ends")
    assert scope.cancelled_caught and server.requests


# Waiting when asked to


async def test_a_short_wait_is_granted(server: WebServer, fetcher: WebFetcher) -> None:
    an_hour_ago = format_datetime(datetime.now(UTC) - timedelta(hours=1), usegmt=True)
    server.pages["/page"] = in_turn(
        page("busy", status=503, Retry_After="0"),
        page("busy", status=429, Retry_After=an_hour_ago),
        page("hello"),
    )
    assert await body(fetcher, f"{server.url}/page") == b"hello"


@pytest.mark.parametrize(
    ("status", "asked", "sentence", "requests"),
    [
        (429, "120", "The page answered 429 Too Many Requests and asks for a retry in 120 s.", 1),
        (503, "soon", "The page answered 503 Service Unavailable.", 1),
        (503, "0", "The page answered 503 Service Unavailable.", 3),
        (500, "0", "The page answered 500 Internal Server Error.", 1),
    ],
)
async def test_patience_with_busy_servers_has_an_end(
    server: WebServer, fetcher: WebFetcher, status: int, asked: str, sentence: str, requests: int
) -> None:
    server.pages["/page"] = page("busy", status=status, Retry_After=asked)
    assert await failure(fetcher, f"{server.url}/page") == sentence
    assert len(server.requests) == requests


async def test_one_host_gets_four_requests_at_once(server: WebServer, tmp_path: Path) -> None:
    together, peak, lock, four = 0, 0, Lock(), Barrier(4, timeout=60)

    def counting(wire: Wire) -> None:
        nonlocal together, peak
        with lock:
            together += 1
            peak = max(peak, together)
        four.wait()
        wire.closing.wait(0.05)  # time for a fifth to show itself
        with lock:
            together -= 1
        page("hello")(wire)

    server.pages["/page"] = counting
    fetcher = WebFetcher(allowed=parse_allowed(server.host), folder=tmp_path)
    async with anyio.create_task_group() as group:
        for _ in range(12):
            group.start_soon(body, fetcher, f"{server.url}/page")
    assert peak == 4


# The guard

PRIVATE_HOSTS = [
    "127.0.0.1",
    "127.8.8.8",
    "0.0.0.0",
    "10.1.2.3",
    "172.31.255.255",
    "192.168.0.1",
    "169.254.169.254",
    "100.64.0.1",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.170",
    "198.18.0.1",
    "203.0.113.5",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "127.0.0.1.",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "127.1",
    "0",
    "017700000001",
    "3232235777",
    "127。0。0。1",
    "[::]",
    "[::1]",
    "[fe80::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[fec0::1]",
    "[ff02::1]",
    "[2001:db8::1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[::ffff:0:127.0.0.1]",
    "[2002:7f00:1::]",
    "[2002:808:808::]",
    "[2001:0:4136:e378:8000:63bf:f5f5:fefe]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b::10.0.0.1]",
    "[64:ff9b:1::8.8.8.8]",
    "[100::1]",
    "[3fff::1]",
    "[5f00::1]",
]


@pytest.mark.parametrize("host", PRIVATE_HOSTS)
async def test_private_addresses_are_refused(tmp_path: Path, host: str) -> None:
    fetcher = WebFetcher(folder=tmp_path, timeout=1)
    assert (await failure(fetcher, f"http://{host}:8080/")).startswith(PRIVATE)


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8",
        "172.32.0.1",
        "100.128.0.1",
        "192.0.1.1",
        "2606:4700::1111",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",
        UNROUTED,
    ],
)
async def test_public_addresses_are_not(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "page",
        "//example.com/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "http://",
        "http:///path",
        "http://user@example.com/",
        "http://user:password@example.com/",
        "http://example.com\\@127.0.0.1/",
        "http://exam%70le.com/",
        "http://[fe80::1%25eth0]/",
        "http://[::1",
        "http://1.2.3.4.5/",
        "http://256.1.1.1/",
        "http://0177.0.0.1/",
        "http://①②⑦.0.0.1/",
        "http://example.com:99999/",
        "http://example.com:0/",
        "http://a\nb/",
        "http://example.com/" + "x" * 100_000,
    ],
)
async def test_rubbish_is_refused_without_looking_it_up(tmp_path: Path, url: str) -> None:
    names = Names(["127.0.0.1"])
    assert "private" not in await failure(WebFetcher(folder=tmp_path, resolver=names), url)
    assert names.asked == 0


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        [UNROUTED, "10.0.0.1"],
        ["::ffff:127.0.0.1"],
        ["fe80::1%lo"],
        [UNROUTED] * 9 + ["192.168.1.1"],  # more than are tried
    ],
)
async def test_every_address_of_a_name_is_checked(tmp_path: Path, addresses: list[str]) -> None:
    fetcher = WebFetcher(folder=tmp_path, resolver=Names(addresses), timeout=1)
    assert (await failure(fetcher, "http://innocent.test/")).startswith(PRIVATE)


async def test_a_name_that_changes_its_mind_is_believed_once(
    server: WebServer, tmp_path: Path
) -> None:
    names = Names([UNROUTED], ["127.0.0.1"])
    fetcher = WebFetcher(folder=tmp_path, resolver=names, timeout=0.3)
    url = f"http://rebinding.test:{server.port}/"
    assert not (await failure(fetcher, url)).startswith(
        PRIVATE
    )  # it went to the address that was checked
    assert names.asked == 1
    assert (await failure(fetcher, url)).startswith(PRIVATE)
    assert server.requests == []


async def test_names_that_do_not_exist(tmp_path: Path) -> None:
    async def nowhere(host: str, port: int) -> list[str]:
        raise OSError("Name or service not known")

    resolvers: list[Resolver] = [nowhere, Names([])]
    for resolver in resolvers:
        fetcher = WebFetcher(folder=tmp_path, resolver=resolver)
        assert (
            await failure(fetcher, "http://nowhere.test/")
            == "Could not resolve nowhere.test. Check the URL or your connection."
        )


async def test_allowed_hosts_are_let_in_by_name_and_port(server: WebServer, tmp_path: Path) -> None:
    server.pages |= {
        "/page": page("hello"),
        "/away": redirect(f"http://wiki.test:{server.port}/page"),
    }
    names = Names(["127.0.0.1"])

    def fetcher(allowed: str) -> WebFetcher:
        return WebFetcher(folder=tmp_path, resolver=names, allowed=parse_allowed(allowed))

    here, wiki = f"{server.url}/page", f"http://Wiki.test.:{server.port}/page"
    assert await body(fetcher(f"wiki.test:{server.port}"), wiki) == b"hello"
    assert server.requests[-1].headers["host"] == f"wiki.test:{server.port}"
    assert await body(fetcher(" WIKI.test , other.test"), wiki) == b"hello"
    assert (
        await body(fetcher(f"127.0.0.1,wiki.test:{server.port}"), f"{server.url}/away") == b"hello"
    )
    for allowed in ("", "wiki.test:1", "test", "sub.wiki.test"):
        assert (await failure(fetcher(allowed), wiki)).startswith(PRIVATE)
    assert (await failure(fetcher("wiki.test"), here)).startswith(PRIVATE)
    assert (await failure(fetcher("127.0.0.1"), f"{server.url}/away")).startswith(PRIVATE)


async def test_the_settings_make_a_fetcher(server: WebServer) -> None:
    server.pages["/page"] = page("hello")
    fetcher = make_fetcher(Settings(fetch_allow_hosts=server.host))
    async with fetcher.get(f"{server.url}/page", max_bytes=MB) as fetched:
        assert fetched.size == 5
    await fetcher.close()
    for wrong in ("http://wiki.test", "wiki.test:port", "user@wiki.test", "wiki.test/path", "::1"):
        with pytest.raises(ConfigurationError, match="FETCH_ALLOW_HOSTS"):
            make_fetcher(Settings(fetch_allow_hosts=wrong))


# https: the name decides, whatever the address is


async def test_certificates_are_checked_for_the_name(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    folder, named = tmp_path_factory.mktemp("tls"), []
    context = certificate_for("secure.test", folder)
    context.sni_callback = lambda connection, name, context: named.append(name)
    with web_server(context) as server:
        server.pages["/page"] = page("hello")
        hosts = parse_allowed(f"secure.test:{server.port}, other.test:{server.port}")
        trusting = ssl.create_default_context(cafile=folder / "server.pem")
        trusted = WebFetcher(
            allowed=hosts, resolver=Names(["127.0.0.1"]), ssl_context=trusting, folder=tmp_path
        )
        strict = WebFetcher(allowed=hosts, resolver=Names(["127.0.0.1"]), folder=tmp_path)
        assert await body(trusted, f"https://secure.test:{server.port}/page") == b"hello"
        assert named == ["secure.test"]
        for fetcher, name in ((trusted, "other.test"), (strict, "secure.test")):
            assert (await failure(fetcher, f"https://{name}:{server.port}/page")).startswith(
                f"The certificate of {name} is not valid ("
            )
        assert len(server.requests) == 1


async def test_a_server_that_does_not_speak_tls(server: WebServer, fetcher: WebFetcher) -> None:
    said = await failure(fetcher, f"https://{server.host}/")
    assert said.startswith(
        ("No secure connection to 127.0.0.1", "The server 127.0.0.1 cannot", "The server closed")
    )


async def test_a_handshake_that_stalls_is_hung_up_on(tmp_path: Path) -> None:
    hung_up = anyio.Event()

    async def say_nothing(client: SocketStream) -> None:
        async with client:
            async for _ in client:
                pass
            hung_up.set()

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as group,
    ):
        group.start_soon(listener.serve, say_nothing)
        host = f"127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
        fetcher = WebFetcher(allowed=parse_allowed(host), timeout=0.3, folder=tmp_path)
        assert (
            await failure(fetcher, f"https://{host}/") == "The server did not answer within 0.3 s."
        )
        with anyio.fail_after(60):
            await hung_up.wait()
        group.cancel_scope.cancel()
