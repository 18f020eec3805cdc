"""Canonical addresses: spellings of one page meet, and pages that differ stay apart."""

from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import example, given, strategies as st

from commonplace.errors import Invalid
from commonplace.text.urls import canonical, looks_like_audio, youtube_id

VIDEO = "https://www.youtube.com/watch?v=dQw4w9WgXcQ"


@pytest.mark.parametrize(
    ("url", "key"),
    [
        (" HTTPS://Example.COM ", "https://example.com/"),
        ("https://example.com.:443/", "https://example.com/"),
        ("http://example.com:80/a", "http://example.com/a"),
        ("http://example.com:443/a", "http://example.com:443/a"),
        ("https://[2001:DB8::1]:8443/", "https://[2001:db8::1]:8443/"),
        (
            "https://Bücher.example/Grüße?q=ä",
            "https://xn--bcher-kva.example/Gr%C3%BC%C3%9Fe?q=%C3%A4",
        ),
        ("https://example.com/%7euser/%2f%e2%82%ac", "https://example.com/~user/%2F%E2%82%AC"),
        ("https://example.com/100%", "https://example.com/100%25"),
        ("https://example.com/a b", "https://example.com/a%20b"),
        ("https://example.com/a/./b/../c/..", "https://example.com/a/"),
        ("https://example.com/../../a", "https://example.com/a"),
        ("https://example.com/a?", "https://example.com/a"),
        ("https://example.com/a#part-2", "https://example.com/a"),
        ("https://example.com/a#:~:text=words", "https://example.com/a"),
        ("https://example.com/#!/page/2", "https://example.com/#!/page/2"),
        ("https://example.com/#/page/2", "https://example.com/#/page/2"),
        (
            "https://example.com/a?utm_source=x&id=7&UTM_Medium=y&fbclid=z",
            "https://example.com/a?id=7",
        ),
        ("https://example.com/a?mc_cid=1&mc_eid=2&gclid=3&_hsenc=4", "https://example.com/a"),
        ("https://open.spotify.com/episode/1?si=abc", "https://open.spotify.com/episode/1"),
        ("https://mobile.twitter.com/a/status/1?s=20&t=x", "https://x.com/a/status/1"),
        (
            "https://de.m.wikipedia.org/wiki/Zettelkasten",
            "https://de.wikipedia.org/wiki/Zettelkasten",
        ),
        ("https://old.reddit.com/r/a/comments/1/", "https://www.reddit.com/r/a/comments/1/"),
        ("https://m.youtube.com/@channel/videos", "https://www.youtube.com/@channel/videos"),
    ],
)
def test_spellings_of_one_page_meet(url: str, key: str) -> None:
    assert canonical(url) == key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://example.com/a", "https://example.com/a/"),
        ("https://example.com/a", "https://example.com/A"),
        ("https://example.com/", "https://www.example.com/"),
        ("https://example.com/", "https://m.example.com/"),
        ("https://example.com/", "http://example.com/"),
        ("https://example.com/a%2Fb", "https://example.com/a/b"),
        ("https://example.com/?a=1&a=2", "https://example.com/?a=2&a=1"),
        ("https://example.com/?q=c%2B%2B", "https://example.com/?q=c++"),
        ("https://example.com/?si=1", "https://example.com/?si=2"),
        ("https://example.com/?ref=main", "https://example.com/?ref=dev"),
        ("https://example.com/?s=a", "https://example.com/?s=b"),
        ("https://example.com/?v=dQw4w9WgXcQ", VIDEO),
    ],
)
def test_pages_that_may_differ_stay_apart(one: str, other: str) -> None:
    assert canonical(one) != canonical(other)


@pytest.mark.parametrize(
    "url",
    [
        "https://youtu.be/dQw4w9WgXcQ?si=abc&t=42",
        "http://www.youtube.com/watch?v=dQw4w9WgXcQ",
        "https://youtube.com/watch/?list=PL1&v=dQw4w9WgXcQ&index=3#comments",
        "https://m.youtube.com/watch?v=dQw4w9WgXcQ&feature=share",
        "https://music.youtube.com/watch?v=dQw4w9WgXcQ",
        "https://www.youtube.com/shorts/dQw4w9WgXcQ",
        "https://www.youtube.com/live/dQw4w9WgXcQ?feature=share",
        "https://www.youtube-nocookie.com/embed/dQw4w9WgXcQ?autoplay=1",
        "https://www.youtube.com/v/dQw4w9WgXcQ/",
    ],
)
def test_every_form_of_a_video(url: str) -> None:
    assert youtube_id(url) == "dQw4w9WgXcQ"
    assert canonical(url) == VIDEO


