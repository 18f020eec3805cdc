"""graph add, get, list, search at the command line."""

from pathlib import Path

from tests.interfaces.command import Commands


def test_entities_at_the_command_line(data_dir: Path) -> None:
    run = Commands(data_dir)
    project = run.json("graph", "add", "Auth", "--content", "Services.", "--type", "project")
    assert project["message"] == "Added: Auth" and project["id"].startswith("project_")
    task = run.json(
        "graph",
        "add",
        "Fix the callback",
        "--type",
        "task",
        "--project",
        project["id"],
        "--assignee",
        "alice",
        "--due",
        "2026-03-31",
        stdin="It is broken since Monday.",
    )
    shown = run.json("graph", "get", task["id"])
    assert (shown["content"], shown["project"], shown["status"], shown["due_date"]) == (
        "It is broken since Monday.",
        project["id"],
        "todo",
        "2026-03-31",
    )
    assert [one["id"] for one in run.json("graph", "list", "--type", "task")["entities"]] == [
        task["id"]
    ]
    assert [
        one["id"] for one in run.json("graph", "search", "callback", "--type", "task")["results"]
    ] == [task["id"]]
    assert (
        run.fails("graph", "add", "Alone", "--content", "text", "--type", "task").strip()
        == "Tasks require a project"
    )
    assert "Unknown type 'rule'" in run.fails("graph", "list", "--type", "rule")
    again = run.run(
        "graph",
        "add",
        "Fix the callback",
        "--type",
        "task",
        "--project",
        project["id"],
        "--content",
        "It is broken since Monday.",
    )
    assert again.exit_code == 0 and "duplicate (1.00): Fix the callback" in again.stderr


def test_memories_are_corrected_at_the_command_line(data_dir: Path) -> None:
    run = Commands(data_dir)
    old = run.json("remember", "Queue", "We use Celery.", "--kind", "decision")["id"]
    said = run.json(
        "graph", "supersede", old, "--content", "-", "--reason", "simpler", stdin="We use a table."
    )
    assert said["status"] == "superseded" and said["superseded_by"].startswith("decision_")
    assert run.json("graph", "get", said["superseded_by"])["content"] == "We use a table."
    assert "Name the replacement" in run.fails("graph", "supersede", old)
    assert run.text("graph", "restore", old).startswith("Restored: Queue")
    assert run.json("graph", "mark-stale", old)["status"] == "stale"
    assert (
        run.json("graph", "mark-wrong", old, "--reason", "never so")["metadata"]["correction"][
            "reason"
        ]
        == "never so"
    )
    assert run.text("graph", "delete", old) == "Deleted: Queue\n"
    assert run.fails("graph", "get", old) == f"No entity {old!r}.\n"
