"""Entities, tasks and corrections at the command line."""

from pathlib import Path

import pytest

from tests.interfaces.command import Commands


@pytest.fixture
def run(data_dir: Path) -> Commands:
    return Commands(data_dir)


@pytest.fixture
def project(run: Commands) -> str:
    return str(run.json("remember", "Auth", "Services.", "--type", "project")["id"])


def test_entities_at_the_command_line(run: Commands) -> None:
    project = run.json("remember", "Auth", "Services.", "--type", "project")
    assert project["message"] == "Added: Auth" and project["id"].startswith("project_")
    task = run.json(
        "remember",
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
    shown = run.json("get", task["id"])
    assert (shown["content"], shown["project"], shown["status"], shown["due_date"]) == (
        "It is broken since Monday.",
        project["id"],
        "todo",
        "2026-03-31",
    )
    assert [one["id"] for one in run.json("list", "--type", "task")["entities"]] == [task["id"]]
    assert [one["id"] for one in run.json("search", "callback", "--type", "task")["results"]] == [
        task["id"]
    ]
    assert "does not go with" in run.fails("list", "--type", "task", "--folder", "Drafts")
    assert (
        run.fails("remember", "Alone", "text", "--type", "task").strip()
        == "Tasks require a project"
    )
    assert "--type must be document, episode" in run.fails("list", "--type", "rule")
    again = run.run(
        "remember",
        "Fix the callback",
        "It is broken since Monday.",
        "--type",
        "task",
        "--project",
        project["id"],
    )
    assert again.exit_code == 0 and "duplicate (1.00): Fix the callback" in again.stderr


def test_memories_are_corrected_at_the_command_line(run: Commands) -> None:
    old = run.json("remember", "Queue", "We use Celery.", "--type", "decision")["id"]
    said = run.json(
        "edit",
        old,
        "--mark",
        "superseded",
        "--content",
        "-",
        "--reason",
        "simpler",
        stdin="We use a table.",
    )
    assert said["status"] == "superseded" and said["superseded_by"].startswith("decision_")
    assert run.json("get", said["superseded_by"])["content"] == "We use a table."
    assert "Name the replacement" in run.fails("edit", old, "--mark", "superseded")
    assert run.text("edit", old, "--mark", "valid").startswith("Restored: Queue")
    assert run.json("edit", old, "--mark", "stale")["status"] == "stale"
    assert (
        run.json("edit", old, "--mark", "wrong", "--reason", "never so")["metadata"]["correction"][
            "reason"
        ]
        == "never so"
    )
    assert "--by does not go with" in run.fails("edit", old, "--mark", "wrong", "--by", "x")
    assert run.text("delete", old) == "Deleted: Queue\n"
    assert run.fails("get", old) == f"No entity {old!r}.\n"


def test_a_task_is_moved_noted_and_updated(run: Commands, project: str) -> None:
    task = run.json("task", "add", "Fix the callback", "--project", project, "--due", "2026-03-31")
    assert (task["entity_type"], task["status"]) == ("task", "todo")
    assert run.json("get", task["id"])["content"] == "Fix the callback"
    assert (
        run.text("task", "update", task["id"], "--status", "doing") == "Started: Fix the callback\n"
    )
    assert (
        run.fails("task", "update", task["id"], "--status", "blocked") == "--reason is required.\n"
    )
    run.text("task", "update", task["id"], "--status", "blocked", "--reason", "no keys")
    assert "blocked: no keys\n" in run.text("get", task["id"])
    assert (
        run.text("task", "update", task["id"], "--status", "doing")
        == "Unblocked: Fix the callback\n"
    )
    assert run.json("task", "update", task["id"], "--status", "todo")["status"] == "todo"
    assert "--hours does not go" in run.fails(
        "task", "update", task["id"], "--status", "todo", "--hours", 1
    )
    assert "the statuses are: backlog, todo" in run.fails(
        "task", "update", task["id"], "--status", "gone"
    )
    run.text("task", "update", task["id"], "--status", "doing")
    done = run.json(
        "task",
        "update",
        task["id"],
        "--status",
        "done",
        "--hours",
        3,
        "--learnings",
        "Check state.",
    )
    assert (done["metadata"]["actual_hours"], done["learnings_id"][:8]) == (3, "episode_")
    noted = run.json("task", "update", task["id"], "--note", "-", stdin="Mind the clock.")
    assert [note["text"] for note in noted["metadata"]["notes"]] == ["Mind the clock."]
    updated = run.json("task", "update", task["id"], "--due", "", "--tag", "a", "--tag", "b")
    assert (updated["due_date"], updated["tags"]) == (None, ["a", "b"])
    assert run.json("task", "update", task["id"], "--tag", "")["tags"] == []
    assert "Owner: Mind the clock." in run.text("get", task["id"])
    assert "is a project, not a task" in run.fails("task", "update", project, "--status", "doing")


def test_epics_are_tasks_of_another_type(run: Commands, project: str) -> None:
    epic = run.json("task", "add", "Login", "--type", "epic", "--project", project)["id"]
    task = run.json("task", "add", "Callback", "--project", project, "--epic", epic)["id"]
    assert [one["id"] for one in run.json("task", "list", "--type", "epic")["epics"]] == [epic]
    assert [one["id"] for one in run.json("task", "list", "--epic", epic)["tasks"]] == [task]
    assert run.json("task", "update", epic, "--title", "Sign-in")["title"] == "Sign-in"
    assert "--epic does not go with" in run.fails("task", "update", epic, "--epic", epic)
    assert run.text("task", "update", epic, "--status", "in_progress") == "Started: Sign-in\n"
    assert run.json("task", "update", task, "--epic", "")["epic"] is None
    assert run.json("task", "list", "--next", "--limit", 1)["suggestions"][0]["id"] == task
    assert "--page does not go with" in run.fails("task", "list", "--next", "--page", 2)
