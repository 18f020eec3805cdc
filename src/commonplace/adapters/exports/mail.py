"""Mail: single messages (eml) and mailboxes (mbox)."""

import email
import mailbox
from datetime import UTC, datetime
from email import policy
from email.message import EmailMessage, Message
from email.utils import parsedate_to_datetime
from pathlib import Path

from commonplace.adapters.exports.parts import Found, Output, clean, line
from commonplace.adapters.extract.html import convert
from commonplace.adapters.extract.input_file import clean_text
from commonplace.model import Attachment, Saved

_LONGEST = 2_000_000  # characters of a message


def read_mbox(path: Path, out: Output) -> Found:
    box = mailbox.mbox(path, factory=None, create=False)
    try:
        for key in box.iterkeys():
            yield from read_message(box.get_bytes(key), out)
    finally:
        box.close()


def read_message(data: bytes, out: Output) -> Found:
    message = email.message_from_bytes(data, policy=policy.default)
    assert isinstance(message, EmailMessage)
    title = line(_header(message, "subject")) or "(no subject)"
    text, attachments, lost = "", [], ""
    try:
        text = _text(message)
        attachments = _attachments(message, out)
    except (LookupError, ValueError, AssertionError, AttributeError, TypeError) as error:
        lost = f"The message is damaged ({type(error).__name__})."
    if not text.strip() and not attachments:
        yield Saved(title, lost=lost or "The message has no text.")
        return
    names = ("from", "to", "cc", "message-id")
    about = {name: found for name in names if (found := line(_header(message, name)))}
    who = " · ".join(f"{name.capitalize()}: {about[name]}" for name in names[:3] if name in about)
    yield Saved(
        title,
        text=f"{who}\n\n{text}".strip(),
        at=_date(message),
        author=about.get("from", ""),
        key=f"mail:{about['message-id']}" if "message-id" in about else "",
        attachments=tuple(attachments),
        about=about,
    )


def _header(message: Message, name: str) -> str:
    try:
        return clean(message.get(name))
    except (ValueError, IndexError, AttributeError, TypeError):  # damaged headers
        return ""


def _date(message: Message) -> datetime | None:
    try:
        found = parsedate_to_datetime(_header(message, "date"))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _text(message: EmailMessage) -> str:
    body = message.get_body(("plain", "html"))
    if body is None:
        return ""
    content = body.get_content()
    if not isinstance(content, str):
        return ""
    content = content[:_LONGEST]
    if body.get_content_type() == "text/html":
        tree = convert.parse(content)
        return convert.convert(tree) if tree is not None else ""
    return clean_text(content)


def _attachments(message: EmailMessage, out: Output) -> list[Attachment]:
    found = []
    for part in message.iter_attachments():
        name = part.get_filename() or ""
        data = part.get_payload(decode=True)
        if name and isinstance(data, bytes) and data:
            found.append(out.attach(name, data))
    return found
