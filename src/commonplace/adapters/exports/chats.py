"""Conversations of ChatGPT and Claude: the branch that was shown last, as sessions."""

from datetime import datetime
from typing import Any

from commonplace.adapters.exports.parts import Found, clean, line, moment
from commonplace.model import Saved, SavedAs

_MOST = 20_000  # messages of a conversation


def read(loaded: Any, name: str) -> Found:
    talks = loaded if isinstance(loaded, list) else [loaded]
    for talk in talks:
        match talk:
            case {"mapping": dict()}:
                yield _chatgpt(talk)
            case {"chat_messages": list()}:
                yield _claude(talk)


def _saved(
    program: str, talk: dict[str, Any], turns: list[tuple[str, str]], about: dict[str, Any]
) -> Saved:
    key = clean(talk.get("conversation_id") or talk.get("id") or talk.get("uuid"))[:80]
    text = "\n\n".join(f"**{who}:** {said}" for who, said in turns)
    title = talk.get("title") or talk.get("name")
    title = line(title or (turns[0][1][:100] if turns else "")) or "Untitled"
    if not text:
        return Saved(title, lost="The conversation has no messages.")
    begun: datetime | None = moment(talk.get("create_time") or talk.get("created_at"))
    ended = moment(talk.get("update_time") or talk.get("updated_at"))
    about = {"program": program, "session_id": key} | about
    return Saved(
        title,
        text=text,
        at=begun,
        key=f"{program}:{key}",
        about=about | ({"ended_at": ended.isoformat()} if ended else {}),
        kind=SavedAs.SESSION,
    )


def _join(turns: list[tuple[str, str]], who: str, said: str) -> None:
    if said and turns and turns[-1][0] == who:
        turns[-1] = who, f"{turns[-1][1]}\n\n{said}"
    elif said:
        turns.append((who, said))


def _chatgpt(talk: dict[str, Any]) -> Saved:
    nodes, at = talk["mapping"], talk.get("current_node")
    if not at:  # the last one of the list
        at = next(reversed(nodes), None)
    shown: list[dict[str, Any]] = []
    seen: set[str] = set()
    while isinstance(at, str) and at not in seen and len(seen) < _MOST:
        seen.add(at)
        node = nodes.get(at)
        if not isinstance(node, dict):
            break
        if isinstance(node.get("message"), dict):
            shown.append(node["message"])
        at = node.get("parent")
    turns: list[tuple[str, str]] = []
    models: list[str] = []
    for message in reversed(shown):
        author, told = message.get("author"), message.get("metadata")
        role = author.get("role") if isinstance(author, dict) else None
        told = told if isinstance(told, dict) else {}
        if role not in ("user", "assistant") or told.get("is_visually_hidden_from_conversation"):
            continue
        if told.get("model_slug"):
            models.append(clean(told["model_slug"])[:80])
        _join(turns, "User" if role == "user" else "Assistant", _parts(message.get("content")))
    return _saved("chatgpt", talk, turns, {"model": models[-1]} if models else {})


def _parts(content: Any) -> str:
    match content:
        case {"content_type": "text" | "multimodal_text", "parts": list(parts)}:
            said = (
                part
                if isinstance(part, str)
                else (part.get("text") or "(an image or a file)")
                if isinstance(part, dict)
                else ""
                for part in parts
            )
            return "\n\n".join(clean(part).strip() for part in said if part).strip()
        case {"content_type": "code", "text": str(text)}:
            return clean(f"```\n{text}\n```")
    return ""  # thoughts, and what tools answered


def _claude(talk: dict[str, Any]) -> Saved:
    messages = [each for each in talk["chat_messages"][:_MOST] if isinstance(each, dict)]
    turns: list[tuple[str, str]] = []
    for message in _branch(talk, messages):
        blocks = message.get("content")
        said = [
            block["text"]
            for block in (blocks if isinstance(blocks, list) else ())
            if isinstance(block, dict)
            and block.get("type") == "text"
            and isinstance(block.get("text"), str)
        ] or [message.get("text")]
        files = message.get("attachments")
        for file in files if isinstance(files, list) else ():
            if isinstance(file, dict) and file.get("extracted_content"):
                name = line(file.get("file_name")) or "a file"
                said.append(f"Attached: {name}\n\n{clean(file['extracted_content'])}")
        who = "User" if message.get("sender") == "human" else "Assistant"
        _join(turns, who, "\n\n".join(clean(part).strip() for part in said if part))
    model = {"model": clean(talk["model"])[:80]} if talk.get("model") else {}
    return _saved("claude", talk, turns, model)


def _branch(talk: dict[str, Any], messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Follow the parents of the last message, where messages name them."""
    known = {str(each["uuid"]): each for each in messages if each.get("uuid")}
    if not any(str(each.get("parent_message_uuid")) in known for each in messages):
        return messages
    at = str(talk.get("current_leaf_message_uuid") or messages[-1].get("uuid"))
    shown: list[dict[str, Any]] = []
    while at in known:
        shown.append(known.pop(at))
        at = str(shown[-1].get("parent_message_uuid"))
    return shown[::-1]
