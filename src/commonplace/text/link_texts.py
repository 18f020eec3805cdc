"""Texts without the addresses that their links lead to: nobody searches for those."""

import re

_ADDRESS = re.compile(
    r"\]\((?:<(?:https?://|mailto:)[^<>\s]{1,2000}+>|(?:https?://|mailto:)[^()<>\s]{1,2000}+)\)"
)


def link_texts(text: str) -> str:
    """Leave of each Markdown link and picture only its text, in brackets."""
    return _ADDRESS.sub("]", text) if "](" in text else text
