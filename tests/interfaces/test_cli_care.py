"""import, export, eval, reindex, doctor from the command line."""

import json
import sys
from contextlib import closing
from pathlib import Path

import apsw
import psycopg
import pytest

from commonplace.adapters.model_download import MINILM
from commonplace.database.migrations import migrations
from tests.interfaces.command import Commands


@pytest.fixture
def cli(data_dir: Path) -> Commands:
    return Commands(data_dir)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.md").write_text("# Alpha\n\nGoes to [[Beta]] with ERR_ONE.")
    (folder / "sub" / "b.md").write_text("---\ntags: [x]\n---\n# Beta\n\nComes from [a](../a.md).")
    return folder


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    """Two groups that say the same: a query must find its own group's document. Known answers: all at rank 1."""
    folder = tmp_path / "set"
    folder.mkdir()
    documents = [
        {
            "_id": f"{group}-{name}",
            "title": name,
            "text": f"Everything about {name} and nothing else.",
            "group": group,
        }
        for group in ("left", "right")
        for name in ("zebras", "glaciers", "violins")
    ]
    queries = [
        {"_id": f"q-{d['_id']}", "text": f"tell me about {d['title']}", "group": d["group"]}
        for d in documents
    ]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, documents)))
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    (folder / "qrels.tsv").write_text(
        "query-id\tcorpus-id\tscore\n"
        + "".join(f"q-{d['_id']}\t{d['_id']}\t1\n" for d in documents)
    )
    return folder


def test_import_then_export(cli: Commands, notes: Path, tmp_path: Path) -> None:
    first = cli.json("import", notes)
    assert first == {
        "added": 2,
        "changed": 0,
        "unchanged": 0,
        "folders": 1,
        "waiting": 2,
        "skipped": [],
        "unread": [],
        "same": [],
        "unreachable": [],
    }
    assert cli.json("search", "ERR_ONE", "--mode", "keyword")["hits"][0]["title"] == "Alpha"
    again = cli.json("import", notes, "--wait")
    assert (again["unchanged"], again["waiting"]) == (2, 0)
    assert cli.json("doctor")["sections_with_vectors"] == 2
    assert cli.json("export", tmp_path / "out") == {"exported": 2}
    assert (
        (tmp_path / "out" / "sub" / "b.md")
        .read_text()
        .endswith("# Beta\n\nComes from [a](../a.md).")
    )


def test_import_of_what_cannot_be_read_tells_and_fails(cli: Commands, notes: Path) -> None:
    (notes / "bad.md").write_bytes(b"\xff\xfe\x00")
    result = cli.run("import", notes, "--json")
    assert result.exit_code == 1
    assert "Skipped bad.md" in result.stderr
    answer = json.loads(result.stdout)
    assert (answer["added"], [skipped["path"] for skipped in answer["skipped"]]) == (2, ["bad.md"])
    assert "There is no file or folder" in cli.fails("import", notes / "nowhere")


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_eval_keeps_each_query_to_its_group(
    engine: str, data_dir: Path, judged: Path, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue("postgres_url") if engine == "postgres" else ""
    before = schemas(url)
    answer = Commands(data_dir, database_url=url).json("eval", judged)
    assert (answer["docs"], answer["queries"]) == (6, 6)
    assert answer["modes"] == {
        mode: {"ndcg@10": 1.0, "recall@10": 1.0, "recall@5": 1.0, "mrr@10": 1.0}
        for mode in ("semantic", "keyword", "hybrid")
    }
    assert schemas(url) == before, "a schema was left behind"


def schemas(url: str) -> list[str]:
    if not url:
        return []
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'commonplace%' ORDER BY 1"
        )
        return [row[0] for row in found.fetchall()]


