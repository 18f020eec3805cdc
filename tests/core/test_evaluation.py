"""Metrics with known answers, and retrieval sets as people write them."""

import json
from math import log2
from pathlib import Path

import pytest

from commonplace.core.transfer.evaluation import measure, read_set
from commonplace.errors import Invalid


def lines(*rows: object) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def write_set(folder: Path, **files: str) -> Path:
    contents = {
        "corpus.jsonl": lines(
            {"_id": "d1", "title": "One", "text": "first"}, {"_id": "d2", "text": "second"}
        ),
        "queries.jsonl": lines(
            {"_id": "q1", "text": "what is first?"}, {"_id": "q2", "text": "nobody judged this"}
        ),
        "qrels.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t0\n",
    }
    for name, content in (
        contents | {name.replace("_", "."): content for name, content in files.items()}
    ).items():
        (folder / name).write_text(content)
    return folder


def test_metrics_of_known_rankings() -> None:
    perfect = measure(["a", "b", "x"], {"a": 1, "b": 1})
    assert perfect == {"ndcg@10": 1.0, "recall@10": 1.0, "recall@5": 1.0, "mrr@10": 1.0}
    second = measure(["x", "a"], {"a": 1, "b": 1})
    assert second["mrr@10"] == 0.5
    assert second["recall@10"] == 0.5
    assert second["ndcg@10"] == pytest.approx((1 / log2(3)) / (1 + 1 / log2(3)))
    assert measure([*"vwxyz", "a"], {"a": 1})["recall@5"] == 0.0
    assert set(measure(["x"] * 10 + ["a"], {"a": 1}).values()) == {0.0}


def test_a_higher_judgement_counts_for_more() -> None:
    judged = {"best": 2, "good": 1}
    assert measure(["best", "good"], judged)["ndcg@10"] == 1
    assert measure(["good", "best"], judged)["ndcg@10"] < 1


def test_a_set_is_read_with_the_queries_that_were_judged(tmp_path: Path) -> None:
    found = read_set(write_set(tmp_path))
    assert [d.title for d in found.documents] == ["One", ""]
    assert [q.id for q in found.queries] == ["q1"]
    assert found.judgements == {"q1": {"d1": 1}}


@pytest.mark.parametrize(
    "name, content, complaint",
    [
        ("corpus_jsonl", "{not json}\n", "corpus.jsonl, line 1"),
        ("corpus_jsonl", lines({"_id": "d1"}), "corpus.jsonl, line 1"),
        ("corpus_jsonl", lines({"_id": "d1", "text": 5}), "must be strings"),
        ("corpus_jsonl", lines({"_id": "d1", "text": "a"}, {"_id": "d1", "text": "b"}), "twice"),
        ("corpus_jsonl", "", "empty"),
        ("queries_jsonl", lines(["q1", "text"]), "queries.jsonl, line 1"),
        ("queries_jsonl", lines({"_id": "q1", "text": "?", "group": "nowhere"}), "nowhere"),
        ("qrels_tsv", "query-id\tcorpus-id\tscore\nq1 d1 1\n", "qrels.tsv, line 2"),
        ("qrels_tsv", "query-id\tcorpus-id\tscore\nq1\td9\t1\n", "'d9' is not in corpus.jsonl"),
        ("qrels_tsv", "query-id\tcorpus-id\tscore\nq9\td1\t1\n", "'q9' is not in queries.jsonl"),
        ("qrels_tsv", "query-id\tcorpus-id\tscore\n", "no judgement"),
    ],
)
def test_a_bad_file_is_named_with_its_line(
    tmp_path: Path, name: str, content: str, complaint: str
) -> None:
    with pytest.raises(Invalid, match=complaint):
        read_set(write_set(tmp_path, **{name: content}))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    (write_set(tmp_path) / "qrels.tsv").unlink()
    with pytest.raises(Invalid, match=r"no qrels\.tsv"):
        read_set(tmp_path)
