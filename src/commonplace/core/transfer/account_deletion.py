"""Deletion of an account: the library, its files and the person. Other people's data stays."""

from dataclasses import dataclass

from commonplace.core.items.uploads import Uploads
from commonplace.core.people.accounts import Accounts, Visitor
from commonplace.errors import Conflict, ForbiddenScope, Invalid
from commonplace.model import EVERYTHING, Scope
from commonplace.store import Store

AT_ONCE = 100


@dataclass(eq=False)
class AccountDeletion:
    _store: Store
    _accounts: Accounts
    _uploads: Uploads

    async def obstacle(self, visitor: Visitor) -> str:
        """Return why the account cannot be deleted, or ""."""
        first = await self._store.people.first()
        if first and first.id == visitor.person.id:
            return "You are this server's first person, whose account cannot be deleted."
        if len(await self._store.members.of_library(visitor.person.id)) > 1:
            return "Your library has other members. Remove them first."
        return ""

    async def delete(self, visitor: Visitor, email: str, password: str) -> None:
        """Delete the account permanently. If interrupted, it can be repeated: the person is deleted
        last."""
        if obstacle := await self.obstacle(visitor):
            raise Conflict(obstacle)
        if visitor.viewing is not None:
            raise ForbiddenScope('Leave "View as" first.')
        if email.strip().lower() != visitor.person.email.lower():
            raise Invalid("Type your email to confirm.")
        await self._accounts.check_password(visitor, password)
        library_id = visitor.person.id
        for token in await self._store.tokens.of_library(library_id):
            await self._store.tokens.revoke(library_id, token.id)
        scope = Scope(library_id)
        # Item by item, so that others can write in between.
        while items := (
            await self._store.items.list_page(
                scope, EVERYTHING, limit=AT_ONCE, offset=0, count=False
            )
        )[0]:
            for item in items:
                await self._store.items.delete(scope, item.id, permanent=True)
        while await self._store.trash.delete_some(library_id):
            pass
        await self._store.uploads.expire(library_id)
        await self._store.source_files.expire(library_id)
        await self._uploads.cleanup()  # delete the files while their keys are still stored
        await self._store.people.delete(library_id)
