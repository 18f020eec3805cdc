"""A script for Sibyl's REST and MCP API, as its documentation describes them."""

import json
import os
import sys
from typing import Any

import httpx

BASE, KEY = os.environ["BASE_URL"], os.environ["API_KEY"]
HEADERS = {"Authorization": f"Bearer {KEY}"}
api = httpx.Client(base_url=f"{BASE}/api", headers=HEADERS, timeout=60)


def tool(name: str, arguments: dict[str, Any]) -> Any:
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments},
    }
    accept = {"Accept": "application/json, text/event-stream"}
    answer = httpx.post(f"{BASE}/mcp", json=message, headers=HEADERS | accept, timeout=60).json()
    return answer["error"] if "error" in answer else answer["result"]["structuredContent"]


def step(task: str, verb: str, status: str, **body: Any) -> dict[str, Any]:
    response = api.post(f"/tasks/{task}/{verb}", json=body)
    assert response.status_code == 200, response.text
    assert response.json()["status"] == status
    return dict(response.json())


assert "/api/entities" in httpx.get(f"{BASE}/api/openapi.json").json()["paths"]
assert httpx.get(f"{BASE}/api/docs").headers["content-type"].startswith("text/html")

project = tool(
    "add",
    {
        "title": "Auth System",
        "content": "Backend authentication and authorization services.",
        "entity_type": "project",
        "repository_url": "https://github.com/org/auth-system",
        "technologies": ["python", "fastapi"],
        "tags": ["backend"],
    },
)
assert project["success"]
assert project.keys() >= {"id", "message", "timestamp", "conflicts"}
made = api.post(
    "/entities",
    params={"sync": "true"},
    json={
        "title": "Implement GitHub OAuth callback",
        "content": "Handle the OAuth callback from GitHub.",
        "entity_type": "task",
        "project": project["id"],
        "priority": "high",
    },
)
assert made.status_code == 201
task = made.json()["id"]

# the state machine over REST
started = step(task, "start", "doing", assignee="alice")
assert started["branch_name"].startswith(f"task/{task}-implement-github")
assert started["assignees"] == ["alice"]
step(task, "block", "blocked", reason="Waiting for keys")
step(task, "unblock", "doing")
step(task, "review", "review", pr_url="https://github.com/org/a/pull/1", commit_shas=["abc123"])
step(task, "complete", "done", learnings="Validate the state parameter first.")
step(task, "archive", "archived")

# and by manage
other = tool(
    "add",
    {
        "title": "Add user dashboard",
        "content": "Create the main user dashboard.",
        "entity_type": "task",
        "project": project["id"],
    },
)["id"]
begun = tool("manage", {"action": "start_task", "entity_id": other, "data": {"assignee": "bob"}})
assert begun.keys() >= {"success", "action", "entity_id", "message", "data"}
assert begun["data"]["branch_name"] == f"task/{other}-add-user-dashboard"
review = {"pr_url": "https://github.com/org/a/pull/2", "commit_shas": ["def456"]}
assert tool("manage", {"action": "submit_review", "entity_id": other, "data": review})["success"]
done = {"learnings": "Keep widgets small."}
assert tool("manage", {"action": "complete_task", "entity_id": other, "data": done})["success"]
crawl = {"url": "http://127.0.0.1:9/", "depth": 2, "max_pages": 50}
source = tool("manage", {"action": "crawl", "data": crawl})["data"]["source_id"]
for action in ("sync", "link_graph"):
    answer = tool("manage", {"action": action, "data": {"source_id": source}})
    assert answer["success"]
    assert answer["data"]["source_id"] == source
refused = tool("manage", {"action": "sync", "data": {"source_id": "s"}})
assert refused["message"] == "Crawl not found"

# searching
found = api.post("/search", json={"query": "OAuth callback", "types": ["task"], "limit": 5})
assert found.status_code == 200
assert found.json()["results"][0].keys() >= {"id", "type", "title", "content", "score"}
json.dump({"ok": True}, sys.stdout)
