"""Run every measurement of this folder and write docs/lab/quality.md.

A measurement is a module with `async def figures()`, which returns rows (what, before, now). Name
some as arguments to run only these: their tables are printed, and the page stays as it is.
"""

import asyncio
import importlib
import pkgutil
import sys
import time
from pathlib import Path

from benchmarks import quality

PAGE = Path(__file__).parents[2] / "docs" / "lab" / "quality.md"
NOTES = Path(__file__).with_name("notes.md")


def table(name: str, doc: str, rows: list[tuple[str, str, str]]) -> str:
    head = [f"## {name.replace('_', ' ').capitalize()}", "", doc.strip(), ""]
    lines = [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows]
    return "\n".join([*head, "| | before | now |", "|---|---|---|", *lines, ""])


async def main(names: list[str]) -> None:
    known = [found.name for found in pkgutil.iter_modules(quality.__path__)]
    known = [name for name in known if not name.startswith("_")]
    tables = []
    for name in names or known:
        module = importlib.import_module(f"benchmarks.quality.{name}")
        if not hasattr(module, "figures"):
            continue
        began = time.monotonic()
        tables.append(table(name, module.__doc__ or "", await module.figures()))
        print(tables[-1], f"({time.monotonic() - began:.0f} s)\n", sep="", flush=True)
    if not names:
        notes = NOTES.read_text()
        PAGE.write_text(notes + "\n" + "\n".join(tables))
        print(f"Wrote {PAGE}.")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
