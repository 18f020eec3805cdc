"""Unicode is normalized in linear time: runs of combining marks are cut at thirty, in what is compared and never in what is kept."""

import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import commonplace
from commonplace.model import normalize

ROOT = Path(commonplace.__file__).parent


@given(st.text(st.sampled_from("ae \u0301\u0323\u0344\u0f73\u0f71\uff9e가각語ﬁ"), max_size=60))
def test_usual_text_is_normalized_as_always(text: str) -> None:
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        if not re.search("[\u0301\u0323\u0344\u0f73\u0f71\uff9e]{31}", text):
            assert normalize(form, text) == unicodedata.normalize(form, text)


@pytest.mark.parametrize("mark", ["\u0301", "\u0f73", "\uff9e", "\u0344", "\U0001e8d0"])
def test_long_runs_of_marks_are_cut_at_thirty(mark: str) -> None:
    assert normalize("NFKD", "a" + mark * 500 + "b") == unicodedata.normalize(
        "NFKD", "a" + mark * 30 + "b"
    )
    assert normalize("NFC", "a" + mark * 30 + "b") == unicodedata.normalize(
        "NFC", "a" + mark * 30 + "b"
    )


def test_nothing_else_normalizes() -> None:
    others = [
        str(path.relative_to(ROOT))
        for path in sorted(ROOT.rglob("*.py"))
        if "unicodedata.normalize(" in path.read_text()
    ]
    assert others == ["model/ids.py"]
