"""Adding, finding, listing from the command line."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from commonplace.app import open_app
from commonplace.core.items.drafts import Draft
from commonplace.settings import Settings
from tests.interfaces.command import Commands

FOX = "# Foxes\n\nThe quick brown fox jumps over the lazy dog near ERR_QUIC_7731.\n"


@pytest.fixture
def cli(data_dir: Path) -> Commands:
    return Commands(data_dir)


@pytest.fixture
def fox(cli: Commands, tmp_path: Path) -> str:
    """The id of a note that is there."""
    file = tmp_path / "fox.md"
    file.write_text(FOX)
    return str(cli.json("add", file, "--tag", "animal")["user_item_id"])


def test_a_file_is_kept_found_and_shown(cli: Commands, fox: str) -> None:
    found = cli.json("search", "ERR_QUIC_7731", "--mode", "keyword", "--limit", 3)
    assert (found["query"], found["mode"], found["degraded"]) == ("ERR_QUIC_7731", "keyword", None)
    assert [
        (hit["rank"], hit["title"], hit["item_id"], hit["section_index"]) for hit in found["hits"]
    ] == [(1, "Foxes", fox, 0)]
    assert cli.json("search", "animals that leap")["hits"][0]["item_id"] == fox
    shown = cli.json("get", fox)
    assert (shown["text"], shown["tags"], shown["in_kb"]) == (FOX, ["animal"], True)
    assert FOX in cli.text("get", shown["public_id"])
    assert "Foxes" in cli.text("get", shown["entity_id"])
    assert re.match(r"1\. \(0\.\d\d\) Foxes\n   \w", cli.text("search", "fox")), (
        "neither the title twice nor Markdown's #"
    )


def test_adding_it_again_answers_with_what_is_there(
    cli: Commands, fox: str, tmp_path: Path
) -> None:
    again = cli.json("add", tmp_path / "fox.md")
    assert (again["user_item_id"], again["created"]) == (fox, False)
    assert cli.json("list")["total"] == 1


@pytest.mark.parametrize(
    "source, options, title",
    [
        ("---\ntitle: From front matter\ntags: [a]\n---\n# Heading\ntext", [], "From front matter"),
        ("# Heading\ntext", [], "Heading"),
        ("just some words that are kept", [], "note"),
        ("# Heading\ntext", ["--title", "Given"], "Given"),
    ],
)
def test_where_the_title_comes_from(
    cli: Commands, tmp_path: Path, source: str, options: list[str], title: str
) -> None:
    (tmp_path / "note.txt").write_text(source)
    assert cli.json("add", tmp_path / "note.txt", *options)["title"] == title


def test_standard_input_folders_and_no_kb(cli: Commands) -> None:
    added = cli.json(
        "add", "-", "--folder", "Drafts", "--no-kb", stdin="words nobody should find by searching"
    )
    assert added["title"].startswith("words nobody")
    again = cli.json(
        "add",
        "-",
        "--folder",
        "drafts",
        "--title",
        "Second",
        stdin="in the same folder, whatever its case",
    )
    assert again["folder_id"] == added["folder_id"]
    folders = cli.json("folder", "list")["folders"]
    assert [(folder["name"], folder["item_count"]) for folder in folders] == [("Drafts", 2)]
    assert [
        item["title"]
        for item in cli.json("list", "--folder", "Drafts", "--query", "second")["items"]
    ] == ["Second"]
    assert cli.json("search", "nobody searching", "--mode", "keyword")["hits"] == []


def test_a_folder_is_known_however_its_name_is_written(cli: Commands) -> None:
    for number, name in enumerate(("Caf\u00e9 notes", "Cafe\u0301 notes", "CAF\u00c9  notes")):
        cli.json(
            "add",
            "-",
            "--title",
            f"N{number}",
            "--folder",
            name,
            stdin=f"number {number} is about something",
        )
        assert len(cli.json("list", "--folder", name)["items"]) == number + 1
        cli.json("token", "create", "--name", "t", "--folder", name)


def test_several_files_at_once_and_pages(cli: Commands, tmp_path: Path) -> None:
    files = [tmp_path / f"{n}.md" for n in range(3)]
    for n, file in enumerate(files):
        file.write_text(f"# Note {n}\n\nnumber {n} is about something")
    assert [added["title"] for added in cli.json("add", *files)] == ["Note 0", "Note 1", "Note 2"]
    page = cli.json("list", "--limit", 2, "--page", 2)
    assert ([item["title"] for item in page["items"]], page["total"], page["page"]) == (
        ["Note 0"],
        3,
        2,
    )
    assert "--page 2 shows more" in cli.run("list", "--limit", 2).stderr
    assert cli.run("list", "--limit", 2, "--page", 2).stderr == ""


def test_a_long_text_has_its_vectors_when_add_returns(cli: Commands) -> None:
    text = "\n\n".join(
        f"## Part {n}\n\n" + f"sentence number {n} says a little more. " * 40 for n in range(12)
    )
    cli.json("add", "-", "--title", "Long", stdin=text)
    state = cli.json("doctor")
    assert state["sections"] == state["sections_with_vectors"] > 8


@pytest.mark.parametrize(
    "arguments, stdin, complaint",
    [
        (["add", "missing.md"], "", "There is no file 'missing.md'"),
        (["add", "-"], "  \n", "no text"),
        (["add", "-"], b"a\0b", "NUL"),
        (["add", "-"], "caf\xe9".encode("latin-1"), "not UTF-8"),
        (["add", "-"], "x" * 500_001, "500,001 characters"),
        (["add", "a", "b", "--title", "T"], "", "--title names one text"),
        (["add", "http://127.0.0.1/"], "", "private network"),
        (["add", "-", "--folder", " "], "some text", "1 to 200"),
        (["add", "-", "--title", "caf\udce9"], "some text", "UTF-8"),
        (["add", "-", "--tag", "caf\udce9"], "some text", "UTF-8"),
        (["add", "-"], '---\ntitle: "a\\0b"\n---\nsome text', "NUL"),
        (["search", " "], "", "Enter a search query."),
        (["search", "x", "--limit", "21"], "", "--limit must be at most 20"),
        (["search", "x", "--limit", "many"], "", "--limit must be a whole number"),
        (["search", "x", "--mode", "psychic"], "", "--mode must be semantic, keyword or hybrid"),
        (["get", "no-such-item"], "", "No item 'no-such-item'."),
        (["list", "--folder", "nowhere"], "", "no folder 'nowhere'"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_1(
    cli: Commands, arguments: list[str], stdin: str | bytes, complaint: str
) -> None:
    said = cli.fails(*arguments, stdin=stdin)
    assert complaint in said
    assert len(said.strip().splitlines()) == 1
    assert cli.json("list")["total"] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["search"],
        ["frobnicate"],
        ["token", "create"],
    ],
)
def test_wrong_usage_is_exit_2(cli: Commands, arguments: list[str]) -> None:
    assert cli.fails(*arguments, code=2)


def test_acting_as_a_token(cli: Commands, fox: str) -> None:
    cli.text("folder", "create", "Public")
    secret = cli.json("token", "create", "--name", "reader", "--folder", "public")["token"]
    assert cli.json("list", "--token", secret)["total"] == 0
    assert cli.fails("get", fox, COMMONPLACE_TOKEN=secret) == f"No item {fox!r}.\n"
    assert "'write' capability" in cli.fails(
        "add", "-", "--token", secret, stdin="words to be kept"
    )
    assert "Only the owner" in cli.fails("user", "link", "--token", secret)
    assert "unknown or was revoked" in cli.fails("list", "--token", "sk_nonsense")


def test_settings_that_are_wrong_are_named(cli: Commands) -> None:
    assert "COMMONPLACE_PORT must be a whole number" in cli.fails("list", COMMONPLACE_PORT="many")
    assert "COMMONPLACE_COLOUR" in cli.fails("list", COMMONPLACE_COLOUR="red")
    assert "COMMONPLACE_LOG_LEVEL" in cli.fails("list", COMMONPLACE_LOG_LEVEL="shouting")
    assert "embedder" in cli.fails("list", COMMONPLACE_EMBEDDER="clairvoyant").lower()
    assert "postgresql://" in cli.fails("list", COMMONPLACE_DATABASE_URL="mysql://nope")


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("PORT", "65536"),
        ("WORKERS", "-1"),
        ("SEMANTIC_WEIGHT", "nan"),
        ("SEMANTIC_WEIGHT", "-0.3"),
        ("SEMANTIC_WEIGHT", "inf"),
        ("SEMANTIC_WEIGHT", "1.1"),
        ("MCP_ERRORS", "http"),
        ("PUBLIC_URL", "kb.example.com"),
        ("PUBLIC_URL", "https://example.com/kb"),  # clients look for metadata at the root
        ("REDIS_URL", "http://localhost"),
        ("JWT_SECRET", "short"),
    ],
)
def test_settings_that_make_no_sense_stop_the_start(
    cli: Commands, setting: str, value: str
) -> None:
    said = cli.fails("list", **{f"COMMONPLACE_{setting}": value})
    assert said.startswith(f"COMMONPLACE_{setting} must ")


def test_data_dir_can_be_named_in_the_call(cli: Commands, fox: str, tmp_path: Path) -> None:
    assert (
        json.loads(cli.text("list", "--data-dir", tmp_path / "elsewhere", "--json"))["total"] == 0
    )
    assert cli.json("list")["total"] == 1


def test_a_data_folder_that_cannot_be_made_is_named(cli: Commands, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert str(tmp_path / "file") in cli.fails("list", "--data-dir", tmp_path / "file" / "data")


def test_what_an_item_said_before_is_listed_read_and_compared(
    cli: Commands, tmp_path: Path
) -> None:
    note = tmp_path / "notes" / "sea.md"
    note.parent.mkdir()
    for said in ("The sea is blue.", "The sea is green.", "The sea is grey."):
        note.write_text(f"# Sea\n\n{said}\n\nIt is wide.\n")
        cli.text("import", note.parent)
    item = cli.json("list")["items"][0]["id"]
    newest, oldest = [version["revision"] for version in cli.json("history", item)["versions"]]
    assert [line.split("\t")[0] for line in cli.text("history", item).splitlines()] == [
        str(newest),
        str(oldest),
    ]
    assert "The sea is blue." in cli.text("history", item, oldest)
    assert "- The sea is blue.\n+ The sea is green.\n" in cli.text(
        "history", item, oldest, "--diff"
    )
    assert cli.json("history", item, newest, "--diff")["followed_by"] is None
    assert "Version not found" in cli.fails("history", item, newest + 1)
    assert "--diff needs a REVISION" in cli.fails("history", item, "--diff")
    assert "REVISION must be a whole number" in cli.fails("history", item, "first")


def test_what_the_web_app_queued_is_listed_and_retried(cli: Commands, data_dir: Path) -> None:
    async def queue() -> str:
        async with open_app(Settings(data_dir=data_dir, embedder="static")) as app:
            await app.people.ensure_owner()
            owner = await app.access.owner()
            assert owner is not None
            return (
                await app.queued_items.submit(owner, Draft("url", url="http://127.0.0.1:1/secret"))
            ).item.id

    item_id = asyncio.run(queue())
    assert cli.text("list").rstrip("\n").split("\t")[-1] == "queued"
    assert "private network" in cli.fails("retry", item_id)
    assert "failed: The URL leads to a private network" in cli.text("list")
    assert cli.json("get", item_id)["status"] == "failed"
    assert "private network" in cli.fails("retry", item_id), "a second try fails in the same words"
