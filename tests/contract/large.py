"""Small libraries that are searched as large ones are."""

import pytest

from commonplace.database import Tx
from commonplace.search_index import snapshot
from commonplace.search_index.postgres import counts, index, plans
from tests.contract.library import STAMP


def count_terms_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the counts of terms of every scope."""
    monkeypatch.setattr(counts, "COUNTED_FROM", 1)
    monkeypatch.setattr(counts, "COUNTED_UNTIL", 1)
    monkeypatch.setattr(plans, "COUNTED_INSIDE", 0)


def use_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search by sign bits on SQLite; by keys, and as if there were an HNSW index, on Postgres."""
    monkeypatch.setattr(snapshot, "EXACT_UP_TO", 0)
    monkeypatch.setattr(snapshot, "ONE_SCAN_UP_TO", 0)
    count_terms_always(monkeypatch)
    monkeypatch.setattr(counts, "LARGE", 0)
    monkeypatch.setattr(counts, "NO_LONGER_LARGE", 0)
    settle = counts.settle

    def settle_with_keys(tx: Tx, changes: list[counts.Change], _: object) -> None:
        settle(tx, changes, _give_indexes)

    monkeypatch.setattr(index.counts, "settle", settle_with_keys)


def _give_indexes(tx: Tx, library_id: str) -> None:
    counts.add_keys(tx, library_id, "w.keys IS NULL")
    tx.run(
        """UPDATE scope_sizes SET keyed = 2, nearest = :stamp
           WHERE library_id = :library_id AND folder_id = :whole""",
        stamp=STAMP,
        library_id=library_id,
        whole=counts.WHOLE,
    )
