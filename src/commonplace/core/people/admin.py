"""What the operator sees of all libraries: names, sizes and jobs, and nothing in them."""

from dataclasses import dataclass

from commonplace.core.people.authorization import READ, Service, verb
from commonplace.errors import ForbiddenScope, Invalid
from commonplace.model import Caller, LibraryRow


@dataclass(frozen=True, slots=True)
class LibraryPage:
    libraries: list[LibraryRow]
    total: int
    after: str | None  # where the next page begins; None: this is the last


@dataclass(eq=False)
class Admin(Service):
    @verb(READ, primary=True)
    async def libraries(
        self, caller: Caller, after: str | None = None, limit: int = 100
    ) -> LibraryPage:
        """Return libraries of the server, the newest first. ForbiddenScope: only the first person
        may see them, in the web app or at the command line."""
        if not await self._access.is_operator(caller):
            raise ForbiddenScope("Only the first person of this server sees its libraries.")
        if after is not None and not after.isprintable():
            raise Invalid("`after` is the id of a library, from the page before.")
        found = await self._store.figures.libraries(after, limit + 1)
        return LibraryPage(
            found[:limit],
            await self._store.people.count(),
            found[limit - 1].id if len(found) > limit else None,
        )
