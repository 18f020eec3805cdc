"""The inputs of an add: a URL or a text, and over REST the page at the URL."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, model_validator

from commonplace.interfaces.actions.fields import (
    NOT_BLANK,
    UPLOADS,
    InKb,
    Input,
    OneOf,
    Title,
    WebAddress,
    about,
    chars,
)

if TYPE_CHECKING:
    from commonplace.core.items.drafts import Draft

LONGEST_PAGE = 8_000_000  # bytes of HTML


def _check_kind(kind: object) -> object:
    if kind not in ("url", "text"):
        raise ValueError(f"must be one of url, text; {UPLOADS}")
    return kind


class IngestSource(Input):
    kind: Annotated[
        str,
        OneOf(("url", "text")),
        BeforeValidator(_check_kind),
        about("`url` to fetch a URL, `text` to add a text that you send"),
    ]
    url: Annotated[
        WebAddress | None,
        about("With kind=url: web page, YouTube link, podcast page, feed or audio file"),
    ] = None
    text: Annotated[
        Annotated[str, chars(20, 500_000), NOT_BLANK] | None,
        about("With kind=text: 20 to 500,000 characters"),
    ] = None
    title: Annotated[Title | None, about("With kind=text: 1 to 500 characters")] = None
    in_kb: InKb = True
    auto_transform: Annotated[bool, about("Let a model write summary, key points and tags")] = False

    @model_validator(mode="after")
    def _check_fields_of_kind(self) -> "IngestSource":
        other = "url" if self.kind == "text" else "text"
        if getattr(self, other) is not None:
            raise ValueError(
                f"`{other}` does not go with kind={self.kind}; leave it out, or make two calls"
            )
        for needed in ("title", "text") if self.kind == "text" else ("url",):
            if getattr(self, needed) is None:
                raise ValueError(f"`{needed}` is required when kind={self.kind}")
        return self

    @property
    def draft(self) -> "Draft":
        from commonplace.core.items.drafts import Draft

        return Draft(
            kind=self.kind,
            title=self.title or "",
            text=self.text or "",
            url=self.url,
            in_kb=self.in_kb,
            auto_transform=self.auto_transform,
        )


class Ingest(IngestSource):
    html: Annotated[
        Annotated[str, chars(1, LONGEST_PAGE), NOT_BLANK] | None,
        about("With kind=url: the page as your browser shows it, up to 8 MB; nothing is fetched"),
    ] = None

    @model_validator(mode="after")
    def _check_page(self) -> "Ingest":
        if self.html is None:
            return self
        if self.kind == "text":
            raise ValueError("`html` goes with kind=url")
        if len(self.html.encode("utf-8", "replace")) > LONGEST_PAGE:
            raise ValueError("`html` is larger than 8 MB; upload it as a file")
        return self

    @property
    def draft(self) -> "Draft":
        return replace(super().draft, html=self.html or "")
