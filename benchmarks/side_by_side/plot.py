"""Plots as SVG: bars on a logarithmic scale, and lines over the number of notes, logarithmic both ways."""

from html import escape
from math import ceil, floor, log10

WIDE, LEFT, RIGHT, ROW, TOP = 760, 250, 80, 24, 56
COLOURS = {"ours": "#2563eb", "engine": "#6b7280", "product": "#d97706"}
HIGH, SIDE, NAMES = 420, 60, 250


def bars(title: str, rows: list[tuple[str, str, float]]) -> str:
    """`rows`: name, kind, figure above 0; the best first."""
    low, high = floor(log10(min(v for *_, v in rows))), ceil(log10(max(v for *_, v in rows)))
    span, tall = max(1, high - low), TOP + ROW * len(rows) + 12

    def x(figure: float) -> float:
        return LEFT + (WIDE - LEFT - RIGHT) * (log10(figure) - low) / span

    parts = _paper(title, tall)
    for power in range(low, low + span + 1):
        at = x(10.0**power)
        parts.append(f'<path d="M{at:.1f} {TOP - 8}V{tall - 8}" stroke="#e5e7eb"/>')
        parts.append(
            f'<text x="{at:.1f}" y="{TOP - 14}" fill="#6b7280" text-anchor="middle" font-size="11">{10.0**power:g}</text>'
        )
    for n, (name, kind, figure) in enumerate(rows):
        y = TOP + ROW * n
        parts.append(f'<text x="{LEFT - 8}" y="{y + 13}" text-anchor="end">{escape(name)}</text>')
        parts.append(
            f'<rect x="{LEFT}" y="{y + 2}" width="{max(1.5, x(figure) - LEFT):.1f}" height="15" fill="{COLOURS[kind]}"/>'
        )
        parts.append(
            f'<text x="{x(figure) + 6:.1f}" y="{y + 14}" font-size="11">{figure:.3g}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def lines(title: str, rows: list[tuple[str, str, list[tuple[int, float]]]]) -> str:
    """`rows`: name, kind, (notes, figure above 0) by rising notes."""
    counts = sorted({count for *_, points in rows for count, _ in points})
    figures = [figure for *_, points in rows for _, figure in points]
    low, high = floor(log10(min(figures))), ceil(log10(max(figures)))
    across, span = max(1e-9, log10(counts[-1] / counts[0])), max(1, high - low)
    right, foot = WIDE - NAMES, HIGH - 30

    def x(count: int) -> float:
        return SIDE + (right - SIDE) * log10(count / counts[0]) / across

    def y(figure: float) -> float:
        return foot - (foot - TOP) * (log10(figure) - low) / span

    parts = _paper(title, HIGH)
    for power in range(low, low + span + 1):
        at = y(10.0**power)
        parts.append(f'<path d="M{SIDE} {at:.1f}H{right}" stroke="#e5e7eb"/>')
        parts.append(
            f'<text x="{SIDE - 8}" y="{at + 4:.1f}" fill="#6b7280" text-anchor="end" font-size="11">{10.0**power:g}</text>'
        )
    for count in counts:
        parts.append(
            f'<text x="{x(count):.1f}" y="{foot + 20}" fill="#6b7280" text-anchor="middle" font-size="11">{count:,}</text>'
        )
    above, ends = TOP - 14.0, sorted(rows, key=lambda row: y(row[2][-1][1]))
    for name, kind, points in ends:
        path = "L".join(f"{x(count):.1f} {y(figure):.1f}" for count, figure in points)
        parts.append(f'<path d="M{path}" fill="none" stroke="{COLOURS[kind]}" stroke-width="2"/>')
        parts += [
            f'<circle cx="{x(count):.1f}" cy="{y(figure):.1f}" r="3" fill="{COLOURS[kind]}"/>'
            for count, figure in points
        ]
        last, figure = points[-1]
        above = max(
            above + 14, y(figure) + 4
        )  # names never lie on one another; a thin line leads to each
        parts.append(
            f'<path d="M{x(last) + 4:.1f} {y(figure):.1f}L{right + 12} {above - 4:.1f}" stroke="{COLOURS[kind]}" stroke-width="0.5"/>'
        )
        parts.append(
            f'<text x="{right + 16}" y="{above:.1f}" fill="{COLOURS[kind]}" font-size="12">{escape(name)}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _paper(title: str, tall: int) -> list[str]:
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {tall}" font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDE}" height="{tall}" fill="#fff"/>',
        f'<text x="12" y="22" font-weight="bold">{escape(title)}</text>',
    ]
