"""The import rule of docs/design.md: the tree shows the import order."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parents[1] / "src" / "commonplace"
FILES = sorted(ROOT.rglob("*.py"))
LONGEST_FILE, LARGEST_FOLDER = 500, 25

# A module may import its own part and the parts that stand before it.
ORDER = [
    "errors",
    "settings",
    "logs",
    "telemetry",
    "model",
    "text",
    "hooks",
    "ports",
    "malloc_trim",
    "thread_pool",
    "database",
    "search_index",
    "store",
    "adapters",
    "core.jobs",
    "core.people",
    "core.events",
    "core.ingest",
    "core.search",
    "core.items",
    "core.entities",
    "core.work",
    "core.memory",
    "core.disks",
    "core.undo",
    "core.transfer",
    "core.map",
    "core.services",
    "core.transfer.evaluation",
    "interfaces.actions",
    "interfaces.http",
    "interfaces.mcp",
    "interfaces.rest",
    "interfaces.web",
    "app",
    "interfaces.cli",
]
# Exceptions: the core names ports, never what implements them, and interfaces do not know each other.
ENGINES = {
    "adapters": {"database", "search_index", "store"},
    **{part: {"adapters"} for part in ORDER if part.startswith(("core", "interfaces"))},
}
INTERFACES = {
    part
    for part in ORDER
    if part in ("interfaces.mcp", "interfaces.rest", "interfaces.web", "interfaces.cli")
}


def part_of(module: str) -> str:
    return max((part for part in ORDER if f"{module}.".startswith(f"{part}.")), key=len, default="")


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


def test_imports_follow_the_order() -> None:
    refused = []
    for path in FILES:
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        part = part_of(module)
        for name in all_imports(path):
            other = (
                part_of(name.removeprefix("commonplace."))
                if name.startswith("commonplace.")
                else ""
            )
            if (
                part
                and other
                and (
                    ORDER.index(other) > ORDER.index(part)
                    or other in ENGINES.get(part, ())
                    or ({part, other} <= INTERFACES and part != other)
                )
            ):
                refused.append(f"{module} may not import {name}")
    assert not refused, "\n".join(refused)


def test_files_and_folders_stay_small() -> None:
    long = [
        f"{path.relative_to(ROOT)}: {lines} lines"
        for path in FILES
        if (lines := len(path.read_text().splitlines())) > LONGEST_FILE
    ]
    full = [
        f"{folder.relative_to(ROOT)}: {count} modules"
        for folder in {path.parent for path in FILES}
        if (count := len(list(folder.glob("*.py")))) > LARGEST_FOLDER
    ]
    assert not long + full, "\n".join(long + full)


def test_what_is_imported_is_declared() -> None:
    project = tomllib.loads((ROOT.parents[1] / "pyproject.toml").read_text())["project"]
    asked = [
        *project["dependencies"],
        *(name for extra in project["optional-dependencies"].values() for name in extra),
    ]
    declared = {canonical(re.split(r"[^\w.-]", name)[0]) for name in asked}
    of_module = packages_distributions()
    for path in FILES:
        for module in (
            {name.split(".")[0] for name in all_imports(path)}
            - sys.stdlib_module_names
            - {"commonplace"}
        ):
            assert declared & {canonical(name) for name in of_module.get(module, [module])}, (
                f"{path} imports {module}"
            )


def canonical(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def test_every_module_has_a_place_in_the_order() -> None:
    modules = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in FILES
    ]
    assert [module for module in modules if not part_of(module)] == [
        "__init__",
        "__main__",
        "core",
        "interfaces",
    ]


def test_nothing_uses_the_standard_librarys_sqlite() -> None:
    """Two SQLite libraries that open one file in one process drop each other's locks, and the system's may be an old one."""
    repository = ROOT.parents[1]
    files = [
        path
        for folder in ("src", "tests", "tools", "benchmarks")
        for path in (repository / folder).rglob("*.py")
        if "side_by_side" not in path.parts
    ]  # other products, in their own processes
    assert [str(path) for path in files if "sqlite3" in all_imports(path)] == []
