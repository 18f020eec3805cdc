"""The tags of the library: how many items have each; rename, merge and delete them."""

from urllib.parse import urlencode

from starlette.responses import Response

from commonplace.errors import Invalid
from commonplace.interfaces.web.jinja import count
from commonplace.interfaces.web.request import WebRequest, get, post
from commonplace.model.tags import TagCount

ORDERS = {"": "By name", "items": "Most items first"}


async def show(request: WebRequest) -> Response:
    words, order = request.query("q"), request.query("order")
    found = await request.services.tags.list_tags(request.caller)
    wanted = [tag for tag in found if words.casefold() in tag.name.casefold()]
    if order in ORDERS and order:
        wanted.sort(key=lambda tag: -tag.items)
    return request.page(
        "tags.html",
        tags=[(tag, _list_of(tag)) for tag in wanted],
        total=len(found),
        words=words,
        order=order,
        orders=ORDERS,
    )


def _list_of(tag: TagCount) -> str:
    """Return the address of the list of items that the tag's number counts."""
    query = {"tag": tag.name, "type": "all"} | ({} if tag.items else {"state": "archived"})
    return f"/?{urlencode(query)}"


async def change(request: WebRequest) -> Response:
    """Rename, merge or delete the selected tags."""
    tags, name = request.form_list("tag"), request.text("name").strip()
    if not tags:
        raise Invalid("Select tags first.")
    if request.text("action") == "delete":
        changed = await request.services.tags.delete(request.caller, tags)
        said = f"Deleted {count(len(tags), 'tag')} from {count(changed, 'item')}."
    else:
        if not name:
            raise Invalid("Enter the new name.", field="name")
        changed = await request.services.tags.rename(request.caller, tags, name)
        said = f"{count(changed, 'item')} now tagged “{name}”."
    return request.redirect(request.back, said)


ROUTES = (get("/tags", show), post("/tags", change))
