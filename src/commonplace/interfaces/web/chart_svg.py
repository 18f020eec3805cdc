"""Charts as SVG in the colours of the page, with their numbers as text for screen readers."""

from collections.abc import Mapping
from itertools import accumulate

from markupsafe import Markup, escape

WIDTH, HEIGHT, LOWER = 440, 150, 22


def bars(counts: Mapping[str, int], what: str) -> Markup:
    """Draw a bar for each day."""
    most = max([*counts.values(), 1])
    step = WIDTH / max(len(counts), 1)
    shapes = [
        f'<rect class="bar" x="{n * step + step * 0.12:.1f}" y="{_y(count, most):.1f}" '
        f'width="{step * 0.76:.1f}" '
        f'height="{HEIGHT - LOWER - _y(count, most):.1f}"><title>{escape(day)}: '
        f"{count}</title></rect>"
        for n, (day, count) in enumerate(counts.items())
        if count
    ]
    return _framed(
        counts,
        what,
        most,
        "".join(shapes),
        f"{sum(counts.values()):,} {what} in {len(counts)} days",
    )


def growth(counts: Mapping[str, int], total: int, what: str) -> Markup:
    """Draw the running total, day by day."""
    before = total - sum(counts.values())
    sums = list(accumulate(counts.values(), initial=before))[1:]
    most, step = max([*sums, 1]), WIDTH / max(len(sums) - 1, 1)
    points = " ".join(f"{n * step:.1f},{_y(value, most):.1f}" for n, value in enumerate(sums))
    base = HEIGHT - LOWER
    shape = (
        f'<polygon class="area" points="0,{base} {points} {WIDTH},{base}"/>'
        f'<polyline class="line" points="{points}"/>'
    )
    return _framed(counts, what, most, shape, f"{before:,} {what} before, {total:,} now")


def shares(counts: Mapping[str, int], what: str) -> Markup:
    """Draw the largest counts as horizontal bars."""
    most, row = max([*counts.values(), 1]), 26
    lines = [
        f'<text class="label" x="0" y="{n * row + 17}">{escape(_short(name))}</text>'
        f'<rect class="bar" x="160" y="{n * row + 6}" width="{count / most * 220:.1f}" height="14" '
        'rx="3"/>'
        f'<text class="value" x="{count / most * 220 + 168:.1f}" '
        f'y="{n * row + 17}">{count:,}</text>'
        for n, (name, count) in enumerate(counts.items())
    ]
    said = ", ".join(f"{name}: {count}" for name, count in counts.items())
    return Markup(
        '<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>'
    ).format(WIDTH, len(counts) * row + 4, f"{what}: {said}", Markup("".join(lines)))


def _y(value: int, most: int) -> float:
    return 8 + (HEIGHT - LOWER - 8) * (1 - value / most)


def _framed(counts: Mapping[str, int], what: str, most: int, shape: str, said: str) -> Markup:
    days = list(counts)
    ends = (
        (
            f'<text class="label" x="0" y="{HEIGHT - 5}">{escape(days[0])}</text>'
            f'<text class="label end" x="{WIDTH}" y="{HEIGHT - 5}">{escape(days[-1])}</text>'
        )
        if days
        else ""
    )
    frame = (
        f'<line class="axis" x1="0" y1="{HEIGHT - LOWER}" x2="{WIDTH}" y2="{HEIGHT - LOWER}"/>'
        f'<text class="label" x="0" y="16">{most:,}</text>'
    )
    return Markup(
        '<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>'
    ).format(WIDTH, HEIGHT, said, Markup(shape + frame + ends))


def _short(name: str) -> str:
    return name if len(name) <= 22 else f"{name[:21]}…"
