"""Uploads: announced, sent to a signed link that expires, then read or queued for transcription."""

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path, PurePath
from typing import Any
from weakref import WeakValueDictionary

from commonplace.core.ingest.pictures import Pictures, with_picture
from commonplace.core.ingest.sources import (
    SPEECH,
    content_of,
    private_key,
    url_key,
    web_address,
)
from commonplace.core.ingest.transcription import Recordings
from commonplace.core.items.drafts import AddedItem, Draft
from commonplace.core.items.library import Library
from commonplace.core.items.originals import Originals
from commonplace.core.items.queued_items import QueuedItems
from commonplace.core.items.source_files import SourceFiles
from commonplace.core.items.upload_checks import UploadLinks, refuse_wrong_type
from commonplace.core.people.authorization import READ, UPLOAD, WRITE, Service, may, verb
from commonplace.errors import (
    CommonplaceError,
    Conflict,
    ForbiddenScope,
    IngestFailed,
    Invalid,
    NotFound,
    PayloadTooLarge,
)
from commonplace.model import (
    Caller,
    Capability,
    Content,
    EntityType,
    Extracted,
    Item,
    ItemRef,
    Json,
    Role,
    Upload,
    new_id,
    now,
)
from commonplace.ports import Blobs, Extractor
from commonplace.settings import Settings

log = logging.getLogger(__name__)
LIFETIME = timedelta(hours=1)

_TIDY_SECONDS = 900
_PERSON = "person:"  # before the id of an owner without a token
_BUFFER = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Part:
    """The range of a PUT. `start` None only asks how many bytes have arrived."""

    start: int | None = 0
    total: int | None = None


