"""One item, to be read."""

from starlette.responses import Response

from commonplace.faces.web.doors import get
from commonplace.faces.web.text import rendered
from commonplace.faces.web.visit import Visit


async def show(visit: Visit) -> Response:
    reading = await visit.services.library.read(visit.caller, visit.request.path_params["item_id"])
    folders = await visit.services.library.folders(visit.caller)
    sections = [(section, rendered(section.text)) for section in reading.sections]
    return visit.page("item.html", reading=reading, item=reading.item, sections=sections, folders=folders,
                      whole=None if sections else rendered(reading.text))


DOORS = (get("/items/{item_id}", show),)
