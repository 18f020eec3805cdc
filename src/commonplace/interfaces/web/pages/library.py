"""The list of items, with filters and bulk actions; and folders."""

from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from commonplace.core.items.delayed_delete import GRACE
from commonplace.errors import Invalid
from commonplace.interfaces.web.forms import field
from commonplace.interfaces.web.jinja import count
from commonplace.interfaces.web.live import now_of, states
from commonplace.interfaces.web.request import WebRequest, act, get, post, post_then
from commonplace.model import EntityType, ItemFilter, Order

PER_PAGE = 30
AT_ONCE = 200
NOTES = "notes"  # in margins: too many for the list of what they are about
STATES = {"": "Active", "archived": "Archived", "aside": "Hidden from search", NOTES: "Highlights"}
ORDERS = {
    Order.NEWEST: "Newest first",
    Order.OLDEST: "Oldest first",
    Order.CHANGED: "Recently changed",
    Order.TITLE: "Title",
    Order.LONGEST: "Longest first",
}


@dataclass(frozen=True, slots=True)
class Choice:
    """The filters of the list, as the address states them."""

    folder: str = ""
    tag: str = ""
    type: str = ""
    state: str = ""
    q: str = ""
    order: str = ""

    @classmethod
    def of(cls, request: WebRequest) -> "Choice":
        known = {"type": {*EntityType}, "state": {*STATES}, "order": {*ORDERS}}
        most = field("list_items", "q")["maxLength"]
        values = {name: request.query(name)[:most] for name in cls.__slots__}
        return cls(
            **{
                name: value if name not in known or value in known[name] else ""
                for name, value in values.items()
            }
        )

    @property
    def where(self) -> ItemFilter:
        return ItemFilter(
            folder_id=self.folder or None,
            tag=self.tag or None,
            archived=self.state == "archived",
            text=self.q or None,
            in_kb=False if self.state == "aside" else None,
            entity_types=(self.type,) if self.type else (),
            notes=self.state == NOTES,
        )

    @property
    def narrow(self) -> bool:
        return self.link(order="") != "/"

    @property
    def before_page(self) -> str:
        """The address of the list, up to the page number."""
        link = self.link()
        return f"{link}&" if "?" in link else f"{link}?"

    def link(self, **changes: Any) -> str:
        values = {name: getattr(self, name) for name in self.__slots__} | changes
        query = urlencode({name: value for name, value in values.items() if value})
        return f"/?{query}" if query else "/"


async def show(request: WebRequest) -> Response:
    services, choice = request.services, Choice.of(request)
    order = Order(choice.order or Order.NEWEST)
    read = partial(services.library.page, request.caller, choice.where, order=order)
    listed = await request.read_page(PER_PAGE, choice.before_page, read)
    items = listed["found"]
    jobs = await services.overview.unfinished(request.caller, [item.id for item in items])
    return request.page(
        "library.html",
        **listed,
        choice=choice,
        names={node.id: node.folder.name for node in request.folders},
        states=states({item.id: item for item in items}, jobs),
        going=(
            await services.delayed_deletes.pending(request.caller)
            if request.user.has_full_write
            else []
        ),
        grace=int(GRACE.total_seconds()),
        state_names=STATES,
        orders=ORDERS,
    )


async def row_of(request: WebRequest, item_id: str) -> str:
    """Render one row of the list as of now."""
    item = await request.services.library.find(request.caller, item_id)
    if item is None:
        return ""
    folders = await request.services.folders.list_folders(request.caller)
    return request.templates.render(
        "row.html",
        item=item,
        names={folder.id: folder.name for folder in folders},
        state=(await now_of(request, [item.id]))[item.id],
        rules=request.user.has_full_write,
    )


async def bulk(request: WebRequest) -> Response:
    action, chosen = request.text("action"), request.form_list("item")[:AT_ONCE]
    if action not in ACTIONS:
        raise Invalid("Choose an action.")
    if not chosen:
        raise Invalid("Select items first.")
    said = await ACTIONS[action](request, chosen)
    # What is deleted in the reader can be taken back in the list.
    return request.redirect(
        "/" if action == "delete" and request.back.startswith("/items/") else request.back, said
    )


