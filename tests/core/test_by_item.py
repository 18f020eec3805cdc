"""Results by item: none twice, each with its best passages."""

from typing import Any

from commonplace.core.search.by_item import PASSAGES, by_item
from commonplace.model import Hit, Passage


def hit(rank: int, item: str, text: str) -> Hit:
    rest: dict[str, Any] = dict.fromkeys(Passage._fields[9:])
    passage = Passage(rank, item, item, "document", "Birds", None, rank, "", text, **rest)  # type: ignore[arg-type]
    return Hit(rank, 1 / rank, passage)


def test_items_come_once_with_their_best_passages() -> None:
    found = by_item(
        [
            hit(1, "gulls", "Gulls follow ships and steal fish from the deck in the harbour."),
            hit(2, "gulls", "They nest on cliffs."),
            hit(3, "terns", "Terns dive for sand eels, and fly from pole to pole each year."),
            hit(4, "gulls", "They live for thirty years."),
            hit(5, "copy", "Terns dive for sand eels, and fly from pole to pole each year."),
        ],
        9,
    )
    assert [item.best.passage.item_id for item in found] == ["gulls", "terns"]
    assert [hit.rank for hit in found[0].passages] == [1, 2] and PASSAGES == 2
    assert [hit.passage.item_id for hit in found[1].also] == ["copy"]
    assert len(by_item([hit(n, str(n), f"Text number {n}.") for n in range(1, 9)], 3)) == 3
