"""Find the images of a Markdown text."""

from collections.abc import Iterator

_LONGEST_TEXT, _LONGEST_ADDRESS = 1_000, 2_000  # characters


def image_addresses(text: str) -> Iterator[str]:
    """Yield the web address of each image, in order."""
    at = text.find("![")
    while at >= 0:
        middle = text.find("](", at, at + _LONGEST_TEXT)
        end = text.find(")", middle, middle + _LONGEST_ADDRESS) if middle >= 0 else -1
        if end >= 0:
            address = text[middle + 2 : end].partition(" ")[0].strip("<>")
            if address.startswith(("http://", "https://")):
                yield address
        at = text.find("![", max(end, at + 2))
