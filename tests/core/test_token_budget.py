"""Packs keep to their budget: all titles first, then texts by rank."""

from importlib.util import find_spec
from pathlib import Path

from hypothesis import given, strategies as st

from commonplace.core.memory.token_budget import Also, Line, left_out, pack, shortened, tokens

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
    unique_by=lambda line: line.item_id,
)


@given(LINES, st.integers(1, 30), st.integers(200, 3000))
def test_within_the_budget_in_order_and_all_accounted_for(
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
    order = [line.item_id for line in lines]
    places = [order.index(line.item_id) for line in packed.lines]
    assert places == sorted(places)
    assert len(packed.lines) + sum(packed.left_out.values()) == len(lines)


def test_all_titles_come_before_any_text_and_texts_go_by_rank() -> None:
    lines = [
        Line("a", f"claim_{n}", str(n), "claim", f"Title {n}", "word " * 60, "", 1 - n / 10, "")
        for n in range(8)
    ]
    packed = pack(lines, limit=10, budget=400, headings=HEADINGS)
    assert [line.item_id for line in packed.lines] == [str(n) for n in range(8)]
    lengths = [len(line.text) for line in packed.lines]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] > 120 and lengths[-1] == 0


def test_near_duplicates_are_named_within_the_budget() -> None:
    also = tuple(Also(f"claim_{n}", "Same") for n in range(2, 12))
    line = Line("a", "claim_1", "1", "claim", "Title", "word " * 60, "", 1.0, "", also)
    packed = pack([line], limit=1, budget=300, headings=HEADINGS)
    assert all(f"[{other.id}]" in packed.lines[0].markdown() for other in also)
    assert tokens(packed.lines[0].markdown()) <= packed.tokens <= 300


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
