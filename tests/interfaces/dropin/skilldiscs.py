"""A script for SkillDiscs' REST and MCP API, as its documentation describes them."""

import json
import os
import sys
from typing import Any

import httpx

BASE, KEY, DISK = os.environ["BASE_URL"], os.environ["API_KEY"], os.environ["DISK"]
HEADERS = {"Authorization": f"Bearer {KEY}"}
api = httpx.Client(base_url=f"{BASE}/api/v1", headers=HEADERS, timeout=60)


def tool(name: str, arguments: dict[str, Any]) -> Any:
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments},
    }
    accept = {"Accept": "application/json, text/event-stream"}
    answer = httpx.post(f"{BASE}/api/mcp", json=message, headers=HEADERS | accept, timeout=60)
    result = answer.json()["result"]
    assert result["content"][0]["type"] == "text"
    return json.loads(result["content"][0]["text"])


# MCP
hits = tool("search_knowledge", {"query": "how does spaced repetition work?", "limit": 5})
assert hits[0].keys() >= {
    "disk_public_id",
    "disk_title",
    "section_index",
    "similarity",
    "key_points",
    "redacted",
}
assert hits[0].get("section_text") or hits[0].get("snippet")
disk = tool("get_disk", {"disk_id": DISK})
assert disk["relationship"] == "owned"
assert not disk["redacted"]
assert disk["sections"][0]["index"] == 1
missing = tool("get_disk", {"disk_id": "zzzzzzzzzzzz"})
assert missing == {"error": "not_found", "message": "Disk not found"}
assert tool("list_disks", {"scope": "all", "limit": 20})["total"] >= 1

# REST
listed = api.get("/disks", params={"scope": "owned", "limit": 2}).json()
assert listed["scope"] == "owned"
assert len(listed["disks"]) == 2
assert "similarity" not in listed["disks"][0]
found = api.get(
    "/disks", params={"search": "forgetting", "limit": 2, "offset": 9, "category": "none"}
).json()
assert found["scope"] == "owned"
assert found["total"] == len(found["disks"]) == 2
assert found["disks"][0]["public_id"] == DISK
scores = [disk["similarity"] for disk in found["disks"]]
assert scores == sorted(scores, reverse=True)
assert all(0 <= score <= 1 for score in scores)
one = api.get(f"/disks/{DISK}").json()
assert "related_disks" in one
assert "source_url" in one
batch = api.post("/disks/batch", json={"ids": [DISK, "zzzzzzzzzzzz"]}).json()
assert batch["not_found"] == ["zzzzzzzzzzzz"]
assert batch["disks"][0]["public_id"] == DISK
assert not {"related_disks", "source_url"} & batch["disks"][0].keys()
for body, code in (
    ({}, "bad_request"),
    ({"ids": "abc"}, "bad_request"),
    ({"ids": ["x"] * 11}, "batch_too_large"),
):
    refused = api.post("/disks/batch", json=body)
    assert (refused.status_code, refused.json()["error"]) == (400, code), refused.text
unknown = httpx.get(f"{BASE}/api/v1/disks", headers={"Authorization": "Bearer sk_wrong"})
assert (unknown.status_code, unknown.json()["error"]) == (401, "unauthorized")
foreign = api.get("/disks", headers={"Origin": "https://app.example.org"})
assert foreign.status_code == 200
assert foreign.headers["access-control-allow-origin"] == "*"
json.dump({"ok": True}, sys.stdout)
