"""The library as a list: what there is, where it came from, how far it is."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from commonplace.faces.web.doors import get
from commonplace.faces.web.visit import Visit
from commonplace.model import EntityType, Item, ItemFilter

PER_PAGE = 30
WORK = (EntityType.TASK, EntityType.EPIC, EntityType.PROJECT, EntityType.SESSION)


@dataclass(frozen=True, slots=True)
class Choice:
    """What the list is narrowed to, as the address says it."""

    folder: str = ""
    tag: str = ""
    type: str = ""
    state: str = ""   # "", archived, aside
    q: str = ""

    @classmethod
    def of(cls, visit: Visit) -> "Choice":
        known = {"type": {*EntityType}, "state": {"archived", "aside"}}
        values = {name: visit.query(name)[:500] for name in cls.__slots__}
        return cls(**{name: value if name not in known or value in known[name] else "" for name, value in values.items()})

    @property
    def where(self) -> ItemFilter:
        return ItemFilter(folder_id=self.folder or None, archived=self.state == "archived", text=self.q or None,
                          in_kb=False if self.state == "aside" else None,
                          entity_types=(self.type,) if self.type else ())

    def link(self, **changes: Any) -> str:
        values = {name: getattr(self, name) for name in self.__slots__} | changes
        query = urlencode({name: value for name, value in values.items() if value})
        return f"/?{query}" if query else "/"


async def show(visit: Visit) -> Response:
    library, choice = visit.services.library, Choice.of(visit)
    page = visit.number("page", 1)
    items, total = await library.page(visit.caller, choice.where, limit=PER_PAGE, offset=(page - 1) * PER_PAGE)
    folders = await library.folders(visit.caller)
    return visit.page("library.html", items=items, total=total, page=page, pages=-(-total // PER_PAGE), choice=choice,
                      folders=folders, names={folder.id: folder.name for folder in folders},
                      states={item.id: state_of(item) for item in items})


def state_of(item: Item) -> str:
    """What a list says about how far an item is; nothing when it is simply there."""
    match item.transcription_status:
        case "queued":
            return "waiting to be written down"
        case "running":
            return "being written down"
        case "failed":
            return "failed"
    return "archived" if item.archived else "" if item.in_kb else "not searched"


DOORS = (get("/", show),)
