"""A script for Graniite's REST and MCP API, as its documentation describes them."""

import json
import os
import sys
from typing import Any

import httpx

BASE, KEY, PAGE = os.environ["BASE_URL"], os.environ["API_KEY"], os.environ["PAGE_URL"]
api = httpx.Client(
    base_url=f"{BASE}/api/v1", headers={"Authorization": f"Bearer {KEY}"}, timeout=60
)


def call(method: str, path: str, status: int = 200, **options: Any) -> Any:
    response = api.request(method, path, **options)
    assert response.status_code == status, (method, path, response.status_code, response.text)
    return response.json()


def tool(name: str, arguments: dict[str, Any]) -> Any:
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments},
    }
    headers = {
        "Authorization": f"Bearer {KEY}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-11-25",
    }
    return httpx.post(f"{BASE}/mcp", json=message, headers=headers, timeout=60).json()


assert "/api/v1/items" in httpx.get(f"{BASE}/api/v1/openapi.json").json()["paths"]

# folders
folder = call("POST", "/folders", 201, json={"name": "Research"})["folder"]
assert folder.keys() >= {"id", "name", "created_at", "last_added_at", "item_count"}
assert folder["item_count"] == 0

# adding
added = tool(
    "add_to_knowledge",
    {
        "kind": "text",
        "title": "Standup notes 2026-05-19",
        "text": "Decisions: ship the API docs. Folder rename deferred.",
        "in_kb": True,
        "auto_transform": False,
    },
)["result"]["structuredContent"]
assert added["status"] == "ready"
assert added.keys() >= {"user_item_id", "content_id", "folder_id"}
note = added["user_item_id"]
page = call("POST", "/ingest", 201, json={"kind": "url", "url": PAGE})["user_item_id"]
filed = call("POST", f"/items/{note}/folders", json={"folder_ids": [folder["id"]]})
assert filed == {"ok": True, "added_folder_ids": [folder["id"]]}

# listing
assert call("GET", "/items")["total"] == 2
[listed] = call("GET", "/items", params={"folder_id": folder["id"]})["items"]
assert listed["id"] == note
for field in [
    "title",
    "kind",
    "url",
    "summary",
    "in_kb",
    "archived",
    "created_at",
    "platform",
    "read",
    "auto_transform",
    "duration_seconds",
    "media_kind",
    "thumbnail_url",
    "published_at",
    "transcription_status",
]:
    assert field in listed, field
assert listed["auto_transform"] is False
call("PATCH", f"/items/{page}", json={"archived": True, "title": "My title", "in_kb": False})
for query, count in (
    ({}, 1),
    ({"archived": "true"}, 1),
    ({"archived": "any"}, 2),
    ({"archived": "any", "in_kb": "true"}, 1),
    ({"archived": "any", "in_kb": "any"}, 2),
    ({"archived": "any", "in_kb": "false"}, 1),
):
    found = call("GET", "/items", params=query)
    assert (found["total"], found["page"]) == (count, 1), query
call("GET", "/items", 422, params={"in_kb": "perhaps"})
call("GET", "/items", 404, params={"folder_id": "not-a-folder"})

# reading
read = call("GET", f"/items/{page}")
assert (read["custom_title"], read["platform"]) == ("My title", "web")
assert read["source_title"]
assert (read["transcript"], read["transcript_segments"], read["media_kind"]) == (None,) * 3
assert read["folders"] == []

# uploads: sign, put, finalize
text = b"# Herons\n\nHerons wait in the river for fish.\n"
about = {"mime": "text/markdown", "size": len(text), "filename": "herons.md"}
signed = call("POST", "/uploads/signed-url", 201, json=about)
assert signed["mime"] == "text/markdown"
assert (signed["kind"], signed["extension"]) == ("document", "md")
assert signed["max_bytes"] > len(text)
assert signed["signed_url"].startswith("http")
httpx.put(signed["signed_url"], content=text).raise_for_status()
finish = signed["finalize_endpoint"].removeprefix("/api/v1")
document = call(
    "POST",
    finish,
    201,
    json={"path": signed["path"], "mime": signed["mime"], "size": len(text)},
)
read = call("GET", f"/items/{document['user_item_id']}")
assert (read["media_kind"], read["mime_type"]) == ("document", "text/markdown")
nameless = call("POST", "/uploads/signed-url", 201, json={"mime": "audio/mpeg", "size": 9})
assert (nameless["kind"], nameless["extension"]) == ("audio", "mp3")
assert nameless["finalize_endpoint"].endswith("/finalize")

# a recording, whose transcription has ended
if recording := os.environ.get("RECORDING"):
    read = call("GET", f"/items/{recording}")
    assert read["transcription_status"] == "done"
    assert read["transcription_error"] is None
    assert read["media_kind"] == "audio"
    assert read["duration_seconds"] > 0
    assert read["transcript"]
    for segment in read["transcript_segments"]:
        assert segment.keys() == {"start", "end", "text", "speaker"}
        assert 0 <= segment["start"] <= segment["end"]

# searching
hits = tool("search_knowledge_base", {"query": "ship the API docs", "limit": 5, "mode": "hybrid"})
assert hits["result"]["content"][0]["text"].startswith("1. (")
wrong = tool("search_knowledge_base", {"query": "x", "limit": 21})
assert wrong["error"]["code"] == -32602
json.dump({"ok": True}, sys.stdout)
