"""The list of items, with filters and bulk actions; and folders."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.responses import Response

from commonplace.core.transfer.sample import is_sample
from commonplace.errors import CommonplaceError, Invalid, NotFound
from commonplace.interfaces.web.forms import field
from commonplace.interfaces.web.jinja import count
from commonplace.interfaces.web.live import now_of, states
from commonplace.interfaces.web.request import Elsewhere, WebRequest, act, get, post, post_then
from commonplace.model import (
    EVERYTHING,
    NOT_DISKS,
    TO_READ,
    EntityType,
    Folder,
    Item,
    ItemFilter,
    Order,
)

PER_PAGE = 30
AT_ONCE = 200
NOTES = "notes"  # in margins: too many for the list of what they are about
ALL = "all"  # types, also those of Work
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
        return cls.of_query(request.http.query_params)

    @classmethod
    def of_link(cls, link: str) -> "Choice":
        """Return the filters of a list by its address."""
        query = urlsplit(link).query.replace("%00", "")  # which Postgres refuses
        return cls.of_query(dict(parse_qsl(query)))

    @classmethod
    def of_query(cls, query: Mapping[str, str]) -> "Choice":
        known = {"type": {*EntityType, ALL}, "state": {*STATES}, "order": {*ORDERS}}
        most = field("list_items", "q")["maxLength"]
        values = {name: query.get(name, "")[:most] for name in cls.__slots__}
        return cls(
            **{
                name: value if name not in known or value in known[name] else ""
                for name, value in values.items()
            }
        )

    @property
    def where(self) -> ItemFilter:
        return replace(
            TO_READ,
            folder_id=self.folder or None,
            tag=self.tag or None,
            archived=self.state == "archived",
            text=self.q or None,
            in_kb=False if self.state == "aside" else None,
            entity_types=(self.type,) if self.type not in ("", ALL) else (),
            not_entity_types=() if self.type else TO_READ.not_entity_types,
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

    @property
    def sorted_by(self) -> Order:
        return Order(self.order or Order.NEWEST)

    @property
    def in_list(self) -> str:
        """The query by which the page of an item knows the list that it was opened from."""
        link = self.link()
        return f"?{urlencode({'list': link})}" if link != "/" else ""

    async def place(self, request: WebRequest, item: Item) -> str:
        """Return the address of the page of the list on which an item is, or would be."""
        library = request.services.library
        before = await library.count_before(request.caller, item, self.where, self.sorted_by)
        page = before // PER_PAGE + 1
        return f"{self.before_page}page={page}" if page > 1 else self.link()

    def link(self, **changes: Any) -> str:
        values = {name: getattr(self, name) for name in self.__slots__} | changes
        query = urlencode({name: value for name, value in values.items() if value})
        return f"/?{query}" if query else "/"


async def show(request: WebRequest) -> Response:
    services, choice = request.services, Choice.of(request)
    if request.query("at"):  # back from the page of an item
        item = await services.library.find(request.caller, request.query("at"))
        place = await choice.place(request, item) if item else choice.link()
        raise Elsewhere(f"{place}#i-{item.public_id}" if item else place)
    read = partial(services.library.page, request.caller, choice.where, order=choice.sorted_by)
    listed = await request.read_page(PER_PAGE, choice.before_page, read)
    items = listed["found"]
    jobs = await services.overview.unfinished(request.caller, [item.id for item in items])
    return request.page(
        "library.html",
        **listed,
        choice=choice,
        names={node.id: node.folder.name for node in request.folders},
        node=next((each for each in request.folders if each.id == choice.folder), None),
        first_run=not items and not await _holds_items(request),
        is_sample=is_sample,
        states=states({item.id: item for item in items}, jobs),
        state_names=STATES,
        orders=ORDERS,
    )


async def _holds_items(request: WebRequest) -> bool:
    """Return whether the library has any item, listed or not."""
    _, total = await request.services.library.page(request.caller, EVERYTHING, limit=1)
    return total > 0


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
    # The buttons of the list of folders say where to, which is the action.
    action = "move" if request.text("to") or request.text("create") else request.text("action")
    chosen = request.form_list("item")[:AT_ONCE]
    if action not in ACTIONS:
        raise Invalid("Choose an action.")
    if not chosen:
        raise Invalid("Select items first.")
    to = await _list_of(request, chosen[0]) if action == "delete" else ""
    said = await ACTIONS[action](request, chosen)
    return request.redirect(to or request.back, said)


def _search_of(query: Mapping[str, str]) -> str:
    """Return the address of the search that the page of an item was opened from, if it was."""
    link = urlsplit(query.get("list", ""))
    if link.path == "/search" and not link.netloc:
        return f"/search?{urlencode(parse_qsl(link.query))}"
    return f"/search?{urlencode({'q': query['q']})}" if query.get("q") else ""


async def _list_of(request: WebRequest, item_id: str) -> str:
    """Return the place in its list of an item whose page the form was on; empty elsewhere."""
    back = urlsplit(request.back)
    item = await request.services.library.find(request.caller, item_id)
    if not back.path.startswith("/items/") or item is None:
        return ""
    query = dict(parse_qsl(back.query))
    if found := _search_of(query):
        return found
    return await Choice.of_link(query.get("list", "")).place(request, item)


@dataclass(frozen=True, slots=True)
class ListPlace:
    """The list that the page of an item was opened from, and what is beside the item there."""

    name: str
    address: str
    before: Item | None = None
    after: Item | None = None
    in_list: str = ""  # the query of the pages of the items beside it
    folder: str = ""  # whose list it is


async def place_in_list(request: WebRequest, item: Item) -> ListPlace:
    if found := _search_of(request.http.query_params):
        return ListPlace("Search results", found)
    choice = Choice.of_link(request.query("list"))
    names = {node.id: node.folder.name for node in request.folders}
    if choice.folder not in names:
        choice = replace(choice, folder="")
    address = choice.before_page + urlencode({"at": item.public_id})
    listed = not (item.archived or item.annotates or item.entity_type in NOT_DISKS)
    if not (listed or choice.in_list):
        return ListPlace("Library", "/")
    before, after = await request.services.library.beside(
        request.caller, item, choice.where, choice.sorted_by
    )
    name = names.get(choice.folder) or (f"#{choice.tag}" if choice.tag else "Library")
    return ListPlace(name, address, before, after, choice.in_list, choice.folder)


async def _file(request: WebRequest, chosen: list[str]) -> str:
    folder = await _target(request)
    for item_id in chosen:
        await request.act("file_item", item_id=item_id, folder_ids=[folder.id])
    return f"{count(len(chosen), 'item')} added to “{folder.name}”."


async def _move(request: WebRequest, chosen: list[str]) -> str:
    """File items in a folder, and take them out of the one whose list they are in."""
    folder, source = await _target(request), request.text("from")
    for item_id in chosen:
        await request.act("file_item", item_id=item_id, folder_ids=[folder.id])
        if source not in ("", folder.id):
            with suppress(NotFound):  # it is not in there
                await request.act("unfile_item", item_id=item_id, folder_id=source)
    return f"{count(len(chosen), 'item')} moved to “{folder.name}”."


async def _target(request: WebRequest) -> Folder:
    """Return the folder that somebody chose, or named: that is created."""
    name = request.text("create") or request.text("new_folder")
    folder_id = request.text("to") or request.text("folder")
    if name.strip():
        try:
            return cast(Folder, await request.act("create_folder", name=name))
        except CommonplaceError as error:
            error.field = "new_folder"
            raise
    if not folder_id:
        raise Invalid("Choose a folder or enter a name for a new one.", field="folder")
    return cast(Folder, await request.act("get_folder", folder_id=folder_id))


async def _unfile(request: WebRequest, chosen: list[str]) -> str:
    for item_id in chosen:
        await request.act("unfile_item", item_id=item_id, folder_id=request.text("from"))
    return f"{count(len(chosen), 'item')} removed from the folder."


async def _tag(request: WebRequest, chosen: list[str]) -> str:
    wanted = request.input("update_item", "tags", item_id=chosen[0]).tags
    if not wanted:
        raise Invalid("Enter one or more tags, comma-separated.", field="tags")
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
    for item_id in chosen:
        await request.act("delete_item", item_id=item_id)
    return f"{count(len(chosen), 'item')} deleted."


ACTIONS = {
    "file": _file,
    "move": _move,
    "unfile": _unfile,
    "tag": _tag,
    "archive": _archive,
    "restore": _archive,
    "delete": _delete,
}


# -- folders


async def show_folder(request: WebRequest) -> Response:
    folder = await request.act("get_folder")
    [node] = [each for each in request.folders if each.id == folder.id]
    return request.page(
        "folder.html",
        folder=folder,
        node=node,
        below={each.id for each in node.subtree},
        stakes=await request.services.overview.folder_impact(request.caller, folder.id),
    )


async def nest_folder(request: WebRequest) -> Response:
    """Move a folder that was dragged onto another, or to the top."""
    folder = await request.act("update_folder", "parent_id")
    return request.redirect(request.back, f"Moved the folder “{folder.name}”.")


async def add_sample(request: WebRequest) -> Response:
    folder = await request.services.samples.add(request.caller)
    return request.redirect(f"/?folder={folder.id}")


async def remove_sample(request: WebRequest) -> Response:
    removed = await request.services.samples.remove(request.caller)
    return request.redirect("/", f"Sample removed: {count(removed, 'item')}.")


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
        act("create_folder", "name parent_id"),
        "/?folder={done.id}",
        "Folder “{done.name}” created.",
    ),
    post("/folders/{folder_id}/parent", nest_folder),
    post("/sample", add_sample),
    post("/sample/remove", remove_sample),
    get("/folders/{folder_id}", show_folder),
    post_then(
        "/folders/{folder_id}",
        act("update_folder", "name parent_id"),
        "/?folder={done.id}",
        "Folder “{done.name}” saved.",
    ),
    post("/folders/{folder_id}/delete", delete_folder),
)
