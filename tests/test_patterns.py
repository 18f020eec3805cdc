"""Text of users meets only linear code: every regular expression of the package is proven so or listed, and functions that
read such texts take no longer than in proportion to them."""

import ast
import asyncio
import importlib
import pkgutil
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import commonplace
from commonplace.adapters.extract import charset, input_file, paragraphs, plain_text, subtitles
from commonplace.adapters.reflect import note_parser, rules
from commonplace.adapters.summarize import extractive
from commonplace.core.disks import redaction
from commonplace.core.items import versions
from commonplace.core.memory import token_budget
from commonplace.core.transfer import session_sources
from commonplace.interfaces.web import markdown_html as web_text
from commonplace.interfaces.web.pages import review
from commonplace.model import folder_key
from commonplace.text import (
    chunking,
    front_matter,
    keyword_tags,
    prose,
    query_terms,
    secret_masking,
    snippets,
    statements,
    stems,
    urls,
)
from tests.pattern_proof import NotProven, prove

ROOT = Path(commonplace.__file__).parent
ANCHORED = {"match", "fullmatch"}
METHODS = ANCHORED | {"search", "sub", "subn", "split", "findall", "finditer"}

# Patterns that are not proven linear, with the bound of what they see and where that bound is enforced.
BOUNDED: dict[str, str] = {}


# -- Every pattern of the package


def modules() -> Iterator[Any]:
    for found in pkgutil.walk_packages(commonplace.__path__, "commonplace."):
        if not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


