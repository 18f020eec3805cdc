"""The docs say what the code does: reference pages are made from it, links lead somewhere, examples run."""

import ast
import importlib.util
import re
from pathlib import Path

import pytest

from torture.__main__ import PARTS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.anyio
async def test_reference_pages_are_what_the_code_says() -> None:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "tools" / "reference.py")
    assert spec and spec.loader
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    for name, page in (await reference.pages()).items():
        assert (reference.FOLDER / name).read_text() == page, (
            f"docs/reference/{name} is out of date: run `make docs`"
        )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        assert "://" in target or (page.parent / target).exists(), f"{page.name} links to {target}"


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
    assert len((ROOT / "README.md").read_text().splitlines()) <= 40
