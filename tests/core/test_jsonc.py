"""Edits of JSON with comments: one entry changes, every other character stays."""

from typing import Any

import pytest

from commonplace.text import jsonc

PATH = ("mcpServers", "commonplace")
VALUE = {"url": "http://x/mcp", "headers": {"a": "b"}}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "{ }\n",
        '{"a":1}',
        '{"mcpServers":{"other":{}}}',
        '{"mcpServers": {"other": {}}, "z": [1, 2,],}',
        '{\n  "a": 1 // the last\n}\n',
        '// top\n{\n\t"a": 1,\n\t/* end { */\n}\n// after',
        '{\r\n  "mcpServers": {}\r\n}\r\n',
        '{\n    "mcpServers": {\n        "other": {"url": "//x"}, // keep, "this"\n    },\n}\n',
        '{"mcpServers": {"commonplace": {"url": "old"}, "other": 1} /* c */}',
        '\ufeff{\n  "a": "\\u00e9\\"}"\n}',
    ],
)
def test_an_entry_comes_and_goes(text: str) -> None:
    before: Any = jsonc.loads(text) if text else {}
    after = jsonc.put(text, PATH, VALUE)
    wanted = before | {
        "mcpServers": {**before.get("mcpServers", {}), "commonplace": VALUE},
    }
    assert jsonc.loads(after) == wanted
    assert jsonc.put(after, PATH, VALUE) == after
    assert [line for line in text.splitlines() if "//" in line and '"a"' not in line] == [
        line for line in after.splitlines() if line in text.splitlines() and "//" in line
    ]
    gone = jsonc.remove(after, PATH)
    del wanted["mcpServers"]["commonplace"]
    assert jsonc.loads(gone) == wanted
    assert jsonc.remove(gone, PATH) == gone
    if "other" in before.get("mcpServers", {}) and "commonplace" not in text and "\n" in text:
        assert gone == text.replace("}, // keep", "} // keep")  # a comma that nobody needs


def test_elements_of_lists() -> None:
    foreign = '{"hooks": {"Stop": [{"command": "theirs"} /* keep */]}}'
    ours = {"command": "ours"}.__eq__
    after = jsonc.put_into_list(foreign, ("hooks", "Stop"), {"command": "ours"}, ours)
    assert jsonc.loads(after)["hooks"]["Stop"] == [{"command": "theirs"}, {"command": "ours"}]
    assert "/* keep */" in after
    assert jsonc.put_into_list(after, ("hooks", "Stop"), {"command": "ours"}, ours) == after
    gone = jsonc.remove_from_list(after, ("hooks", "Stop"), ours)
    assert jsonc.loads(gone) == jsonc.loads(foreign)


@pytest.mark.parametrize(
    "text",
    ["{", '{"a": 1', "[1, 2", '{"a" 1}', "{a: 1}", '{"a": 1} x', "[1}", '{"a": 1 "b": 2}', "/*"],
)
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        jsonc.put(text, PATH, VALUE)


@pytest.mark.parametrize("text", ["[]", '{"mcpServers": 1}', '{"mcpServers": [1]}'])
def test_what_cannot_have_the_entry_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        jsonc.put(text, PATH, VALUE)


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(ValueError):
        jsonc.loads("[" * 100_000)
