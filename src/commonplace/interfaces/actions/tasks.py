"""Inputs of the actions on tasks, epics and memories, and answers about plans."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from typing_extensions import TypedDict

from commonplace import model
from commonplace.core.entities import validation as rules
from commonplace.core.work.planning import Estimate as CoreEstimate, Suggestion as CoreSuggestion
from commonplace.core.work.priorities import Ranked as CoreRanked
from commonplace.interfaces.actions.entities import (
    DueDate,
    PriorityName,
    Reference,
    References,
    Short,
    ShortList,
)
from commonplace.interfaces.actions.items import (
    NOT_BLANK,
    Input,
    not_blank,
    web_address,
    whole_number,
)

Revision = Annotated[
    Annotated[int, Field(ge=1, le=2**31 - 1), BeforeValidator(whole_number)] | None,
    Field(
        description=(
            "Change it only if it is still at this revision; otherwise `conflict`, with the "
            "present one"
        )
    ),
]
Reason = Annotated[
    str,
    Field(min_length=1, max_length=2_000, json_schema_extra=NOT_BLANK),
    BeforeValidator(not_blank),
]
LongText = Annotated[
    str,
    Field(min_length=1, max_length=rules.LONGEST_CONTENT, json_schema_extra=NOT_BLANK),
    BeforeValidator(not_blank),
]
Hours = Annotated[
    float,
    Field(gt=0, le=100_000),
    BeforeValidator(lambda value: float(value) if type(value) is int else value),
]


class StepInput(Input):
    """The input of an action that needs nothing but an optional revision."""

    expected_revision: Revision = None

    @property
    def metadata(self) -> dict[str, Any]:
        """Facts to add to the metadata of the entity."""
        return {}


class BlockInput(StepInput):
    reason: Annotated[Reason, Field(description="Why it is blocked")]


class ReviewInput(StepInput):
    pr_url: Annotated[
        Annotated[str, Field(max_length=2_000), AfterValidator(web_address)] | None,
        Field(description="URL of the pull request"),
    ] = None
    commit_shas: Annotated[ShortList | None, Field(description="Commits to review")] = None

    @property
    def metadata(self) -> dict[str, Any]:
        return self.model_dump(include={"pr_url", "commit_shas"}, exclude_none=True)


class CompleteInput(StepInput):
    learnings: Annotated[
        LongText | None,
        Field(description="What was learned; stored as an episode derived from the task"),
    ] = None
    actual_hours: Annotated[Hours | None, Field(description="Actual hours; used for estimates")] = (
        None
    )

    @property
    def metadata(self) -> dict[str, Any]:
        return self.model_dump(include={"actual_hours"}, exclude_none=True)


class NoteInput(StepInput):
    content: Annotated[LongText, Field(description="The note")]

    @model_validator(mode="before")
    @classmethod
    def _accept_aliases(cls, value: Any) -> Any:
        return _rename_fields(value, {"note": "content", "text": "content"})


class SupersedeInput(StepInput):
    by: Annotated[Reference | None, Field(description="Id of the replacement")] = None
    content: Annotated[
        LongText | None, Field(description="Text of a new memory that replaces it")
    ] = None
    title: Annotated[str | None, Field(max_length=200, description="With content: its title")] = (
        None
    )
    reason: Annotated[Reason | None, Field(description="Why")] = None


class MarkInput(StepInput):
    reason: Annotated[Reason | None, Field(description="Why")] = None


class EpicChanges(StepInput):
    """Fields that are left out do not change; at least one must change."""

    title: Annotated[str, Field(max_length=rules.LONGEST_TITLE)] = ""
    status: Annotated[Short, Field(description="Only where the drawing leads from where it is")] = (
        ""
    )
    priority: PriorityName = "medium"
    assignees: Annotated[ShortList, Field(default_factory=list)]
    due_date: Annotated[DueDate | None, Field(description="ISO date; null takes it away")] = None
    tags: Annotated[ShortList, Field(default_factory=list)]
    technologies: Annotated[ShortList, Field(default_factory=list)]
    languages: Annotated[ShortList, Field(default_factory=list)]
    category: Annotated[str, Field(max_length=rules.LONGEST_WORD)] = ""
    project: Annotated[Reference, Field(description="Id of the project to move it to")] = ""

    @property
    def changes(self) -> dict[str, Any]:
        return self.model_dump(include=self.model_fields_set - {"expected_revision"})


class TaskChanges(EpicChanges):
    epic: Annotated[
        Reference | None, Field(description="Id of the epic it is part of; null: of none")
    ] = None
    depends_on: Annotated[
        References,
        Field(
            default_factory=list,
            description=(
                "Ids of tasks and epics that must be done before, in place of those that are there"
            ),
        ),
    ]

    @model_validator(mode="before")
    @classmethod
    def _accept_aliases(cls, value: Any) -> Any:
        return _rename_fields(value, {"epic_id": "epic", "project_id": "project"})


def _rename_fields(value: Any, names: dict[str, str]) -> Any:
    """Accept the names that agents use for a field, unless the field is there itself."""
    if not isinstance(value, dict):
        return value
    return {
        names[name] if name in names and names[name] not in value else name: entry
        for name, entry in value.items()
    }


# -- going out


class RankedTask(TypedDict):
    id: str
    title: str
    status: str
    priority: str | None
    due_date: str | None
    assignees: list[str]
    score: int
    ready: Annotated[bool, Field(description="Neither blocked nor waiting for another")]
    reasons: list[str]
    waits_for: list[str]


def ranked_task(value: CoreRanked) -> RankedTask:
    item = value.item
    return {
        "id": item.entity_id,
        "title": item.title,
        "status": item.status,
        "priority": item.priority or None,
        "due_date": item.due_date,
        "assignees": list(item.assignees),
        "score": value.score,
        "ready": value.ready,
        "reasons": list(value.reasons),
        "waits_for": [other.entity_id for other in value.waits_for],
    }


class Suggestion(RankedTask):
    action: Annotated[str, Field(description="The action of `manage` that would move it on")]


def suggestion(value: CoreSuggestion) -> Suggestion:
    return {**ranked_task(value.ranked), "action": value.action}


class Precedent(TypedDict):
    id: str
    title: str
    likeness: float
    hours: float | None
    days: float | None


class Estimate(TypedDict):
    hours: float | None
    days: float | None
    low: float | None
    high: float | None
    confidence: Annotated[str, Field(json_schema_extra={"enum": ["none", "low", "medium", "high"]})]
    explanation: str
    based_on: list[Precedent]


def estimate(value: CoreEstimate) -> Estimate:
    return {
        "hours": value.hours,
        "days": value.days,
        "low": value.low,
        "high": value.high,
        "confidence": value.confidence,
        "explanation": value.explanation,
        "based_on": [
            {
                "id": p.item.entity_id,
                "title": p.item.title,
                "likeness": p.likeness,
                "hours": p.hours,
                "days": p.days,
            }
            for p in value.precedents
        ],
    }


def cycle(items: Sequence[model.Item]) -> list[dict[str, str]]:
    return [{"id": item.entity_id, "title": item.title} for item in items]
