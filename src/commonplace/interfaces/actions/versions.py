"""Earlier versions of an item, and the jobs that work on it."""

from typing import Annotated

from commonplace import model
from commonplace.interfaces.actions.action import Action
from commonplace.interfaces.actions.fields import (
    WHOLE,
    Cli,
    ExpectedRevision,
    Id,
    Input,
    OneOf,
    number,
)
from commonplace.interfaces.actions.items import ITEM, OneItem
from commonplace.interfaces.actions.shapes import Field, Listing, Shape, said


class OneVersion(OneItem):
    revision: Annotated[
        int, number(1, 2**31 - 1, "As the list of versions tells it"), WHOLE, Cli(argument=True)
    ]


class VersionToRestore(OneVersion):
    expected_revision: ExpectedRevision = None


class OneJob(Input):
    job_id: Id


VERSION = Shape("ItemVersion", model.Version, "revision title word_count replaced_at")
FULL_VERSION = Shape("FullItemVersion", model.Version, "text", base=VERSION)
DIFF_LINE = Shape(
    "DiffLine",
    None,
    sign=said(Annotated[str, OneOf(("-", "+", " ", "…"))], "sign"),
    text=Field(str, lambda line, call: "".join(part for part, _ in line.parts)),
)
DIFFERENCE = Shape(
    "VersionDifference",
    None,
    revision=said(int, "version.revision"),
    followed_by=Field(
        int | None,
        lambda diff, call: diff.followed_by.revision if diff.followed_by else None,
        "Revision that it is compared with; null: the present text",
    ),
    lines=Field(
        [DIFF_LINE],
        lambda diff, call: (
            None if diff.lines is None else [DIFF_LINE(line, call) for line in diff.lines]
        ),
        "null: the texts are too long to be compared",
        null=True,
    ),
)
JOB = Shape("Job", model.Job, "id item_id kind state progress attempts error created_at updated_at")


ACTIONS = (
    Action(
        "list_versions",
        "List an item's earlier versions, newest first",
        OneItem,
        "versions.of",
        Listing("versions", VERSION),
        "GET /api/v1/items/{item_id}/versions",
        cli="history",
    ),
    Action(
        "get_version",
        "Read an earlier version",
        OneVersion,
        "versions.get",
        FULL_VERSION,
        "GET /api/v1/items/{item_id}/versions/{revision}",
        cli="history",
    ),
    Action(
        "compare_version",
        "Compare an earlier version with the next one",
        OneVersion,
        "versions.compare",
        DIFFERENCE,
        "GET /api/v1/items/{item_id}/versions/{revision}/diff",
        cli="history",
        description="Returns a line diff against the next version, or against the current text.",
    ),
    Action(
        "restore_version",
        "Restore an earlier version",
        VersionToRestore,
        "versions.restore",
        ITEM,
        "POST /api/v1/items/{item_id}/versions/{revision}/restore",
        cli="history",
        description="Makes its text the item's text again. The present text becomes a version.",
    ),
    Action(
        "get_job",
        "Read the status of a job",
        OneJob,
        "library.job",
        JOB,
        "GET /api/v1/jobs/{job_id}",
    ),
    Action(
        "retry_item",
        "Retry failed work of an item",
        OneItem,
        "library.retry",
        ITEM,
        "POST /api/v1/items/{item_id}/retry",
        cli="retry",
    ),
    Action(
        "retry_job",
        "Retry a failed job",
        OneJob,
        "library.retry_job",
        JOB,
        "POST /api/v1/jobs/{job_id}/retry",
    ),
)
