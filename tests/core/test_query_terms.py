"""Which words a query asks for, which a text adds, and that SQLite's engine finds the one by the other."""

import time

import apsw
import pytest

from commonplace.text import query_terms
from commonplace.text.query_terms import extra_terms, parse_query


def found(text: str, query: str) -> bool:
    """Whether the keyword index finds the text, with the tokenizer that the store uses."""
    db = apsw.Connection(":memory:")
    try:
        db.execute(
            "CREATE VIRTUAL TABLE t USING fts5(text, extra, tokenize='porter unicode61 remove_diacritics 2')"
        )
        db.execute("INSERT INTO t VALUES (?, ?)", (text, extra_terms(text)))
        match = " OR ".join('"' + " ".join(phrase) + '"' for phrase in parse_query(query).phrases)
        return (
            bool(match)
            and db.execute("SELECT 1 FROM t WHERE t MATCH ?", (match,)).fetchone() is not None
        )
    finally:
        db.close()


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("it failed with ERR_QUIC_7731 again", "ERR_QUIC_7731"),
        ("use os.path.join(a, b)", "os.path.join"),
        ("the code is -32605, meaning", "-32605"),
        ("class DiffExecutor:", "diff executor"),
        ("def diff_executor():", "DiffExecutor"),
        ("an HTTPServer answers", "server"),
        ("C++ and C# compile", "c++"),
        ("Crème brûlée", "creme BRULEE"),
        ("Creme brulee", "Cre\u0300me"),
        ("東京都は日本の首都である", "日本の首都はどこ"),
        ("吾輩は猫である", "猫"),
        ("カタカナのテスト", "ｶﾀｶﾅ"),
        ("Python3入門の本", "python3"),
        ("서울은 한국의 수도이다", "서울"),
        ("กรุงเทพมหานครเป็นเมืองหลวง", "กรุงเทพ"),
        ("नमस्ते दुनिया", "नमस्ते"),
        ("ΑΘΗΝΑ is Athens", "αθηνα"),
        ("To be, or not to be", "to be or not to be"),
    ],
)
def test_a_query_finds_its_text(text: str, query: str) -> None:
    assert found(text, query)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("東京都は日本の首都である", "大阪"),
        ("class DiffExecutor:", "execution-time"),
        ("what is the point of this", "what is the largest planet"),
    ],
)
def test_a_query_does_not_find_what_shares_nothing_telling(text: str, query: str) -> None:
    assert not found(text, query)


def test_an_exact_string_stays_together_and_its_parts_may_match_alone() -> None:
    assert parse_query("os.path.join").phrases == (
        ("os", "path", "join"),
        ("os",),
        ("path",),
        ("join",),
        ("os", "path"),
        ("path", "join"),
    )


def test_words_that_stand_side_by_side_are_asked_for_together_too() -> None:
    assert parse_query("rotate signing keys").phrases == (
        ("rotate",),
        ("signing",),
        ("keys",),
        ("rotate", "signing"),
        ("signing", "keys"),
    )


@pytest.mark.parametrize("query", ["", "   ", "!!! ... ???", "\"'*()^:-+", "\0", "\ud800"])
def test_a_query_without_words_asks_for_nothing(query: str) -> None:
    assert parse_query(query).phrases == ()


@pytest.mark.parametrize(
    "query", ['NEAR("a" b)', "title:secret", "a* OR b", '"unclosed', "scope AND x", "İSTANBUL ²"]
)
def test_no_operator_reaches_the_engine(query: str) -> None:
    phrases = parse_query(query).phrases
    assert phrases
    assert all(
        word and word == word.lower() and word.isalnum() for phrase in phrases for word in phrase
    )
    found("some text", query)


@pytest.mark.parametrize("query", ["word%d ", "東京%d都", "a%d.", "xY%d", "é"], ids=str)
def test_the_longest_query_is_bounded(query: str) -> None:
    text = "".join(query % n if "%" in query else query for n in range(20_000))[:100_000]
    began = time.process_time()
    phrases = parse_query(text).phrases
    assert time.process_time() - began < 0.5
    assert len(phrases) <= query_terms.MOST_PHRASES
    assert all(len(phrase) <= 16 and max(map(len, phrase)) <= 256 for phrase in phrases)


def test_plain_prose_adds_no_words() -> None:
    assert (
        extra_terms(
            "The BBC said that APIs and PDFs are fine; see example.com/a_b, naïve café, 3.14."
        )
        == ""
    )


def test_parts_of_identifiers_are_added() -> None:
    assert extra_terms("parseHTMLDocument and run_target") == "parse html document"
