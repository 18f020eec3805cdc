"""The docs match the code: generated pages are current, links resolve, named tests exist."""

import ast
import importlib.util
import re
from pathlib import Path

import pytest

from torture.__main__ import PARTS

ROOT = Path(__file__).parents[2]
PAGES = sorted(page for place in ("", "deploy/", "docs/**/") for page in ROOT.glob(f"{place}*.md"))
VERBS = re.compile(
    "(accept|add|answer|archive|back|block|call|cancel|change|check|compare|complete|compute|crawl|create|delete"
    "|download"
    "|edit|estimate|evaluate|explore|export|extract|fetch|file|find|finish|follow|gather|import"
    "|install|invite|keep|link|list|look|manage|mark|move|open|prepare|preview|print|publish|read|reject"
    "|remember|remove|rename|replace|restore|retry|revoke|run|save|search|serve|set|show|start"
    "|submit|suggest|supersede|test|unblock|unfollow|unpublish|update|withdraw|write)[ ,]",
    re.IGNORECASE,
)


def test_reference_pages_are_what_the_code_says() -> None:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "tools" / "reference.py")
    assert spec and spec.loader
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    for name, page in reference.pages().items():
        assert (reference.FOLDER / name).read_text() == page, (
            f"docs/reference/{name} is out of date: run `make docs`"
        )


def test_reference_rows_start_with_an_imperative_verb() -> None:
    rows = {
        "rest": r"^\| `[A-Z]+ /[^|]*` \| [^|]* \| (.*) \|$",
        "cli": r"^\| `commonplace [^|]*` \| (.*) \|$",
        "mcp": r"^## `\w+`\n\n(.*)$",
    }
    for name, pattern in rows.items():
        page = (ROOT / "docs" / "reference" / f"{name}.md").read_text()
        described = re.findall(pattern, page, re.MULTILINE)
        assert len(described) > 10
        for text in described:
            assert VERBS.match(text), f"{name}.md: {text}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", page.read_text()):
        if "://" in target:
            continue
        file = page.parent / target if target else page
        assert file.exists(), f"{page.name} links to {target}"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
            slugs = [re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-") for text in headings]
            assert anchor in slugs, f"{page.name} links to {target}#{anchor}"


def test_the_threat_model_names_tests_that_exist() -> None:
    """A promise whose proof was renamed or removed is a promise that nobody checks."""
    named = re.findall(
        r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs" / "threat-model.md").read_text()
    )
    assert len(named) > 40
    for file, test in named:
        tree = ast.parse((ROOT / file).read_text())
        functions = {
            node.name
            for node in tree.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        assert test in functions, f"{file} has no {test}"


def test_the_threat_model_lists_every_part_of_torture() -> None:
    page = (ROOT / "docs" / "threat-model.md").read_text().partition("## make torture")[2]
    assert re.findall(r"^\| `(\w+)` ", page, re.MULTILINE) == [part.name for part in PARTS]


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 60