@dataclass(eq=False)
class Uploads(Service):
    _blobs: Blobs
    _extractor: Extractor
    _library: Library
    _queued_items: QueuedItems
    _recordings: Recordings
    _links: UploadLinks
    _originals: Originals
    _files: SourceFiles
    _pictures: Pictures
    _settings: Settings
    _busy: set[str] = field(default_factory=set, init=False)
    _finishing: WeakValueDictionary[str, asyncio.Lock] = field(
        default_factory=WeakValueDictionary, init=False
    )

    @verb(UPLOAD, "upload", target="filename")
    async def announce(
        self,
        caller: Caller,
        filename: str,
        content_type: str,
        size: int,
        *,
        on_arrival: Json | None = None,
    ) -> tuple[Upload, str]:
        """Create an upload, and return it with the URL or path for its bytes. With `on_arrival`,
        the bytes are sent to this server and the file is queued, in the `folder` it names, when the
        last byte arrives."""
        if on_arrival is not None:
            await self._access.admit(caller, self.finish.needs, filename)
        if size > self._settings.upload_max_mb * 1_000_000:
            raise PayloadTooLarge(
                f"The file has {size:,} bytes; this server accepts up to "
                f"{self._settings.upload_max_mb:,} MB."
            )
        upload = Upload(
            new_id(),
            caller.library_id,
            caller.queue,
            filename,
            content_type,
            size,
            now() + LIFETIME,
            on_arrival=on_arrival,
        )
        url = (
            None
            if on_arrival is not None
            else await self._blobs.put_url(upload.key, int(LIFETIME.total_seconds()))
        )
        await self._store.uploads.create(upload)
        return upload, await self._links.sign(upload) if url is None else url

    # -- the bytes, when they come to this server

    async def receive(
        self, upload_id: str, expires: str, signature: str, part: Part, chunks: AsyncIterator[bytes]
    ) -> int:
        """Store a range of bytes, and return how many there are now. After a lost connection the
        sender can continue."""
        upload = await self._links.check(upload_id, expires, signature)
        if upload.item_id is not None and upload.on_arrival is not None:
            return upload.size  # the answer to the last byte was lost
        if upload.item_id is not None:
            raise Conflict("The upload is already finished.")
        if part.total not in (None, upload.size):
            raise Invalid(f"The file was announced with {upload.size:,} bytes, not {part.total:,}.")
        with self._exclusive(upload):
            file = self._incoming(upload)
            received = await self._received(upload, file)
            if part.start is None:
                return received
            if part.start not in (0, received):
                raise Conflict(
                    f"{received:,} bytes have arrived. Continue from there.", received=received
                )
            received = await self._write(upload, file, part.start, chunks)
            if received == upload.size:
                await self._store_received(upload, file)
            elif part.total is None:
                raise Invalid(
                    f"{received:,} of {upload.size:,} bytes arrived. Send the rest with "
                    f"`Content-Range: bytes {received}-{upload.size - 1}/{upload.size}`.",
                    received=received,
                )
            return received

    async def _store_received(self, upload: Upload, file: Path) -> None:
        """Store a completely received file: the blob first, then the item that refers to it."""
        await self._blobs.put(upload.key, file)
        if upload.on_arrival is not None:
            await self._queue(upload, file)
        await asyncio.to_thread(file.unlink)

    async def _queue(self, upload: Upload, file: Path) -> AddedItem | None:
        """Queue the file to be read, if its sender may still write. None if another call was
        first."""
        caller = _sender(upload)
        role = await self._store.people.role(caller.person_id, caller.library_id)
        if role is None or Capability.WRITE not in may(Role(role), frozenset(Capability)):
            raise ForbiddenScope("You can no longer add to this library.")
        said = await asyncio.to_thread(_digest, file)
        folder_id = (upload.on_arrival or {}).get("folder") or None
        if folder_id and folder_id not in {
            folder.id for folder in await self._store.folders.list_folders(caller.scope)
        }:
            folder_id = None  # deleted during the upload
        draft = Draft("file")
        _, there = await self._store.items.find_by_key(
            caller.scope, private_key(caller, "file", said), EntityType.DOCUMENT
        )
        try:
            if there is not None:
                added = await self._queued_items.file_existing(caller, draft, there, folder_id)
            else:
                added = await self._queued_items.enqueue(
                    caller,
                    draft,
                    Content(new_id(), private_key(caller, "unread-file", said), ""),
                    PurePath(upload.filename).stem,
                    folder_id,
                    upload,
                )
        except Conflict:
            return None
        if not added.created:
            await self._store.uploads.finish(upload, added.item.id)
            await self._originals.settle(upload, added.item)
        return added

    async def submit_file(
        self, caller: Caller, file: Path, name: str, content_type: str, folder_id: str
    ) -> AddedItem:
        """Store a file from a form now, and read it by a job."""
        upload, _ = await self.announce(
            caller,
            name,
            content_type,
            (await asyncio.to_thread(file.stat)).st_size,
            on_arrival={"folder": folder_id},
        )
        await self._blobs.put(upload.key, file)
        return await self._queue(upload, file) or await self.submitted_item(caller, upload.id)

    @verb(READ, "read", target="upload_id")
    async def submitted_item(self, caller: Caller, upload_id: str) -> AddedItem:
        """Return the item created when the last byte of an upload arrived."""
        upload = await self._own(caller, upload_id)
        # queueing may have failed after the last byte
        if upload.item_id is None and upload.on_arrival is not None:
            await self._resume(upload)
            upload = await self._own(caller, upload_id)
        if upload.item_id is None:
            raise Conflict("The file has not arrived completely yet.")
        return await self._first_result(caller, upload)

    async def read_queued(self, upload_id: str) -> Content:
        """Read a queued file, unless its content is known."""
        try:
            upload = await self._store.uploads.get(upload_id)
            async with self._blobs.file(upload.key) as file:
                return await self._locate(
                    _sender(upload), upload, file, await self._detect_type(upload, file)
                )
        except NotFound:
            raise IngestFailed("The file no longer exists. Upload it again.") from None

    async def discard(self, upload_id: str, kept: Item, queued: Item) -> None:
        """Delete the bytes of a queued file after it was read, unless they are still needed."""
        upload = await self._store.uploads.get(upload_id)
        if kept.id != queued.id:
            await self._store.uploads.reassign(upload, kept.id)
        await self._originals.settle(upload, kept)

    async def _write(
        self, upload: Upload, file: Path, start: int, chunks: AsyncIterator[bytes]
    ) -> int:
        def append(data: bytes, at: int) -> None:
            with file.open("r+b" if at else "wb") as out:
                out.seek(at)
                out.write(data)

        received, buffer = start, b""
        try:
            async for chunk in chunks:
                if received + len(buffer) + len(chunk) > upload.size:
                    raise Invalid(f"More than the announced {upload.size:,} bytes arrived.")
                buffer += chunk
                if len(buffer) >= _BUFFER:
                    data, buffer = buffer, b""
                    await asyncio.to_thread(append, data, received)
                    received += len(data)
        finally:
            await asyncio.shield(asyncio.to_thread(append, buffer, received))
        return received + len(buffer)

    def _incoming(self, upload: Upload) -> Path:
        """Return the file for the bytes that have arrived so far."""
        return self._settings.data_dir / "incoming" / upload.id

    async def _received(self, upload: Upload, file: Path) -> int:
        def part() -> int:
            file.parent.mkdir(parents=True, exist_ok=True)
            return file.stat().st_size if file.exists() else 0

        stored = await self._blobs.size(upload.key)
        return await asyncio.to_thread(part) if stored is None else stored

    @contextmanager
    def _exclusive(self, upload: Upload) -> Iterator[None]:
        if upload.id in self._busy:
            raise Conflict("Another request is sending this file. Wait until it ends.")
        self._busy.add(upload.id)
        try:
            yield
        finally:
            self._busy.remove(upload.id)

    # -- what becomes of them

    @verb(WRITE, "finish_upload", target="upload_id")
    async def finish(
        self,
        caller: Caller,
        upload_id: str,
        *,
        document: bool | None = None,
        title: str = "",
        in_kb: bool = True,
        tags: tuple[str, ...] = (),
    ) -> AddedItem:
        """Read a document in the call, or queue a recording. Finishing again returns the same item.

        `document`: which of the two the file must be; None: either.
        """
        async with self._finishing.setdefault(upload_id, asyncio.Lock()):
            upload = await self._own(caller, upload_id)
            if upload.item_id is not None:
                return await self._first_result(caller, upload)
            try:
                return await self._finish(
                    caller, upload, document, Draft("file", title, in_kb=in_kb, tags=tags)
                )
            except CommonplaceError:
                upload = await self._own(caller, upload_id)
                if upload.item_id is None:
                    raise
                # Another process was first, and may have deleted the bytes while they were read
                # here.
                return await self._first_result(caller, upload)

    async def _own(self, caller: Caller, upload_id: str) -> Upload:
        upload = await self._store.uploads.get(upload_id)
        if (upload.library_id, upload.owner) != (caller.library_id, caller.queue):
            raise NotFound("Upload not found")
        return upload

    async def _finish(
        self, caller: Caller, upload: Upload, document: bool | None, draft: Draft
    ) -> AddedItem:
        async with self._file(upload) as file:
            kind = await self._detect_type(upload, file)
            document = not kind.startswith(SPEECH) if document is None else document
            refuse_wrong_type(kind, upload.content_type, document)
            content = await self._locate(caller, upload, file, kind)
            added = await self._library.keep(caller, draft, content, upload=upload)
        if not added.created:
            await self._store.uploads.finish(
                upload,
                added.item.id,
                {
                    "status": added.status,
                    "content_id": added.item.content_id,
                    "folder_id": added.folder_id,
                    "job_id": added.job_id,
                },
            )
        await self._originals.settle(upload, added.item)
        return (
            added
            if added.created
            else await self._first_result(caller, await self._own(caller, upload.id))
        )

    async def _detect_type(self, upload: Upload, file: Path) -> str:
        return await self._extractor.detect_type(
            file, upload.content_type, upload.filename, queue=upload.owner
        )

    async def _locate(self, caller: Caller, upload: Upload, file: Path, kind: str) -> Content:
        key, content = await self._known_content(caller, await asyncio.to_thread(_digest, file))
        if content and content.text:
            return content
        if kind.startswith(SPEECH):
            seconds, _ = await self._recordings.measure(file)
            content = content_of(
                Extracted(PurePath(upload.filename).stem, ""),
                key,
                recording={"blob": upload.key, "seconds": seconds},
                media_type=kind,
            )
            return with_picture(content, await self._pictures.of_file(file, kind))
        found = await self._extractor.extract(file, kind, name=upload.filename, queue=upload.owner)
        found = replace(found, title=found.title or PurePath(upload.filename).stem)
        content = content_of(found, key, web_address(found.address), media_type=kind)
        # Adding the address finds the file, as it finds a page that somebody has edited.
        content = replace(content, edit_of=url_key(content.url)) if content.url else content
        return with_picture(content, await self._pictures.of_file(file, kind))

    async def _known_content(self, caller: Caller, digest: str) -> tuple[str, Content | None]:
        """Return the caller's content key for a file with its content, or the library's key if the
        caller sees that item."""
        own, key = (
            private_key(who, "file", digest)
            for who in (caller, replace(caller, folders=None, kb_only=False))
        )
        content, item = await self._store.items.find_by_key(
            caller.scope, key, EntityType.DOCUMENT, token_id=caller.token_id
        )
        if item is not None or key == own:
            return key, content
        return own, (await self._store.items.find_by_key(caller.scope, own, EntityType.DOCUMENT))[0]

    async def add_file(
        self, caller: Caller, file: Path, *, name: str = "", **wish: Any
    ) -> AddedItem:
        """Add a local file. `name`: its original name, if it differs."""
        name, size = name or file.name, (await asyncio.to_thread(file.stat)).st_size
        kind = await self._extractor.detect_type(file, name=name, queue=caller.queue)
        upload, _ = await self.announce(caller, name, kind, size)
        try:
            await self._blobs.put(upload.key, file)
            return await self.finish(
                caller, upload.id, document=not kind.startswith(SPEECH), **wish
            )
        except CommonplaceError:
            await self._blobs.delete(upload.key)
            raise

    async def run_cleanup(self) -> None:
        while True:
            try:
                await self.cleanup()
            except Exception:
                # Deleting them later loses nothing. This must outlive a lost database or file
                # store.
                log.exception("Unneeded files could not be deleted; retrying later")
            await asyncio.sleep(_TIDY_SECONDS)

    async def cleanup(self) -> None:
        """Delete the bytes of expired uploads, deleted items and finished transcriptions. Complete
        files that a crash left behind are queued first."""
        for upload in await self._store.uploads.list_awaited():
            try:
                await self._resume(upload)
            except Exception:
                log.exception("The upload %s could not be queued; retrying later", upload.id)
        at = now()
        spent = await self._store.uploads.list_disposable(at, keep=self._settings.keep_originals)
        for upload in spent:
            await self._blobs.delete(upload.key)
            await asyncio.to_thread(self._incoming(upload).unlink, missing_ok=True)
        await self._store.uploads.forget_files([upload.id for upload in spent])
        await self._store.uploads.delete([upload for upload in spent if upload.expires_at < at])
        await self._files.cleanup()

    async def _resume(self, upload: Upload) -> None:
        file = self._incoming(upload)
        with suppress(Conflict), self._exclusive(upload):
            if await self._received(upload, file) != upload.size:
                return
            if await asyncio.to_thread(file.exists):
                await self._store_received(upload, file)
            else:
                async with self._blobs.file(upload.key) as stored:
                    await self._queue(upload, stored)

    @asynccontextmanager
    async def _file(self, upload: Upload) -> AsyncIterator[Path]:
        if upload.expires_at < now():
            raise Invalid(
                "The upload has expired. Start again with POST /api/v1/uploads/signed-url."
            )
        size = await self._blobs.size(upload.key)
        if size is None:
            raise Conflict(
                "The file has not arrived completely yet. PUT it to the URL that signed-url "
                "returned."
            )
        if size != upload.size:
            raise Conflict(
                f"The file has {size:,} bytes; {upload.size:,} were announced. Send it again, or "
                "announce it with its real size."
            )
        async with self._blobs.file(upload.key) as file:
            yield file

    async def _first_result(self, caller: Caller, upload: Upload) -> AddedItem:
        item = await self._store.items.get(
            caller.scope, ItemRef(id=upload.item_id), token_id=caller.token_id
        )
        told = upload.answer or {
            "status": item.state,
            "content_id": item.content_id,
            "folder_id": caller.single_folder,
            "job_id": None,
        }
        return AddedItem(
            told["status"],
            replace(item, content_id=told["content_id"]),
            told["folder_id"],
            False,
            told["job_id"],
        )


def _sender(upload: Upload) -> Caller:
    """Return the person who announced a file in the web app, with access to the whole library."""
    return Caller(upload.library_id, upload.owner.removeprefix(_PERSON), "", frozenset(Capability))


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