@pytest.mark.parametrize(
    "url",
    [
        "https://www.youtube.com/",
        "https://www.youtube.com/@channel",
        "https://www.youtube.com/playlist?list=PL1",
        "https://www.youtube.com/embed/videoseries?list=PL1",
        "https://www.youtube.com/watch?v=short",
        "https://www.youtube.com/watch?v=dQw4w9WgXcQ-and-more",
        "https://youtube.com.example/watch?v=dQw4w9WgXcQ",
        "https://example.com/watch?v=dQw4w9WgXcQ",
        "https://youtu.be/",
    ],
)
def test_what_is_no_video(url: str) -> None:
    assert youtube_id(url) is None


@pytest.mark.parametrize(
    ("url", "audio"),
    [
        ("https://example.com/episode.mp3?token=1", True),
        ("https://example.com/A.FLAC", True),
        ("https://example.com/a.m4a#t=10", True),
        ("https://example.com/a.wav", True),
        ("https://example.com/a.ogg", True),
        ("https://example.com/a.aac", True),
        ("https://example.com/mp3", False),
        ("https://example.com/?file=a.mp3", False),
        ("https://example.com/a.mp3/about", False),
        ("https://mp3.example/", False),
    ],
)
def test_audio_is_known_by_its_name(url: str, audio: bool) -> None:
    assert looks_like_audio(url) is audio


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "/path",
        "ftp://example.com/",
        "mailto:a@example.com",
        "http://",
        "https://./",
        "http://[::1",
        "https://example.com:port/",
        "https://example.com:99999/",
        "https://user:password@example.com/",
        "https://exa\u2100mple/",
        "https://exa mple.com/",
        "https://exa%20mple.com/",
        "https://a<b>.com/",
        "http://[fe80::1%eth0]/",
    ],
)
def test_what_is_no_address_of_a_page(url: str) -> None:
    with pytest.raises(Invalid):
        canonical(url)


HOSTS = st.sampled_from(
    [
        "example.com",
        "EXAMPLE.org..",
        "bücher.example",
        "m.youtube.com",
        "youtu.be",
        "twitter.com",
        "en.m.wikipedia.org",
        "127.0.0.1:80",
        "[::1]:443",
        "open.spotify.com",
    ]
)
WORDS = st.text(
    alphabet=st.one_of(st.sampled_from("%/.;=&?#+ !~:@aF04\\"), st.characters()), max_size=20
)
URLS = st.builds("{}://{}/{}".format, st.sampled_from(["http", "https", "HTTP"]), HOSTS, WORDS)


@given(URLS)
@example("https://example.com/%%341")
@example("https://example.com/.//..//%2e%2E/a")
def test_a_canonical_address_is_its_own(url: str) -> None:
    once = canonical(url)
    assert canonical(once) == once
    assert once.isascii()


NAMES = st.text(alphabet="abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=8).map(
    "p-{}".format
)
ANY = st.characters(exclude_characters="&#;", exclude_categories=["Cs", "Cc"])
VALUES = st.text(alphabet=st.one_of(st.sampled_from("%2F+ a"), ANY), min_size=1)


@given(st.lists(st.tuples(NAMES, VALUES), max_size=6), st.integers(0, 6))
def test_parameters_that_mean_something_stay_as_they_were(
    pairs: list[tuple[str, str]], place: int
) -> None:
    written = [f"{name}={value}" for name, value in pairs]
    written.insert(place, "utm_campaign=spring")
    url = f"https://example.com/a?{'&'.join(written)}#"
    kept = parse_qsl(urlsplit(canonical(url)).query, keep_blank_values=True)
    assert kept == parse_qsl(
        "&".join(f"{name}={value}" for name, value in pairs), keep_blank_values=True
    )
