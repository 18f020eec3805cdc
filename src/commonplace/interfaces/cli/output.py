"""Output of commands: JSON or text on stdout, notes and progress bars on stderr."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import typer

Advance = Callable[[int, int], None]  # (done so far, in all)


def as_json(value: Any) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False))


def text(line: str = "") -> None:
    typer.echo(line)


def note(line: str) -> None:
    """Print a line for people, beside the answer."""
    typer.echo(line, err=True)


def count_items(count: int) -> str:
    return f"{count:,} item{'s' * (count != 1)}"


def size(number: float) -> str:
    for unit in ("bytes", "KB", "MB"):
        if number < 1000:
            return f"{number:.0f} {unit}"
        number /= 1000
    return f"{number:.1f} GB"


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]], empty: str = "") -> None:
    """Print a table on a terminal, tab-separated lines in a pipe, where nothing may be cut off.

    `empty`: what to say beside the answer if there are no rows.
    """
    if not rows and empty:
        note(empty)
        return
    if not sys.stdout.isatty():
        for row in rows:
            typer.echo("\t".join(cell(value) for value in row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(*columns, box=None, pad_edge=False)
    for row in rows:
        drawn.add_row(*(Text(cell(value)) for value in row))
    Console().print(drawn)


@contextmanager
def progress(what: str) -> Iterator[Advance]:
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def cell(value: Any) -> str:
    """Return a value on one line, as people write it."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return f"{value.astimezone():%Y-%m-%d %H:%M}"
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(sorted(map(str, value)))
    return " ".join(str(value).split())