def patterns_in(value: Any, depth: int = 0) -> Iterator[re.Pattern[Any]]:
    """Also in tuples, mappings and dataclasses."""
    if isinstance(value, re.Pattern):  # those of RE2 are linear by construction
        yield value
    elif depth < 5 and isinstance(value, list | tuple | set | frozenset | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from patterns_in(each, depth + 1)
    elif depth < 5 and is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from patterns_in(getattr(value, field.name, None), depth + 1)
    elif depth < 2 and isinstance(value, type) and value.__module__.startswith("commonplace."):
        for each in vars(value).values():
            yield from patterns_in(each, 4)


def calls(tree: ast.AST) -> dict[str, set[str]]:
    """Which methods of patterns are called, by the name that they are called on."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in METHODS:
            on = (
                node.value.id
                if isinstance(node.value, ast.Name)
                else getattr(node.value, "attr", "")
            )
            found.setdefault(on, set()).add(node.attr)
    return found


def compiled() -> Iterator[tuple[str, re.Pattern[Any], bool]]:
    """(where, the pattern, whether it is only matched at one place)."""
    trees = {path: ast.parse(path.read_text()) for path in sorted(ROOT.rglob("*.py"))}
    everywhere = [calls(tree) for tree in trees.values()]
    seen: set[int] = set()
    for module in modules():
        here = calls(trees[Path(module.__file__)])
        for name, value in vars(module).items():
            for pattern in patterns_in(value):
                if id(pattern) in seen:
                    continue
                seen.add(id(pattern))
                if pattern is not value:  # in a tuple: called by the name of a loop's variable
                    used = set().union(
                        *(methods for on, methods in here.items() if on not in vars(module))
                    )
                elif name.startswith("_"):
                    used = here.get(name, set())
                else:
                    used = set().union(*(names.get(name, set()) for names in everywhere))
                yield f"{module.__name__}.{name}", pattern, bool(used) and used <= ANCHORED


def inline() -> Iterator[tuple[str, ast.Call]]:
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "re"
                and node.func.attr in METHODS
            ):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node


def test_compiled_patterns_are_linear() -> None:
    found, unproven = 0, {}
    for where, pattern, anchored in compiled():
        found += 1
        try:
            prove(pattern.pattern, pattern.flags, anchored=anchored)
        except NotProven as why:
            unproven[where] = f"{where}: {why}: {str(pattern.pattern)[:200]}"
    assert found > 150
    slow = [told for where, told in unproven.items() if where not in BOUNDED]
    assert not slow, "\n".join(
        ["Make it linear, or list it in BOUNDED with the bound of its input.", *slow]
    )
    assert not BOUNDED.keys() - unproven.keys(), "proven linear by now: remove it from BOUNDED"


def test_patterns_within_functions_are_linear() -> None:
    unproven = []
    for where, call in inline():
        flags = 0
        for node in (
            inner for part in [*call.args[1:], *call.keywords] for inner in ast.walk(part)
        ):
            flags |= getattr(re.RegexFlag, getattr(node, "attr", ""), 0)
        try:
            prove(ast.literal_eval(call.args[0]), flags, anchored=call.func.attr in ANCHORED)
        except NotProven as why:
            unproven.append(f"{where}: {why}: {ast.unparse(call.args[0])}")
        except ValueError:
            unproven.append(f"{where}: the pattern is made at run time, so nothing is known of it")
    assert not unproven, "\n".join(unproven)


QUADRATIC = [  # searched for; each of them once stood in the package, or is of its kind
    r"a+b",
    r"(?=\S*\d)(?=\S*[^\W\d_])\S{6,}",
    r"!?\[([^\]]*)\]\([^)]*\)",
    r"\beyJ[\w-]{8,}\.[\w-]{8,}",
    r"(?m)^\s*>\s+",
    r"(?<![\w/.-])(?=[\w+=-]*\d)[A-Za-z0-9][\w+=-]{14,}",
    r"<v(?:\.[^ >]*)?[ \t]+([^>]+)>",
    r"\s+$",
    r"a.*b|c",
    r"\w+\s*:",
    r"<(a|b)>.*?</\1>",
    r"-----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY-----(?:.*?-----END|.*)",
    r"(?<!\w)[\w-]+=",
    r"x(?:[^y]*y)?",
]
AMBIGUOUS = [  # matched at one place, and still not linear
    r"^[ \t]*#{1,6}[ \t]+(?P<text>.+?)[ \t#]*$",
    r"\A\s*#[ \t]+(.+?)[ \t#]*$",
    r"(?:a|a)*b",
    r"(a+)+b",
    r"(?:.*x){2}",
    r"(?:<\?.*?\?>|<!--.*?-->|\s)*<rss",
    r"(?:\w+\s?)*$",
    r"[ \t]*-?[ \t]*:",
    r"(?:a?){300}b",
    r"a*a*b",
    r"(?:a|b|ab)*c",
]
LINEAR = [
    r"\w+",
    r"(?m)^#[ \t]",
    r"</?[a-z][^<>]*>",
    r"(?<![\w-])[\w-]+=",
    r"\bfoo\w+!",
    r"!\[[^\[\]]*\]\([^)\[]*\)",
    r"\Aa.*?b",
    r"(?:\.\d+)+",
    r"x[^x]*y",
    r"(?:is|it|in) \w+",
]


@pytest.mark.parametrize("pattern", QUADRATIC)
def test_the_proof_refuses_what_is_slow_to_search(pattern: str) -> None:
    with pytest.raises(NotProven):
        prove(pattern)


@pytest.mark.parametrize("pattern", AMBIGUOUS)
def test_the_proof_refuses_what_is_slow_to_match(pattern: str) -> None:
    with pytest.raises(NotProven):
        prove(pattern, anchored=True)


@pytest.mark.parametrize("pattern", LINEAR)
def test_the_proof_takes_what_is_linear(pattern: str) -> None:
    prove(pattern)


# -- Every function that reads texts of others


def transformed(text: str) -> None:
    extractive.summarize(text[:300], [section.text for section in chunking.cut(text)])


def compared(text: str) -> None:
    found = [*statements.sentences(text), statements.whole("title", text)]
    for each in found[:3]:
        statements.differences(each, statements.whole(text[:200], f"{text} not 7"))
        statements.alignment(each, found[-1])


def redacted(text: str) -> None:
    view = redaction.Source(text)
    view.cut(text[:2000])
    view.heading(text)
    view.is_term(text)


def read_plain(text: str) -> None:
    charset.decode(text.encode(), markup=True)
    plain_text._find_title(text)
    input_file.clean_text(text)
    paragraphs.split_paragraphs(text.splitlines())


READERS: dict[str, Callable[[str], object]] = {
    "masking": secret_masking.mask_secrets,
    "redaction": redacted,
    "reflect notes": lambda text: note_parser.parse_blocks(text, frozenset()),
    "reflect rules": lambda text: rules.reflect(text, 20),
    "sectioning": chunking.cut,
    "transform": transformed,
    "prose": prose.sentences,
    "lead": lambda text: prose.lead(text, 1_000_000),
    "markdown": lambda text: front_matter.parse(text, "name"),
    "front matter": lambda text: front_matter.parse("---\n" + text, "name"),
    "statements": compared,
    "words": query_terms.extra_terms,
    "embedded words": query_terms.for_embedding,
    "query": query_terms.parse_query,
    "terms": stems.terms,
    "tags": lambda text: keyword_tags.tags(text, text, [text[:100]], [text[:100]]),
    "task type": lambda text: keyword_tags.task_type(text, text),
    "versions": lambda text: versions.difference(text, f"{text} x"),
    "packing": token_budget.tokens,
    "transcripts": lambda text: session_sources._said(text),
    "git log": lambda text: list(session_sources._printed(text)),
    "plain text": snippets.plain_text,
    "title": lambda text: web_text.without_title(text, text[:100]),
    "links": lambda text: list(web_text._linked(web_text._MD, text)),
    "fences": lambda text: list(web_text.resumed([text])),
    "snippet": lambda text: snippets.snippet(text[:6000], "a = 1"),
    "extract": read_plain,
    "subtitles": lambda text: list(subtitles._utterances(f"00:00:01.000 --> 00:00:02.000\n{text}")),
    "addresses": lambda text: urls._MOBILE_WIKI.sub("", text),
    "folders": folder_key,
}
RUNS = [
    "=",
    "[",
    "#",
    "(",
    "<",
    "*",
    "_",
    "-",
    ".",
    "\t",
    " ",
    "a",
    "A",
    "1",
    "`",
    "~",
    "|",
    ">",
    '"',
    "'",
    ":",
    "/",
    "@",
    "!",
    "\n",
    "\r\n",
    "a ",
    "1 ",
    "a\n",
    "# ",
    "- ",
    "a-",
    "a.",
    "a1",
    "a@",
    "Ab",
    "![](a",
    "![a](",
    "[a](b",
    "eyJJJJJJJJ-",
    "<v a",
    "</a ",
    "{\\a",
    "key=",
    "password: ",
    "token 1",
    "+1 ",
    "00 44",
    "DE89 ",
    "://a:b",
    "-----BEGIN PRIVATE KEY-----\n",
    "the a ",
    "to a, ",
    "in may ",
    "a ed ",
    "1 %",
    "I will ",
    "A and A",
    "<command-name>",
    "<system-reminder>",
    "```\n",
    "~~~a\n",
    "commit 1234567\n",
    "1. ",
    "[ ] ",
    "\u0301\u0323",
    "a\u0301",
    "\u0f73",
    "\uff9e",
    "語",
    "가",
    "ß",
    "é",
    "“",
    "😀",
]
TEXTS = {repr(run): ("", run, "") for run in RUNS} | {
    "heading and blanks": ("# a", " ", "b"),
    "heading and marks": ("# a", " #", "b"),
    "key and signs": ("key", "=", "!"),
    "time and blanks": ("10:32", " ", "x"),
    "label and blanks": ("Decision", " ", "x"),
    "voice": ("<v", ".", " "),
    "fence and marks": ("", "`", "a`"),
    "title line": ("Action items", " ", "x"),
    "speaker": ("A", "_", " b:"),
    "meta": ("<meta ", "charset= ", "<"),
    "marks": ("a", "\u0301\u0323", "b"),
    "quotes": ("a. ", '"', "b"),
}
SIZE, LEAST, MOST = 2_000, 0.02, 9.0


def seconds(read: Callable[[str], object], text: str) -> float:
    start = time.process_time()
    read(text)
    return time.process_time() - start


def grows_too_fast(read: Callable[[str], object], form: tuple[str, str, str]) -> bool:
    """Whether four times the text takes far more than four times as long: sixteen, where it is quadratic. What takes next to
    no time is not measured."""
    begin, run, end = form

    def text(size: int) -> str:
        return begin + run * (size // len(run)) + end

    size = SIZE
    long = seconds(read, text(4 * size))
    if long < LEAST:
        return False
    for _ in range(
        4
    ):  # a pause of the machine is not a growth: it would have to come back each time
        if long <= MOST * max(seconds(read, text(size)), LEAST / MOST):
            return False
        long = seconds(read, text(4 * size))
    return True


@pytest.mark.parametrize("name", READERS)
def test_time_grows_with_the_text_and_no_faster(name: str) -> None:
    read = READERS[name]
    read("Some text.")
    slow = [form for form, text in TEXTS.items() if grows_too_fast(read, text)]
    assert not slow, f"{name} takes more than linear time on runs of {', '.join(slow)}"


def test_the_review_page_reads_only_the_beginning_of_a_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is set on the event loop, where a long text would hold up everybody."""
    read: list[int] = []
    monkeypatch.setattr(review, "plain_text", lambda text: str(read.append(len(text))))

    async def reading(caller: object, item_id: str) -> SimpleNamespace:
        return SimpleNamespace(text="[" * 500_000)

    judged: Any = SimpleNamespace(
        queued=None, contradictions=(SimpleNamespace(item_id="known"),), duplicates=()
    )
    visit: Any = SimpleNamespace(
        caller=None, services=SimpleNamespace(library=SimpleNamespace(read=reading))
    )
    asyncio.run(review._beside(visit, judged))
    assert read and max(read) <= 10 * review.EXCERPT
