// Use the types that openapi-typescript generates: add, read, search, change, and work on a task.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.d.ts";

declare const process: { argv: string[] };

const [address, token] = process.argv.slice(2);
const client = createClient<paths>({
  baseUrl: address,
  headers: { Authorization: `Bearer ${token}` },
});

function check(fact: unknown, what: string): asserts fact {
  if (!fact) throw new Error(what);
}

const added = await client.POST("/api/v1/ingest", {
  body: { kind: "text", title: "Tide tables", text: "The keeper has the tide tables." },
});
check(added.data?.status === "ready", "ingest");

const path = { item_id: added.data.user_item_id };
const item = await client.GET("/api/v1/items/{item_id}", { params: { path } });
check(item.data?.text === "The keeper has the tide tables.", "get");
const sections: components["schemas"]["FullItem"]["sections"] = item.data.sections;
check(sections.length === 1 && item.data.next_section === null, "sections");

const found = await client.POST("/api/v1/search", { body: { query: "tide tables", limit: 3 } });
check(found.data?.results[0]?.item_id === item.data.id, "search");

const stale = await client.PATCH("/api/v1/items/{item_id}", {
  params: { path, header: { "If-Match": 'W/"999"' } },
  body: { title: "Never" },
});
check(stale.response.status === 412 && stale.error?.error === "precondition_failed", "stale");
const changed = await client.PATCH("/api/v1/items/{item_id}", {
  params: { path },
  body: { tags: ["sea"], category: null },
});
check(changed.data?.tags[0] === "sea" && changed.data.title === "Tide tables", "patch");

const project = await client.POST("/api/entities", {
  params: { query: { sync: true } },
  body: { entity_type: "project", title: "Harbour", content: "The harbour." },
});
check(project.data, "project");
const task = await client.POST("/api/tasks", {
  body: { title: "Dredge", content: "Dredge it.", project: project.data.id, due_date: "2030-03-01" },
});
check(task.data?.due_date === "2030-03-01", "add task");
const started = await client.POST("/api/tasks/{entity_id}/start", {
  params: { path: { entity_id: task.data.id } },
});
check(started.data?.status === "doing", "start");
const cleared = await client.PATCH("/api/tasks/{entity_id}", {
  params: { path: { entity_id: task.data.id } },
  body: { due_date: null, priority: "high" },
});
check(cleared.data?.due_date === null && cleared.data.priority === "high", "clear");
const tasks = await client.GET("/api/tasks", { params: { query: { status: ["doing"] } } });
check(tasks.data?.total === 1 && tasks.data.tasks[0]?.id === task.data.id, "list");

const missing = await client.GET("/api/tasks/{entity_id}", {
  params: { path: { entity_id: "task_nope" } },
});
check(missing.response.status === 404 && missing.error?.message, "not found");
console.log("done");