async def _file(request: WebRequest, chosen: list[str]) -> str:
    name, folder = request.text("new_folder").strip(), request.text("folder")
    if name:
        folder = (await request.act("create_folder", name=name)).id
    if not folder:
        raise Invalid("Choose a folder or enter a name for a new one.")
    for item_id in chosen:
        await request.act("file_item", item_id=item_id, folder_ids=[folder])
    return f"{count(len(chosen), 'item')} added to the folder."


async def _unfile(request: WebRequest, chosen: list[str]) -> str:
    for item_id in chosen:
        await request.act("unfile_item", item_id=item_id, folder_id=request.text("from"))
    return f"{count(len(chosen), 'item')} removed from the folder."


async def _tag(request: WebRequest, chosen: list[str]) -> str:
    wanted = request.input("update_item", "tags", item_id=chosen[0]).tags
    if not wanted:
        raise Invalid("Enter one or more tags, comma-separated.")
    for item_id in chosen:
        item = await request.services.library.find(request.caller, item_id)
        if item is not None and set(wanted) - set(item.tags):
            tags = list(dict.fromkeys([*item.tags, *wanted]))[
                : field("update_item", "tags")["maxItems"]
            ]
            await request.act("update_item", item_id=item_id, tags=tags)
    return f"{count(len(chosen), 'item')} tagged."


async def _archive(request: WebRequest, chosen: list[str]) -> str:
    back, refused = request.text("action") == "restore", list[str]()
    for item_id in chosen:
        try:
            await request.act("update_item", item_id=item_id, archived=not back)
        except Invalid as error:  # a task that is under way, say: no reason to leave the others
            refused.append(error.message)
    said = f"{count(len(chosen) - len(refused), 'item')} {'restored' if back else 'archived'}."
    if refused:
        raise Invalid(" ".join([*refused, said] if len(chosen) > len(refused) else refused))
    return said


async def _delete(request: WebRequest, chosen: list[str]) -> str:
    await request.services.delayed_deletes.schedule(request.caller, chosen)
    return ""


async def _undo(request: WebRequest, chosen: list[str]) -> str:
    kept = await request.services.delayed_deletes.undo(request.caller, chosen)
    gone = f". {len(chosen) - kept} could not be restored" if kept < len(chosen) else ""
    return f"{count(kept, 'item')} restored{gone}."


ACTIONS = {
    "file": _file,
    "unfile": _unfile,
    "tag": _tag,
    "archive": _archive,
    "restore": _archive,
    "delete": _delete,
    "undo": _undo,
}


# -- folders


async def show_folder(request: WebRequest) -> Response:
    folder = await request.act("get_folder")
    [node] = [each for each in request.folders if each.id == folder.id]
    return request.page(
        "folder.html",
        folder=folder,
        below={each.id for each in node.subtree},
        stakes=await request.services.overview.folder_impact(request.caller, folder.id),
    )


async def delete_folder(request: WebRequest) -> Response:
    items = request.text("items")
    if items not in ("keep", "delete"):
        raise Invalid("Choose what happens to its items.")
    await request.act("delete_folder", cascade_items=items == "delete")
    return request.redirect(
        "/",
        "Folder deleted, with the items that were in no other folder."
        if items == "delete"
        else "Folder deleted. Its items are still in the library.",
    )


ROUTES = (
    get("/", show),
    post("/items", bulk),
    post_then(
        "/folders",
        act("create_folder", "name"),
        "/?folder={done.id}",
        "Folder “{done.name}” created.",
    ),
    get("/folders/{folder_id}", show_folder),
    post_then(
        "/folders/{folder_id}",
        act("update_folder", "name parent_id"),
        "/?folder={done.id}",
        "Folder “{done.name}” saved.",
    ),
    post("/folders/{folder_id}/delete", delete_folder),
)
