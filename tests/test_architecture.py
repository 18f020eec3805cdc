"""The import rule of docs/design.md: the tree shows who may know whom."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src" / "commonplace"
FILES = sorted(ROOT.rglob("*.py"))
VALUES = ("model", "errors", "settings")

# What a part may import of ours. Doors share what lies beside them in faces/, and never know each other.
MAY_IMPORT = {
    "model": ("model",),
    "errors": (),
    "settings": ("errors",),
    "ports": ("model", "ports"),
    "core": (*VALUES, "ports", "core"),
    "adapters": (*VALUES, "ports", "adapters"),
    "faces.cli": (*VALUES, "ports", "core", "faces", "app"),  # the command starts the application; nothing imports it
    "faces": (*VALUES, "ports", "core", "faces"),
}
WIRING = ("__init__", "__main__", "app", "worker", "testing")  # may know all
DOORS = ("faces.mcp", "faces.rest", "faces.web", "faces.cli")


def within(module: str, part: str) -> bool:
    return module == part or module.startswith(part + ".")


def all_imports(path: Path) -> set[str]:
    """Also those inside functions."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: line {node.lineno}: write the import in full"
            found |= {node.module or ""} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def imports(path: Path) -> set[str]:
    """Our modules that a file imports, without the leading package name."""
    return {name.removeprefix("commonplace.") for name in all_imports(path) if name.startswith("commonplace.")}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_follow_the_layers(path: Path) -> None:
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    if module in WIRING:
        return
    part = next((part for part in MAY_IMPORT if within(module, part)), None)
    assert part is not None, f"{module} has no place in the layout"
    door = next((door for door in DOORS if within(module, door)), None)
    for name in imports(path) - {"__version__"}:
        assert any(within(name, allowed) for allowed in MAY_IMPORT[part]), f"{module} may not import {name}"
        assert not any(within(name, other) for other in DOORS if other != door), f"{module} may not import {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_stay_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 500


def test_what_is_imported_is_declared() -> None:
    project = tomllib.loads((ROOT.parents[1] / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *(name for extra in project["optional-dependencies"].values() for name in extra)]
    declared = {canonical(re.split(r"[^\w.-]", name)[0]) for name in asked}
    of_module = packages_distributions()
    for path in FILES:
        for module in {name.split(".")[0] for name in all_imports(path)} - sys.stdlib_module_names - {"commonplace"}:
            assert declared & {canonical(name) for name in of_module.get(module, [module])}, f"{path} imports {module}"


def canonical(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def test_the_tree_was_found() -> None:
    assert ROOT / "model" / "items.py" in FILES


def test_nothing_uses_the_standard_librarys_sqlite() -> None:
    """Two SQLite libraries that open one file in one process drop each other's locks, and the system's may be an old one."""
    repository = ROOT.parents[1]
    files = [path for folder in ("src", "tests", "tools", "benchmarks") for path in (repository / folder).rglob("*.py")
             if "side_by_side" not in path.parts]  # other products, in their own processes
    assert [str(path) for path in files if "sqlite3" in all_imports(path)] == []
