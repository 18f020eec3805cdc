"""Libraries of real texts that several measurements share."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import metadata

from benchmarks.quality.retrieval import data, remembering_app
from commonplace.core.items.drafts import Record
from commonplace.core.services import Services
from commonplace.model import Caller, EntityType, Item, Kind, Relation, new_id, new_public_id

WORDS, CHARACTERS = 60, 20_000  # of a package's description, at least and at most


@dataclass(frozen=True, slots=True)
class Known:
    """An item to add."""

    id: str
    entity_type: str
    title: str
    text: str
    project: str | None = None


def development() -> list[Known]:
    lines = (data() / "memory" / "items.jsonl").read_text().splitlines()
    return [
        Known(row["_id"], row["entity_type"], row["title"], row["content"], row.get("project"))
        for row in map(json.loads, lines)
    ]


def packages(entity_type: str = EntityType.DOCUMENT) -> list[Known]:
    """The descriptions of the installed packages."""
    found: dict[str, Known] = {}
    for package in metadata.distributions():
        text = str(package.metadata.get_payload() or package.metadata["Description"] or "")
        if len(text.split()) >= WORDS:
            found[package.name] = Known(package.name, entity_type, package.name, text[:CHARACTERS])
    return sorted(found.values(), key=lambda known: known.id.lower())


def small_project() -> list[Known]:
    """A project of four entries, which no package is about."""
    return [
        Known(f"field-{kind}", kind, title, text, "Field notes")
        for kind, title, text in (
            (
                EntityType.DECISION,
                "Photos stay on the phone until there is wifi",
                "Botanists work where mobile data is expensive, so photos are sent at the hut.",
            ),
            (
                EntityType.PROCEDURE,
                "Release to the beta testers",
                "Raise the build number, let two rangers try it for a day, then invite the rest.",
            ),
            (
                EntityType.EPISODE,
                "Map tiles vanished after the upgrade",
                "The offline map was empty in the valley: the upgrade had moved the tile folder.",
            ),
            (
                EntityType.TASK,
                "Ask for the location only once",
                "The app asks for the position with each plant. Ask once a day instead.",
            ),
        )
    ]


@dataclass(frozen=True, slots=True)
class Library:
    services: Services
    caller: Caller
    ids: Mapping[str, str]  # of the items that were added, by item
    projects: Mapping[str, str]  # items by name


@asynccontextmanager
async def library(known: Sequence[Known], embedder: str) -> AsyncIterator[Library]:
    """Open a library with these items and their vectors, without links."""
    async with remembering_app(embedder) as (services, caller):
        names = sorted({each.project for each in known if each.project})
        projects = {
            name: _record(caller, Known(name, EntityType.PROJECT, name, f"Project {name}."))
            for name in names
        }
        records = [_record(caller, each) for each in known]
        await services.bulk_import.put(caller, [*projects.values(), *records])
        await services.store.relations.put(
            caller.scope,
            [
                Relation(
                    caller.library_id,
                    record.item.id,
                    Kind.BELONGS_TO,
                    projects[each.project].item.id,
                )
                for each, record in zip(known, records, strict=True)
                if each.project
            ],
        )
        while await services.worker.run_once():
            pass
        yield Library(
            services,
            caller,
            {record.item.id: each.id for each, record in zip(known, records, strict=True)},
            {name: record.item.id for name, record in projects.items()},
        )


def _record(caller: Caller, known: Known) -> Record:
    item = Item(
        new_id(),
        caller.library_id,
        new_public_id(),
        "",
        known.entity_type,
        "text",
        known.title,
        summary=known.text[:160],
        status="todo" if known.entity_type == EntityType.TASK else "",
    )
    return Record(item, known.text, once=False, describe=False)
