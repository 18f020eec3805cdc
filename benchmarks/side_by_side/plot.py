"""Bars on a logarithmic scale, as SVG: enough to see who is how far from whom."""

from html import escape
from math import ceil, floor, log10

WIDE, LEFT, RIGHT, ROW, TOP = 760, 250, 80, 24, 56
COLOURS = {"ours": "#2563eb", "engine": "#9ca3af", "product": "#d97706"}


def bars(title: str, rows: list[tuple[str, str, float]]) -> str:
    """`rows`: name, kind, figure above 0; the best first."""
    low, high = floor(log10(min(v for *_, v in rows))), ceil(log10(max(v for *_, v in rows)))
    span, tall = max(1, high - low), TOP + ROW * len(rows) + 12

    def x(figure: float) -> float:
        return LEFT + (WIDE - LEFT - RIGHT) * (log10(figure) - low) / span

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {tall}" font-family="sans-serif" font-size="13">',
             f'<rect width="{WIDE}" height="{tall}" fill="#fff"/>', f'<text x="12" y="22" font-weight="bold">{escape(title)}</text>']
    for power in range(low, low + span + 1):
        at = x(10.0 ** power)
        parts.append(f'<path d="M{at:.1f} {TOP - 8}V{tall - 8}" stroke="#e5e7eb"/>')
        parts.append(f'<text x="{at:.1f}" y="{TOP - 14}" fill="#6b7280" text-anchor="middle" font-size="11">{10.0 ** power:g}</text>')
    for n, (name, kind, figure) in enumerate(rows):
        y = TOP + ROW * n
        parts.append(f'<text x="{LEFT - 8}" y="{y + 13}" text-anchor="end">{escape(name)}</text>')
        parts.append(f'<rect x="{LEFT}" y="{y + 2}" width="{max(1.5, x(figure) - LEFT):.1f}" height="15" fill="{COLOURS[kind]}"/>')
        parts.append(f'<text x="{x(figure) + 6:.1f}" y="{y + 14}" font-size="11">{figure:.3g}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
