"""The structure of HTML in Markdown: links, quotes, lists, tables, code, formulas, footnotes."""

from pathlib import Path

import pytest

from commonplace.adapters.extract import FileExtractor

pytestmark = pytest.mark.anyio

PROSE = "<p>" + "The river rose early in the year and fell again before the herons came back. " * 4


@pytest.fixture
async def extractor():
    extractor = FileExtractor(processes=1)
    yield extractor
    await extractor.close()


async def read(extractor: FileExtractor, tmp_path: Path, body: str) -> str:
    path = tmp_path / "page.html"
    path.write_text(
        f"<html lang=en><title>River</title><body><article>{PROSE}{body}{PROSE}</article>"
    )
    found = await extractor.extract(path, "text/html", url="https://river.example/a/page")
    return found.text


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("<p>See <a href='../b'>the map</a> now.", "See [the map](https://river.example/b) now."),
        ("<p>See <a href='javascript:x()'>the map</a> now.", "See the map now."),
        ("<p>At <a href='x(1)'>one</a> end.", "At [one](<https://river.example/a/x(1)>) end."),
        ("<blockquote><p>One.<p>Two.</blockquote>", "> One.\n>\n> Two."),
        ("<ol start=3><li>Three<li>Four</ol>", "3. Three\n4. Four"),
        (
            "<ul><li>Birds<ul><li>Herons<li>Coots</ul><li>Fish</ul>",
            "- Birds\n  - Herons\n  - Coots\n- Fish",
        ),
        (
            "<ol><li><p>Type:<pre><code class='language-sh'>ls\n</code></pre></ol>",
            "1. Type:\n\n   ```sh\n   ls\n   ```",
        ),
        ("<ul><li><input type=checkbox checked> Done</ul>", "- [x] Done"),
        (
            "<table><caption>Counts</caption><tr><th>Bird<th>Number"
            "<tr><td rowspan=2>Heron|s<td>3<tr><td>4</table>",
            "Counts\n\n| Bird | Number |\n|---|---|\n| Heron\\|s | 3 |\n|  | 4 |",
        ),
        ("<dl><dt>Heron<dd>A bird.</dl>", "Heron\n: A bird."),
        ("<pre class='brush: python'>a = '```'</pre>", "````python\na = '```'\n````"),
        ("<p>Run <code>a`b</code> first.", "Run ``a`b`` first."),
        ("<p>So <b>very </b>big, <em>very</em>.", "So **very** big, *very*."),
        ("<figure><img src=h.png alt='A heron'><figcaption>At dawn</figcaption></figure>",
         "![A heron](https://river.example/a/h.png)\n\nAt dawn"),
        ("<p>Then <math><mfrac><mi>a</mi><msup><mi>b</mi><mn>2</mn></msup></mfrac></math> holds.",
         "Then $\\frac{a}{b^{2}}$ holds."),
        ("<p>Then <math alttext='{\\displaystyle x^2}'><mi>x</mi></math> holds.",
         "Then $x^2$ holds."),
        ("<p>Then <math><semantics><mi>y</mi><annotation encoding='application/x-tex'>y_1"
         "</annotation></semantics></math> holds.", "Then $y_1$ holds."),
        ("<p>Words<a href='#n1'>1</a>.</p><section class=footnotes><ol><li id=n1>The note. "
         "<a href='#b1'>↩</a></ol></section>", "Words[^1].\n\n[^1]: The note."),
        ("<h2>Methods <a class=anchor href='#methods'>¶</a></h2>", "## Methods"),
        ("<p>Not *bold*, not [a](b), not &lt;b&gt;, but snake_case and 2 * 3.",
         "Not \\*bold\\*, not [a\\](b), not \\<b>, but snake_case and 2 * 3."),
        ("<p># no heading<br>1. no list", "\\# no heading\n1\\. no list"),
    ],
)  # fmt: skip
async def test_structure_is_kept(extractor, tmp_path: Path, html: str, markdown: str) -> None:
    assert f"\n\n{markdown}\n\n" in await read(extractor, tmp_path, html)


@pytest.mark.parametrize(
    "html",
    [
        "<nav><a href=/>Home of the site</a></nav>",
        "<div class='share-bar'><p>Share this story with all of your friends now</div>",
        "<div style='display: none'><p>Words that nobody sees on this page at all</div>",
        "<form><p>Subscribe to our newsletter about rivers and birds</p><input name=mail></form>",
        "<script>var home = 'Home of the site';</script>",
    ],
)
async def test_what_stands_around_is_left_out(extractor, tmp_path: Path, html: str) -> None:
    text = await read(extractor, tmp_path, html)
    assert not any(word in text for word in ("Home", "Share", "nobody", "Subscribe"))
    assert text.count("The river rose") == 8


@pytest.mark.parametrize("begin", ["<article>", "<main>\n", "<header>Menu</header><section>"])
async def test_pages_may_omit_the_tags_of_head_and_body(
    extractor, tmp_path: Path, begin: str
) -> None:
    path = tmp_path / "page.html"
    path.write_text(f"<!doctype html><meta charset=utf-8><title>River</title>{begin}{PROSE}")
    found = await extractor.extract(path, "text/html", url="https://river.example/a/page")
    assert (found.title, found.text.count("The river rose")) == ("River", 4)


async def test_a_deeply_nested_page_is_read(extractor, tmp_path: Path) -> None:
    text = await read(extractor, tmp_path, "<ul><li>" * 110 + "deep" + "</ul>" * 110)
    assert "deep" in text
