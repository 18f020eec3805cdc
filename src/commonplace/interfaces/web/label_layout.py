"""Place labels in a drawing beside their dots, without overlaps."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

CHARACTER, BOLD, HEIGHT, GAP = (
    6.8,
    7.8,
    15.0,
    4.0,
)  # of a name's letters, as wide as most fonts have them
Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Label:
    x: float
    y: float
    anchor: str
    fits: bool = True  # False: it would stand across another one


def place_labels(
    points: Sequence[tuple[float, float]],
    radii: Sequence[float],
    longs: Sequence[float],
    width: float,
    height: float,
) -> list[Label]:
    """Place labels in order of importance, each where it is free: below, above, outward, inward."""
    dots = [(x - r, y - r, x + r, y + r) for (x, y), r in zip(points, radii, strict=True)]
    taken: list[Box] = []
    found = []
    for n, ((x, y), radius, long) in enumerate(zip(points, radii, longs, strict=True)):
        others = [dot for m, dot in enumerate(dots) if m != n]
        choices = list(_choices(x, y, radius, long, outwards=x >= width / 2))
        free = next(
            (
                (label, box)
                for label, box in choices
                if box[0] >= 0
                and box[2] <= width
                and box[1] >= 0
                and box[3] <= height
                and not any(_cross(box, each) for each in (*taken, *others))
            ),
            None,
        )
        label, box = free or choices[0]
        if free or n == 0:
            taken.append(box)
        found.append(label if free else Label(label.x, label.y, label.anchor, fits=False))
    return found


def _choices(
    x: float, y: float, radius: float, long: float, *, outwards: bool
) -> Iterator[tuple[Label, Box]]:
    for at in (y + radius + HEIGHT - 2, y - radius - GAP - 1):
        yield Label(x, at, "middle"), (x - long / 2, at - HEIGHT + 3, x + long / 2, at + 3)
    for right in (outwards, not outwards):
        edge = x + radius + GAP if right else x - radius - GAP
        yield (
            Label(edge, y + 4, "start" if right else "end"),
            (
                edge if right else edge - long,
                y + 4 - HEIGHT + 3,
                edge + long if right else edge,
                y + 7,
            ),
        )


def _cross(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
