"""Packs keep to their budget, say nothing twice, and put the most useful first."""

from importlib.util import find_spec
from pathlib import Path

from hypothesis import given, strategies as st

from commonplace.core.memory.token_budget import Line, left_out, pack, shortened, tokens

HEADINGS = {"a": "First", "b": "Second"}
TEXTS = st.text(alphabet=st.sampled_from("abcdefgh  XY09-_.日é\n"), max_size=300)
LINES = st.lists(
    st.builds(
        lambda n, section, title, text, score: Line(
            section, f"claim_{n}", str(n), "claim", title, text, "", score, "r"
        ),
        st.integers(0, 40),
        st.sampled_from("ab"),
        st.text(alphabet="abcdef ", min_size=1, max_size=60),
        TEXTS,
        st.floats(0, 2),
    ),
    max_size=40,
)


@given(LINES, st.integers(1, 30), st.integers(200, 3000))
def test_within_the_budget_each_once_best_first_and_all_accounted_for(
    lines: list[Line], limit: int, budget: int
) -> None:
    packed = pack(lines, limit=limit, budget=budget, headings=HEADINGS)
    parts = [
        f"## {HEADINGS[name]}\n\n"
        + "\n".join(line.markdown() for line in packed.lines if line.section == name)
        for name in dict.fromkeys(line.section for line in packed.lines)
    ]
    assert (
        tokens("\n\n".join([*parts, left_out(packed.left_out, HEADINGS)]))
        <= packed.tokens
        <= budget
    )
    assert len(packed.lines) <= limit
    ids = [line.item_id for line in packed.lines]
    assert len(ids) == len(set(ids))
    scores = [line.score for line in packed.lines]
    assert scores == sorted(scores, reverse=True)
    assert len(packed.lines) + sum(packed.left_out.values()) + packed.repeats == len(
        {line.item_id for line in lines}
    )


def test_what_says_the_same_is_there_once_in_its_best_place() -> None:
    lines = [
        Line(
            "a",
            f"claim_{n}",
            str(n),
            "claim",
            "Pool size",
            "The pool must have twenty connections",
            "",
            n / 10,
            "",
        )
        for n in range(3)
    ]
    packed = pack(lines, limit=10, budget=1000, headings=HEADINGS)
    assert ([line.item_id for line in packed.lines], packed.repeats) == (["2"], 2)


def test_one_section_takes_more_than_half_only_where_the_others_leave_it() -> None:
    def lines(section: str, score: float, many: int, text: str = "") -> list[Line]:
        return [
            Line(
                section,
                f"{section}_{n}",
                f"{section}{n}",
                "claim",
                f"{section * 3}{n}",
                text and f"{section}{n} {text}",
                "",
                score,
                "",
            )
            for n in range(many)
        ]

    def taken(found: list[Line], limit: int, budget: int) -> dict[str, int]:
        packed = pack(found, limit=limit, budget=budget, headings=HEADINGS).lines
        return {name: sum(line.section == name for line in packed) for name in HEADINGS}

    assert taken([*lines("a", 1.0, 30), *lines("b", 0.1, 30)], 20, 3_000) == {"a": 10, "b": 10}
    assert taken([*lines("a", 1.0, 30), *lines("b", 0.1, 3)], 20, 3_000) == {"a": 17, "b": 3}
    assert taken(lines("a", 1.0, 30), 20, 3_000) == {"a": 20, "b": 0}
    found = taken(
        [*lines("a", 1.0, 90, "word " * 60), *lines("b", 0.1, 4, "other " * 60)], 90, 1_000
    )
    assert found["b"] == 4 and found["a"] > 4


def test_a_long_text_is_cut_before_it_is_left_out() -> None:
    line = Line("a", "claim_1", "1", "claim", "Title", "word " * 500, "", 1.0, "")
    [short] = pack([line], limit=1, budget=200, headings=HEADINGS).lines
    assert short.text.endswith("…")
    assert len(short.text) <= 420


@given(st.text(max_size=200), st.integers(1, 100))
def test_shortened_keeps_to_its_length(text: str, longest: int) -> None:
    assert len(shortened(text, longest)) <= longest


def test_tokens_are_never_estimated_too_low() -> None:
    """Against a real tokenizer on real texts: this project's own documents and code, and other scripts."""
    from tokenizers import Tokenizer

    package = find_spec("wordllama")
    assert package is not None and package.origin is not None
    vocabulary = next((Path(package.origin).parent / "tokenizers").glob("*.json"))
    tokenizer = Tokenizer.from_file(str(vocabulary))
    root = Path(__file__).parents[2]
    for file in [*root.glob("docs/*.md"), *root.glob("src/commonplace/core/*.py")]:
        text = file.read_text()
        assert tokens(text) >= len(tokenizer.encode(text, add_special_tokens=False).ids), file
    for text in (
        "日本語のテキストです。",
        "Съешь же ещё этих мягких французских булок",
        "[decision_8HkfjPq2mWxz] 2026-11-15T10:00:00Z",
    ):
        assert tokens(text) >= len(tokenizer.encode(text, add_special_tokens=False).ids), text
