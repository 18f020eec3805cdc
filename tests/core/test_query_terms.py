"""Which words a query asks for, which a text adds, and that SQLite's engine finds the one by the other."""

import apsw
import pytest

from commonplace.text.language import detect
from commonplace.text.query_terms import extra_terms, for_embedding, parse_query


def found(text: str, query: str) -> bool:
    """Whether the keyword index finds the text, with the tokenizer that the store uses."""
    db = apsw.Connection(":memory:")
    try:
        db.execute(
            "CREATE VIRTUAL TABLE t USING fts5(text, extra, tokenize='porter unicode61 remove_diacritics 2')"
        )
        db.execute("INSERT INTO t VALUES (?, ?)", (text, extra_terms(text, detect(text))))
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
        ("Die alten Häuser am Meer wurden verkauft.", "Haus am Meer verkaufen"),
        ("Les chevaux du roi couraient dans la plaine.", "le cheval court dans les plaines"),
        ("Las copias de seguridad se restauran cada mes.", "restaurar una copia de seguridad"),
        ("Резервные копии восстанавливаются каждый месяц.", "как восстановить резервную копию"),
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


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The restore is tested every month on an empty machine.", "en"),
        ("Die Sicherung wird jeden Monat auf einem leeren Rechner geprüft.", "de"),
        ("La restauration est testée chaque mois sur une machine vide.", "fr"),
        ("バックアップは毎月テストされます。", "ja"),
        ("", None),
        ("```\nx = 1\n```", None),
        ("\0\ud800", None),
    ],
)
def test_the_language_of_a_text_is_detected_or_left_open(text: str, language: str | None) -> None:
    assert detect(text) == language


def test_a_query_in_english_gets_no_stems_of_other_languages() -> None:
    assert parse_query("databases are locked").phrases == (("databases",), ("locked",))


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("Wer leitet das Projekt mit der Kasse?", {"leitet", "leit", "projekt", "kasse", "kass"}),
        ("Comment est-ce qu'on fait une tarte ?", {"tarte", "tart"}),
        ("¿Qué es lo que le falta a la impresora?", {"falta", "falt", "impresora", "impresor"}),
        ("état civil", {"état", "civil", "etat"}),
        ("Wer bist du denn?", {"wer", "bist", "du", "denn"}),
    ],
)
def test_words_that_tell_nothing_in_its_language_are_not_asked_for(
    query: str, words: set[str]
) -> None:
    """Where there are others, and more than two words."""
    asked = {phrase[0] for phrase in parse_query(query).phrases if len(phrase) == 1}
    assert asked <= words and len(asked) >= min(2, len(words) // 2)


def test_a_noun_among_the_words_that_tell_nothing_still_counts_beside_others() -> None:
    assert ("jahr", "2025") in parse_query("Umsatz im Jahr 2025").phrases


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
    phrases = parse_query(text).phrases
    assert len(phrases) <= 64
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


@pytest.mark.parametrize(
    ("query", "phrases"),
    [
        ("東", [("東",)]),
        ("東京都", [("東京",), ("京都",)]),
        ("東京Tokyo都", [("東京",), ("都",), ("tokyo",)]),
        (
            "ｶﾀｶﾅ",
            [("ｶﾀｶﾅ",), ("カタ",), ("タカ",), ("カナ",)],
        ),  # as it is written, and in full width
        ("a.b", [("a", "b")]),  # single letters only with their neighbours
        ("x y", [("x",), ("y",), ("x", "y")]),  # or when they stand alone
        ("the heron", [("heron",)]),
        ("to be", [("to",), ("be",)]),  # all that there is
        ("heron heron", [("heron",), ("heron", "heron")]),  # each once
        ("heron of river bank", [("heron",), ("river",), ("bank",), ("river", "bank")]),
        ("parseHTTPServer", [("parsehttpserver",), ("parse",), ("http",), ("server",)]),
        ("v2Beta", [("v2beta",), ("v2",), ("beta",)]),
        ("NASAs", [("nasas",)]),  # no hump: a plural
    ],
)
def test_a_query_is_taken_apart(query: str, phrases: list[tuple[str, ...]]) -> None:
    assert list(parse_query(query).phrases) == phrases


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("b" * 256, 1),
        ("b" * 257, 0),  # the longest word
        ("a." * 16, 1),
        ("a." * 17, 0),  # the longest phrase
        (" ".join(f"w{n}" for n in range(100)), 64),
    ],
)
def test_a_query_has_its_bounds(query: str, count: int) -> None:
    assert len(parse_query(query).phrases) == count


def test_a_query_is_read_up_to_its_4000th_character() -> None:
    assert ("oxen",) in parse_query("x " * 1_998 + "oxen").phrases
    assert ("ox",) in parse_query("x " * 1_999 + "oxen").phrases


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Python3入門の本", "python3 入門 門の の本 の 入 本 門"),
        ("東・京", "東 京 京 東"),  # a mark is a gap to the engine
        ("ＡＢ東京cd", "ab cd 東京 京 東"),
        ("fooBar BAZQux aB1C", "foo bar baz qux a b1 c"),
    ],
)
def test_what_a_text_adds_to_the_index(text: str, words: str) -> None:
    assert extra_terms(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("runTarget_now", "run Target now"),
        ("HTTPServer", "HTTP Server"),
        ("a1B", "a1 B"),
        ("ABc", "ABc"),
        ("ABcd", "A Bcd"),
        ("The BBC said", "The BBC said"),
    ],
)
def test_embedders_read_identifiers_as_words(text: str, words: str) -> None:
    assert for_embedding(text) == words
