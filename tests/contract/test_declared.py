"""What pages declare about themselves: author, date, picture, address."""

from datetime import UTC, datetime

import pytest

from commonplace.adapters.extract.html import convert
from commonplace.adapters.extract.html.declared import Declared, clean_author, read_declared

JSON_LD = '<script type="application/ld+json">{}</script>'
ARTICLE = """{"@context": "https://schema.org", "@graph": [
  {"@type": "WebPage", "datePublished": "2020-01-01"},
  {"@type": ["NewsArticle"], "datePublished": "2019-03-02T08:00:00+01:00",
   "author": [{"@type": "Person", "name": "Ann Bee"}, {"name": "Bo Cy"}],
   "image": {"@type": "ImageObject", "url": "/heron.jpg"}}]}"""


def declared(head: str, body: str = "") -> Declared:
    tree = convert.parse(f"<html><head>{head}</head><body>{body}<p>Text.</p></body></html>")
    assert tree is not None
    return read_declared(tree, "https://river.example/2024/herons")


def day(found: Declared) -> str:
    return f"{found.published_at:%Y-%m-%d}" if found.published_at else ""


def test_an_article_in_json_ld_names_authors_date_and_picture() -> None:
    found = declared(JSON_LD.format(ARTICLE))
    assert found.author == "Ann Bee, Bo Cy"
    assert found.published_at == datetime(2019, 3, 2, 7, tzinfo=UTC)
    assert found.picture == "https://river.example/heron.jpg"


@pytest.mark.parametrize(
    ("head", "date"),
    [
        (
            '<meta property="article:modified_time" content="2024-05-05">'
            '<meta property="article:published_time" content="2019-01-03T10:00:00Z">',
            "2019-01-03",
        ),
        # Some sites set published_time with each change.
        (
            '<meta property="article:published_time" content="2024-12-07">'
            + JSON_LD.format(f"<![CDATA[\n{ARTICLE}\n]]>"),
            "2019-03-02",
        ),
        (JSON_LD.format('{broken: "datePublished": "2018-02-03"'), "2018-02-03"),
        ('<meta name="DC.date.issued" content="2017-06-01">', "2017-06-01"),
        ('<meta property="article:modified_time" content="2024-05-05">', ""),
    ],
)
def test_dates_of_publication_come_before_others(head: str, date: str) -> None:
    assert day(declared(head)) == date


def test_dates_marked_in_the_text_count() -> None:
    assert day(declared("", '<abbr itemprop="datePublished" title="2016-12-06">6th</abbr>')) == (
        "2016-12-06"
    )


@pytest.mark.parametrize(
    ("head", "author"),
    [
        ('<meta property="article:author" content="Laura June Topolsky">', "Laura June Topolsky"),
        ('<meta property="dc:creator twitter:site_name" content="Ann Bee">', "Ann Bee"),
        ('<meta property="article:author" content="https://facebook.example/ann">', None),
        (
            '<meta property="article:author" content="https://facebook.example/ann">'
            '<meta name="author" content="By Ann Bee">',
            "Ann Bee",
        ),
        (
            '<meta name="citation_author" content="Bee, Ann">'
            '<meta name="citation_author" content="Cy, Bo">',
            "Bee, Ann, Cy, Bo",
        ),
        (JSON_LD.format('{"@type": "Article", "author": "admin"}'), None),
    ],
)
def test_authors(head: str, author: str | None) -> None:
    assert declared(head).author == author


def test_what_stands_beside_a_name_goes() -> None:
    names = {
        "by Ann Bee": "Ann Bee",
        "Nathan Willis March": "Nathan Willis",
        "April Glaser": "April Glaser",
        "Joe Wee Monday; February": "Joe Wee",
        "Bradley M. Kuhn (http://ebb.example/)": "Bradley M. Kuhn",
        "Ann Bee | The River Paper": "Ann Bee",
        "Username": None,
        "": None,
    }
    assert {name: clean_author(name) for name in names} == names


def test_one_canonical_address_counts_and_several_do_not() -> None:
    link = '<link rel="canonical" href="{}">'
    assert declared(link.format("/herons")).address == "https://river.example/herons"
    assert declared(link.format("/a") + link.format("/b")).address is None
    og = '<meta property="og:url" content="https://river.example/og">'
    assert declared(og).address == "https://river.example/og"
    assert declared(link.format("javascript:void(0)")).address is None
