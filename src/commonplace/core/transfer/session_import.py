"""Import sessions of agents and people, with captures. A session is stored once; one that has grown
replaces its earlier version."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from commonplace.core.entities.entities import Entities
from commonplace.core.entities.validation import NewEntity
from commonplace.core.memory.memories import Memo, Memory, Remembered, owner_of
from commonplace.core.memory.reflection import Reflection
from commonplace.core.people.authorization import FULL_WRITE, WRITE, Service, verb
from commonplace.core.transfer import session_sources
from commonplace.core.transfer.markdown_folder import ImportResult
from commonplace.core.transfer.session_sources import Session
from commonplace.errors import Invalid
from commonplace.model import Advance, Caller, EntityType, Outcome, digest

PART_CHARS = 40_000  # per entity; longer sessions are stored in parts


@dataclass(eq=False)
class Sessions(Service):
    _entities: Entities
    _memory: Memory
    _reflection: Reflection

    @verb(WRITE, "import", needs=FULL_WRITE)
    async def import_transcripts(
        self,
        caller: Caller,
        root: Path,
        advance: Advance,
        *,
        project: str | None = None,
        reflect: bool = False,
    ) -> ImportResult:
        """Import a transcript, or all below a folder (`~/.claude/projects`, `~/.codex/sessions`),
        one file in memory at a time."""
        found = session_sources.files(root)
        if not found:
            raise Invalid(f"There are no transcripts ({session_sources.ENDING}) in {root}.")
        unread: list[tuple[str, str]] = []

        sessions = (
            session_sources.read(file, lambda where, why: unread.append((where, why)))
            for file in found
        )
        outcomes = await self._bring_in(caller, sessions, len(found), advance, project, reflect)
        if not sum(outcomes.values()):
            raise Invalid(f"{root} contains no messages, or is not from Claude Code or Codex.")
        return ImportResult(outcomes, 0, (), tuple(unread))

    @verb(WRITE, "import", needs=FULL_WRITE)
    async def import_git(
        self,
        caller: Caller,
        source: Path,
        advance: Advance,
        *,
        project: str | None = None,
        reflect: bool = False,
    ) -> ImportResult:
        """Import a repository or a saved log."""
        found = (
            await session_sources.read_repository(source)
            if await asyncio.to_thread(source.is_dir)
            else await asyncio.to_thread(session_sources.read_log, source)
        )
        return ImportResult(
            await self._bring_in(caller, iter(found), len(found), advance, project, reflect), 0, ()
        )

    async def import_sessions(
        self,
        caller: Caller,
        sessions: Iterator[Session],
        advance: Callable[[int], None],
        *,
        project: str | None,
        reflect: bool,
    ) -> dict[Outcome, int]:
        """Import sessions that were read already. The caller is authorized already."""
        return await self._bring_in(
            caller, sessions, 0, lambda done, _: advance(done), project, reflect
        )

    async def _bring_in(
        self,
        caller: Caller,
        sessions: Iterator[Session | None],
        total: int,
        advance: Advance,
        project: str | None,
        reflect: bool,
    ) -> dict[Outcome, int]:
        project_id = await self._entities.project_id(caller, project)
        outcomes = dict.fromkeys(Outcome, 0)
        for done, session in enumerate(sessions, 1):
            if session is not None:
                outcomes[await self._keep(caller, session, project_id, reflect)] += 1
            advance(done, total)
        return outcomes

    async def _keep(
        self, caller: Caller, session: Session, project_id: str | None, reflect: bool
    ) -> Outcome:
        parts = list(_parts(session.text))
        told: set[Outcome] = set()
        before: str | None = None
        for number, text in enumerate(parts, 1):
            outcome, kept = await self._keep_part(
                caller, session, number, len(parts), text, project_id, before
            )
            # Also for sessions imported earlier without it, or by an interrupted run.
            if reflect and not await self._store.candidates.exists_for(
                caller.library_id, kept.item.id
            ):
                await self._reflection.queue(caller, kept.item, text, project_id)
            told.add(outcome)
            before = kept.item.id
        return Outcome.CHANGED if len(told) > 1 or Outcome.CHANGED in told else told.pop()

    async def _keep_part(
        self,
        caller: Caller,
        session: Session,
        number: int,
        count: int,
        text: str,
        project_id: str | None,
        before: str | None,
    ) -> tuple[Outcome, Remembered]:
        key = f"{session.key}:{number}"
        first = await self._store.captures.by_key(caller.library_id, owner_of(caller), key)
        related = [before] if before else []
        if first is not None and first.text != text:
            # The session has grown: supersede its earlier version, under a key of its own.
            known = [
                first,
                *await self._store.captures.by_prefix(
                    caller.library_id, owner_of(caller), f"{key}:"
                ),
            ]
            related.append(f"supersedes:{known[-1].item_id}")
            key = next(
                (
                    version.idempotency_key
                    for version in known
                    if version.text == text and version.idempotency_key
                ),
                f"{key}:{digest(text)[:16]}",
            )
        new = NewEntity(
            session.title if count == 1 and number == 1 else f"{session.title} (part {number})",
            text,
            EntityType.SESSION,
            category=str(session.about.get("program", "")),
            project=project_id,
            related_to=tuple(related),
            metadata={"session": session.about},
            created_at=session.at,
        )
        kept = await self._memory.keep(
            caller,
            Memo(new, key, session.about),
            check_conflicts=False,
            later=True,
        )
        if kept.repeated:
            return Outcome.UNCHANGED, kept
        return Outcome.ADDED if first is None else Outcome.CHANGED, kept


def _parts(text: str) -> Iterator[str]:
    """Cut between paragraphs if possible, always at the same places, so that a growing session
    keeps its first parts."""
    while len(text) > PART_CHARS:
        at = text.rfind("\n\n", PART_CHARS // 2, PART_CHARS)
        at = at if at > 0 else PART_CHARS
        yield text[:at].rstrip()
        text = text[at:].lstrip("\n")
    if text.strip():
        yield text
