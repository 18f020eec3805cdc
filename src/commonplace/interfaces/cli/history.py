"""history list, get, diff."""

from typing import Annotated

import typer

from commonplace.interfaces.cli import output
from commonplace.interfaces.cli.command import Group, Session, item_argument

WhichItem = Annotated[str, item_argument("ITEM")]
Revision = Annotated[
    int,
    typer.Argument(
        min=1, max=2**31 - 1, help="Revision, as shown by `history list`.", show_default=False
    ),
]


async def list_versions(session: Session, item: WhichItem) -> None:
    """List an item's earlier versions, newest first."""
    versions = await session.services.versions.of(session.caller, item)
    session.show_table(
        {"versions": versions},
        ["revision", "until", "words", "title"],
        [(each.revision, each.replaced_at, each.word_count, each.title) for each in versions],
    )


async def get_version(session: Session, item: WhichItem, revision: Revision) -> None:
    """Show an earlier version."""
    from commonplace.interfaces.actions import versions as version_shapes

    version = await session.services.versions.get(session.caller, item, revision)
    session.show(version_shapes.version_in_full(version), version.text)


async def compare_version(session: Session, item: WhichItem, revision: Revision) -> None:
    """Show what changed in the next version, or since the last one."""
    from commonplace.interfaces.actions import versions as version_shapes

    found = version_shapes.difference(
        await session.services.versions.compare(session.caller, item, revision)
    )
    if found["lines"] is None and not session.as_json:
        output.note("The texts are too long to be compared line by line.")
        return
    session.show(
        found,
        "\n".join(f"{line['sign']} {line['text']}".rstrip() for line in found["lines"] or ()),
    )


GROUP: Group = (
    "history",
    "Show earlier versions of an item.",
    {"list": list_versions, "get": get_version, "diff": compare_version},
)
