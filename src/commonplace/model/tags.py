"""Tags that people choose, and automatic ones beside them."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from commonplace.model.ids import Json
from commonplace.model.items import Item

MOST_TAGS, LONGEST_TAG = 50, 100


@dataclass(frozen=True, slots=True)
class TagCount:
    name: str
    items: int


def choose_tags(item: Item, chosen: Sequence[str]) -> Json:
    """Return the changes that make these the tags that somebody chose, and keep others away."""
    away = [tag for tag in dict.fromkeys(item.tags + item.auto_tags) if tag not in chosen]
    return {"tags": tuple(chosen), "auto_tags": tuple(away[:MOST_TAGS])}


def derive_tags(item: Item, found: Iterable[str]) -> Json:
    """Return the changes that put these in place of the present automatic tags."""
    own, away = item.own_tags, {*item.auto_tags} - {*item.tags}
    taken = {tag.casefold() for tag in (*own, *away)}
    fresh: list[str] = []
    for tag in found:
        if tag.casefold() not in taken and len(own) + len(fresh) < MOST_TAGS:
            fresh.append(tag)
            taken.add(tag.casefold())
    return {"tags": (*own, *fresh), "auto_tags": (*fresh, *sorted(away))}


def replace_tags(item: Item, old: Collection[str], new: str | None) -> Json:
    """Return the changes that put one tag, or none, in the place of others. The new one counts as
    chosen; the old ones stay away."""
    replaced = [new if tag in old else tag for tag in item.tags]
    gone = [tag for tag in item.tags if tag in old and tag != new]
    away = dict.fromkeys([*(tag for tag in item.auto_tags if tag != new), *gone])
    return {
        "tags": tuple(dict.fromkeys(tag for tag in replaced if tag is not None)),
        "auto_tags": tuple(away)[:MOST_TAGS],
    }
