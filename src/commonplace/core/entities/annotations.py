"""Annotations: margin notes, stored as entities and linked to the item they are about."""

from collections.abc import Sequence
from dataclasses import dataclass

from commonplace.core.entities.entities import Entities
from commonplace.core.entities.validation import NewEntity, refuse
from commonplace.core.items.text_editor import TextEditor
from commonplace.core.people.authorization import GRAPH_WRITE, READ, Service, verb
from commonplace.errors import NotFound
from commonplace.model import Caller, EntityType, Item, ItemRef, Kind, Relation
from commonplace.store.optimistic import retry_on_conflict

SHOWN = 100
TITLE = 80
QUOTED = 1_000


@dataclass(frozen=True, slots=True)
class Annotation:
    item: Item  # the note
    text: str
    quote: str = ""  # the annotated words
    position: int | None = None  # of the annotated passage


@dataclass(eq=False)
class Annotations(Service):
    _entities: Entities
    _editor: TextEditor

    @verb(GRAPH_WRITE, "annotate", target="item_id")
    async def add(
        self,
        caller: Caller,
        item_id: str,
        text: str,
        *,
        quote: str = "",
        position: int | None = None,
    ) -> Item:
        """Add a note to an item. It is filed in the item's folders and deleted with it, so that the
        same readers see both."""
        about = await self._store.items.get(caller.scope, ItemRef.parse(item_id))
        text, quote = text.strip() or quote.strip(), " ".join(quote.split())
        refuse(
            (not text, "Write a note, or select some words of the text."),
            (
                len(quote) > QUOTED,
                f"The quote is too long: a note quotes up to {QUOTED:,} characters.",
            ),
        )
        metadata = {
            name: value
            for name, value in (("quote", quote), ("position", position))
            if value not in ("", None)
        }
        added = await self._entities.keep(
            caller,
            NewEntity(_title(text), text, EntityType.EPISODE, "annotation", metadata=metadata),
            check_conflicts=False,
            folders=about.folders,
            annotates=about.id,
            relations=lambda note_id: [
                Relation(caller.library_id, note_id, Kind.ANNOTATES, about.id)
            ],
        )
        return added.item

    @verb(GRAPH_WRITE, "annotate", target="item_id")
    async def change(self, caller: Caller, item_id: str, text: str) -> Item:
        """Change the text of a note. A highlight without a note has the words that it marks."""

        async def change_text() -> Item:
            note = await self._store.items.get(caller.scope, ItemRef.parse(item_id))
            if note.annotates is None:
                raise NotFound("Note not found")
            said = text.strip() or quoted(note)[0]
            refuse((not said, "Write a note, or delete it."))
            return await self._editor.edit(
                caller.scope, note, said, {"title": _title(said)}, note.revision
            )

        return await retry_on_conflict(change_text, guarded=False)

    @verb(READ, "annotations", target="item_id")
    async def of(self, caller: Caller, item_id: str) -> list[Annotation]:
        """Return the notes on an item, oldest first."""
        item = await self._store.items.get(caller.scope, ItemRef.parse(item_id))
        joined = [
            r.from_id
            for r in await self._store.relations.of_items(caller.scope, [item.id], [Kind.ANNOTATES])
            if r.to_id == item.id
        ][-SHOWN:]
        found = {
            note_id: note
            for note_id, note in (await self._store.items.get_many(caller.scope, joined)).items()
            if note.annotates == item.id
        }
        texts = await self._store.items.texts(list(found.values()))
        return [
            Annotation(found[note_id], texts[note_id], *quoted(found[note_id]))
            for note_id in joined
            if note_id in texts
        ]


def quoted(note: Item) -> tuple[str, int | None]:
    """Return the annotated words and the position of their passage. Checked, because clients can
    write any metadata."""
    quote, position = note.metadata.get("quote"), note.metadata.get("position")
    return (
        quote if isinstance(quote, str) else "",
        position if isinstance(position, int) and not isinstance(position, bool) else None,
    )


def beside(annotations: Sequence[Annotation]) -> dict[int, list[Annotation]]:
    """Group annotations by the position of their passage."""
    found: dict[int, list[Annotation]] = {}
    for each in annotations:
        if each.position is not None:
            found.setdefault(each.position, []).append(each)
    return found


def _title(text: str) -> str:
    first = " ".join(text.split("\n", 1)[0].split())
    return first if len(first) <= TITLE else first[:TITLE].rsplit(" ", 1)[0] + " …"
