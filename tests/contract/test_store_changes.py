"""What processes hold in memory keeps up with the database: in whatever order writes end, however far behind it is."""

from collections.abc import Awaitable, Callable

import pytest

from commonplace.search_index import change_log
from commonplace.store import Store
from tests.contract.library import STAMP, Library, unit

pytestmark = pytest.mark.anyio


async def test_whoever_is_too_far_behind_reads_everything_anew(
    ann: Library, open_store: Callable[[], Awaitable[Store]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_log, "KEPT", 3)
    monkeypatch.setattr(change_log, "_PRUNED_EVERY", 1)
    other = Library(await open_store(), ann.id)
    items = [
        await ann.add(f"quartz {n}", title=f"t{n}", vectors=[unit(range(1, 17))]) for n in range(3)
    ]
    for round in range(3):
        assert len(await other.found("quartz")) == len(items)
        assert len(
            await other.store.sections.nearest(ann.scope(), unit(range(1, 17)), STAMP, 100)
        ) == len(items)
        items += [
            await ann.add(
                f"quartz {round} {n}", title=f"t{round} {n}", vectors=[unit(range(1, 17))]
            )
            for n in range(12)
        ]
        await ann.store.items.delete(ann.scope(), items.pop(round).id)
    assert len(await other.found("quartz")) == len(await ann.found("quartz")) == len(items)