def test_eval_of_documents_that_say_the_same_and_wrong_answers(cli: Commands, judged: Path) -> None:
    same = [
        {"_id": name, "title": "Same", "text": "the very same words about zebras"}
        for name in ("a", "b")
    ]
    (judged / "corpus.jsonl").write_text(
        "\n".join(map(json.dumps, [*same, {"_id": "c", "text": "violins and nothing else"}]))
    )
    (judged / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "zebras"}))
    (judged / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq\ta\t1\nq\tb\t1\nq\tc\t1\n")
    answer = cli.json("eval", judged)
    assert answer["docs"] == 3
    assert answer["modes"]["keyword"]["recall@10"] == round(2 / 3, 4)
    assert answer["modes"]["semantic"]["recall@10"] == 1


def test_eval_takes_groups_that_only_look_alike_for_several(cli: Commands, judged: Path) -> None:
    for name in ("corpus.jsonl", "queries.jsonl"):
        (judged / name).write_text(
            (judged / name).read_text().replace('"group": "right"', '"group": "Left "')
        )
    assert cli.json("eval", judged)["modes"]["hybrid"] == {
        "ndcg@10": 1.0,
        "recall@10": 1.0,
        "recall@5": 1.0,
        "mrr@10": 1.0,
    }


def test_eval_leaves_the_library_alone(judged: Path, new_data_dir: Path) -> None:
    cli = Commands(new_data_dir)
    cli.json("eval", judged)
    assert not (new_data_dir / "commonplace.sqlite3").exists()
    (judged / "qrels.tsv").unlink()
    assert "no qrels.tsv" in cli.fails("eval", judged)


def test_reindex_after_another_embedder(cli: Commands, notes: Path, data_dir: Path) -> None:
    cli.json("import", notes, "--wait")
    with closing(apsw.Connection(str(data_dir / "commonplace.sqlite3"))) as connection:
        connection.execute("UPDATE vectors SET stamp = 'other/model/256'")
    result = cli.run("doctor", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["problems"] == [
        "Some vectors were made by another embedder: run `commonplace reindex`."
    ]
    degraded = cli.json("search", "alpha")
    assert "reindex" in degraded["degraded"]
    assert degraded["hits"][0]["title"] == "Alpha"
    done = cli.json("reindex")
    assert done == {"items": 2, "stamp": cli.json("doctor")["embedder"], "described": 2}
    assert cli.json("doctor")["ok"]
    assert cli.json("search", "alpha")["degraded"] is None
    assert cli.json("reindex")["items"] == 0


def test_doctor_says_that_the_default_embedder_reads_english_only(
    cli: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "English only" in cli.json("doctor")["languages"]
    monkeypatch.setenv("COMMONPLACE_EMBEDDER", "openai")
    monkeypatch.setenv("COMMONPLACE_EMBEDDER_MODEL", "multilingual")
    monkeypatch.setenv("COMMONPLACE_EMBEDDER_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("COMMONPLACE_EMBEDDER_KEY", "k")
    monkeypatch.setenv("COMMONPLACE_EMBEDDER_DIMENSIONS", "8")
    assert "English" not in cli.run("doctor", "--json").stdout


STORY = " ".join(
    f"The otter of day {day} swims along the river bank and looks for crayfish under every stone."
    for day in range(5)
)


def set_item(data_dir: Path, title: str, **columns: object) -> None:
    with closing(apsw.Connection(str(data_dir / "commonplace.sqlite3"))) as connection:
        for name, value in columns.items():
            connection.execute(f"UPDATE items SET {name} = ? WHERE title = ?", (value, title))


def test_reindex_makes_automatic_tags_and_summaries_anew_and_keeps_what_people_chose(
    cli: Commands, data_dir: Path, tmp_path: Path
) -> None:
    (tmp_path / "vault").mkdir()
    for title in ("Otter", "Chosen", "Removed", "Cleared", "Model"):
        (tmp_path / "vault" / f"{title}.md").write_text(f"# {title}\n\n{STORY}")
    (tmp_path / "vault" / "Short.md").write_text("# Short\n\nThe otter swims. The otter sleeps.")
    (tmp_path / "vault" / "Own.md").write_text(
        f"---\nsummary: My own words.\n---\n# Own\n\n{STORY}"
    )
    cli.json("import", tmp_path / "vault", "--wait")
    items = {item["title"]: item for item in cli.json("list", "--limit", 20)["items"]}
    made = items["Otter"]["tags"]
    assert len(made) > 1 and "otter" in " ".join(made) and items["Otter"]["summary"] in STORY
    assert (items["Short"]["tags"], items["Short"]["summary"]) == ([], "")
    set_item(data_dir, "Chosen", tags=json.dumps(["mine", made[0]]), auto_tags="[]")
    set_item(data_dir, "Otter", tags='["old"]', auto_tags='["old"]', summary="old", category="Mine")
    set_item(data_dir, "Removed", tags=json.dumps(made[:1]))  # the others are removed
    set_item(data_dir, "Cleared", tags="[]")
    set_item(data_dir, "Model", summary="By a model.", metadata='{"ai_generated":true}')
    before = {item["title"]: item for item in cli.json("list", "--limit", 20)["items"]}
    assert cli.json("reindex")["described"] == 6
    after = {item["title"]: item for item in cli.json("list", "--limit", 20)["items"]}
    told = {title: item["tags"] for title, item in after.items()}
    assert told["Otter"] == made and after["Otter"]["summary"] == items["Otter"]["summary"]
    assert after["Otter"]["category"] == "Mine"
    assert told["Chosen"] == before["Chosen"]["tags"] and "mine" in told["Chosen"]
    assert (told["Removed"], told["Cleared"], told["Short"]) == (made[:1], [], [])
    assert after["Model"]["summary"] == "By a model."
    assert after["Own"]["summary"] == "My own words."


def test_export_and_backup_keep_which_tags_are_automatic(
    cli: Commands, data_dir: Path, tmp_path: Path
) -> None:
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "otter.md").write_text(f"# Otter\n\n{STORY}")
    cli.json("import", tmp_path / "vault", "--wait")
    cli.json("export", tmp_path / "out")
    cli.json("backup", tmp_path / "backup")
    [made] = [item["tags"] for item in cli.json("list")["items"]]
    for name, command in (("import", "out"), ("restore", "backup")):
        other = Commands(tmp_path / name)
        other.json(name, tmp_path / command)
        assert [item["tags"] for item in other.json("list")["items"]] == [made]
        with closing(apsw.Connection(str(tmp_path / name / "commonplace.sqlite3"))) as connection:
            [(automatic,)] = connection.execute("SELECT auto_tags FROM items")
        assert json.loads(automatic) == made


def test_jobs_that_failed_are_a_problem_until_reindex(
    cli: Commands, notes: Path, data_dir: Path
) -> None:
    cli.json("import", notes)
    with closing(apsw.Connection(str(data_dir / "commonplace.sqlite3"))) as connection:
        connection.execute("DELETE FROM vectors")
        connection.execute(
            "UPDATE jobs SET kind = 'embed', state = 'failed', error = 'the embedder was down'"
        )
    result = cli.run("doctor")
    assert (result.exit_code, "2 jobs have failed" in result.stdout) == (1, True)
    assert cli.json("reindex")["items"] == 2
    assert cli.json("doctor")["problems"] == []


def test_doctor_says_what_waits_for_an_embedder_that_is_down(
    cli: Commands, notes: Path, data_dir: Path
) -> None:
    cli.json("import", notes)
    with closing(apsw.Connection(str(data_dir / "commonplace.sqlite3"))) as connection:
        connection.execute("DELETE FROM vectors")
        connection.execute(
            "UPDATE jobs SET kind = 'embed', state = 'queued', error = 'The service cannot be reached.'"
        )
    result = cli.run("doctor", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["problems"] == [
        "Semantic search is incomplete: 2 items are waiting for the embedder (The service cannot be reached). "
        "Until then they are found by keyword only."
    ]
    assert "2 items are waiting" in cli.json("search", "alpha")["degraded"]


def test_a_damaged_model_is_told_of_and_words_are_found_without_it(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, MINILM.module, None)
    weights = data_dir / "models" / MINILM.requirement / MINILM.module / "model/model.safetensors"
    weights.parent.mkdir(parents=True)
    weights.write_bytes(b"damaged")
    cli = Commands(data_dir, embedder="local")
    assert (
        cli.json("add", "-", "--title", "Tides", stdin="The sea comes and goes twice a day.")[
            "status"
        ]
        == "ready"
    )
    found = cli.json("search", "sea")
    assert [hit["title"] for hit in found["hits"]] == ["Tides"]
    assert "is damaged. Delete that folder" in found["degraded"]
    assert "The embedder does not work: The embedding model" in cli.run("doctor").stdout


def test_doctor_tells_what_it_found(cli: Commands, data_dir: Path) -> None:
    found = cli.json("doctor", "--settings")
    assert found["ok"]
    assert (found["data_dir"], found["schema"], found["people"]) == (
        str(data_dir),
        migrations("sqlite")[-1][0],
        1,
    )
    assert found["engine"].startswith("sqlite 3.")
    assert found["settings"]["COMMONPLACE_EMBEDDER"] == "static"
    assert "COMMONPLACE_JWT_SECRET" in cli.text("doctor", "--settings")


def test_doctor_marks_each_part(
    cli: Commands, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Version, server, disk, database, models, vectors and jobs."""
    marks = {line[2:11].strip(): line[0] for line in cli.text("doctor").splitlines() if line}
    parts = ("Version", "Disk", "Database", "Models", "Vectors", "Jobs")
    assert marks.items() >= {**dict.fromkeys(parts, "✓"), "Server": "-"}.items()
    (data_dir / "server.json").write_text('{"url": "http://127.0.0.1:9", "pid": 1}')
    monkeypatch.setattr("commonplace.interfaces.cli.doctor.ENOUGH_SPACE", 10**18)
    result = cli.run("doctor")
    assert (result.exit_code, result.stderr) == (1, "2 problems found.\n")
    assert "✗ Server    No server answers at http://127.0.0.1:9. Start it:" in result.stdout
    assert "✗ Disk      Only " in result.stdout and "No problems" not in result.stdout


def test_doctor_says_how_to_get_a_model_that_is_missing(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, MINILM.module, None)
    for model in MINILM.instead:
        monkeypatch.setitem(sys.modules, model.module, None)
    result = Commands(data_dir, embedder="local").run("doctor")
    assert result.exit_code == 1
    assert f"✗ Models    Not downloaded: {MINILM.title}" in result.stdout
    assert "Run `commonplace setup`." in result.stdout


def test_doctor_never_prints_secrets(data_dir: Path) -> None:
    assert "hunter2hunter2" not in Commands(data_dir, jwt_secret="hunter2hunter2" * 3).text(
        "doctor", "--settings"
    )


@pytest.mark.parametrize(
    "version, said",
    [(999, "newer Commonplace (schema 999"), (43, "earlier version of Commonplace (schema 43)")],
)
def test_a_database_of_another_version_is_refused_untouched(
    cli: Commands, data_dir: Path, version: int, said: str
) -> None:
    cli.json("list")
    with closing(apsw.Connection(str(data_dir / "commonplace.sqlite3"))) as connection:
        connection.execute("UPDATE schema_version SET version = ?", [version])
    before = (data_dir / "commonplace.sqlite3").read_bytes()
    assert said in cli.fails("list")
    result = cli.run("doctor")
    assert (result.exit_code, said in result.stdout) == (1, True)
    assert (data_dir / "commonplace.sqlite3").read_bytes() == before


def test_a_file_that_is_no_database_is_refused(cli: Commands, data_dir: Path) -> None:
    (data_dir / "commonplace.sqlite3").write_text(
        "this is not a database, but a letter to a friend" * 100
    )
    assert "damaged or not a Commonplace database" in cli.fails("list")
