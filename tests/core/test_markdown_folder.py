"""Folders of Markdown in and out again: what the author wrote survives."""

import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from commonplace.app import open_app
from commonplace.core.entities.validation import NewEntity
from commonplace.core.items.drafts import Draft
from commonplace.core.services import Services
from commonplace.core.transfer.markdown_folder import ImportResult, export_folder, import_folder
from commonplace.errors import ForbiddenScope, Invalid
from commonplace.model import Caller, FullItem, ItemFilter, Mode, Outcome, folder_list
from commonplace.settings import Settings
from commonplace.text import front_matter

pytestmark = pytest.mark.anyio

VAULT = {
    "Welcome.md": "# Welcome home\n\nStart at [[Rust notes]] or read [the plan](work/plan.md#now).\n",
    "work/plan.md": "---\ntitle: The plan\ntags: [work, Q3]\ncreated: 2024-02-29\nin_kb: false\naliases: [Roadmap]\n---\n"
    "Back to [home](../Welcome.md).\r\nTwo lines, Windows ends.\r\n",
    "work/deep/Rust notes.md": "---\ntags: '#rust, lang'\n---\n\n# Ownership\n\nBorrow checkers see [[Welcome]].",
    ".obsidian/workspace.md": "editor state",
    "picture.png": "not text",
}


def quiet(done: int, total: int) -> None:
    pass


class Shelf:
    """A library with its owner."""

    def __init__(self, app: Services, owner: Caller) -> None:
        self.app, self.owner = app, owner

    async def take_in(self, folder: Path) -> ImportResult:
        return await import_folder(
            self.app.bulk_import,
            self.app.folders,
            self.owner,
            folder,
            quiet,
            self.app.originals,
            self.app.uploads,
        )

    async def give_out(self, folder: Path) -> int:
        app = self.app
        return await export_folder(
            app.library,
            app.versions,
            app.folders,
            self.owner,
            folder,
            quiet,
            app.originals,
            app.disks,
        )

    async def by_title(self) -> dict[str, FullItem]:
        items, _ = await self.app.library.page(self.owner, ItemFilter(), limit=100)
        return {item.title: await self.app.library.read(self.owner, item.id) for item in items}


async def shelf_at(folder: Path) -> AsyncIterator[Shelf]:
    async with open_app(Settings(data_dir=folder, embedder="static")) as app:
        await app.people.ensure_owner()
        owner = await app.access.owner()
        assert owner is not None
        yield Shelf(app, owner)


@pytest.fixture
async def shelf(tmp_path: Path) -> AsyncIterator[Shelf]:
    async for made in shelf_at(tmp_path / "data"):
        yield made


@pytest.fixture
async def other_shelf(tmp_path: Path) -> AsyncIterator[Shelf]:
    async for made in shelf_at(tmp_path / "other"):
        yield made


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    for path, text in VAULT.items():
        file = tmp_path / "vault" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
    return tmp_path / "vault"


def files(folder: Path) -> list[Path]:
    return list(folder.rglob("*.md"))


def bodies(folder: Path) -> dict[str, str]:
    return {
        file.relative_to(folder).as_posix(): front_matter.read(file).text
        for file in folder.rglob("*.md")
    }


async def test_front_matter_folders_and_links_come_in(shelf: Shelf, vault: Path) -> None:
    result = await shelf.take_in(vault)
    assert result.outcomes == {Outcome.ADDED: 3, Outcome.CHANGED: 0, Outcome.UNCHANGED: 0}
    assert (result.folders, result.skipped) == (2, ())
    found = await shelf.by_title()
    assert set(found) == {"Welcome home", "The plan", "Ownership"}
    plan, rust = found["The plan"], found["Ownership"]
    assert plan.item.tags == ("work", "Q3")
    assert plan.item.created_at == datetime(2024, 2, 29, tzinfo=UTC)
    assert not plan.item.in_kb
    assert [folder.name for folder in plan.folders] == ["work"]
    assert plan.text.endswith("[home](../Welcome.md).\r\nTwo lines, Windows ends.\r\n")
    assert rust.item.tags == ("rust", "lang")
    assert [folder.name for folder in rust.folders] == ["deep"]
    listed = folder_list(await shelf.app.folders.list_folders(shelf.owner))
    assert [node.path for node in listed] == ["work", "work/deep"]


async def test_uploaded_files_survive_an_export(
    shelf: Shelf, other_shelf: Shelf, tmp_path: Path
) -> None:
    file, root = tmp_path / "The heron?.html", tmp_path / "out"
    file.write_text("<h1>Herons</h1><p>A grey heron waits for eels by the weir.</p>")
    item = (await shelf.app.uploads.add_file(shelf.owner, file)).item
    for _ in range(2):  # the second one finds its own files
        await shelf.give_out(root)
        [kept] = [each for each in (root / ".originals").rglob("*") if each.is_file()]
        assert kept == root / ".originals" / item.public_id / "The heron.html"
        assert kept.read_bytes() == file.read_bytes()
    for _ in range(2):
        assert (await other_shelf.take_in(root)).skipped == ()
    original = await other_shelf.app.originals.find(other_shelf.owner, item.id)
    assert original and (original.filename, original.size) == (kept.name, kept.stat().st_size)
    assert original.content_type == "text/html"
    async with other_shelf.app.originals.open(original) as stored:
        assert stored.read_bytes() == file.read_bytes()
    assert (await other_shelf.app.overview.report(other_shelf.owner)).originals == original.size


@pytest.mark.parametrize(
    "named", ["/etc/hostname", ".originals/../secret.txt", ".originals/link.txt", "secret.txt"]
)
async def test_an_import_takes_no_file_from_elsewhere(
    shelf: Shelf, tmp_path: Path, named: str
) -> None:
    root, item_id = tmp_path / "out", str(uuid4())
    (root / ".originals").mkdir(parents=True)
    (root / "secret.txt").write_text("secret")
    (root / ".originals" / "link.txt").symlink_to(root / "secret.txt")
    original = f"original: {{file: {named}, type: text/plain}}"
    (root / "note.md").write_text(f"---\nid: {item_id}\ntitle: Note\n{original}\n---\nText.")
    await shelf.take_in(root)
    assert (await shelf.app.library.read(shelf.owner, item_id)).text == "Text."
    assert await shelf.app.originals.find(shelf.owner, item_id) is None


async def test_the_public_summary_of_a_disk_survives_an_export(
    shelf: Shelf, other_shelf: Shelf, tmp_path: Path
) -> None:
    text = "Herons wait for eels in the shallow water by the weir, and they wait for long."
    item = (await shelf.app.library.add(shelf.owner, Draft("text", "Herons", text))).item
    await shelf.app.disks.publish(shelf.owner, item.id, summary="What I saw of a bird.")
    await shelf.give_out(tmp_path)
    await other_shelf.take_in(tmp_path)
    other = (await other_shelf.by_title())["Herons"].item
    assert other.visibility == "private"
    assert await other_shelf.app.disks.own_summary(other_shelf.owner, other) == (
        "What I saw of a bird."
    )


async def test_nested_folders_survive_an_export(
    shelf: Shelf, other_shelf: Shelf, tmp_path: Path
) -> None:
    above = None
    for name in ("Work", "In/out", "Back\\slash", *"45678"):
        above = (await shelf.app.folders.create(shelf.owner, name, above)).id
        added = await shelf.app.library.add(shelf.owner, Draft("text", name, f"In {name}."))
        await shelf.app.folders.file(shelf.owner, added.item.id, [above])
    await shelf.give_out(tmp_path)
    assert (tmp_path / "Work" / "In out" / "In out.md").exists()
    assert (await other_shelf.take_in(tmp_path)).folders == 8
    trees = [
        [node.names for node in folder_list(await each.app.folders.list_folders(each.owner))]
        for each in (shelf, other_shelf)
    ]
    assert trees[0] == trees[1] and len(trees[0][-1]) == 8
    for title, one in (await shelf.by_title()).items():
        assert [f.name for f in one.folders] == [title]


async def test_files_that_lie_deeper_than_folders_can_be_nested(
    shelf: Shelf, tmp_path: Path
) -> None:
    (tmp_path / "a/b/c/d/e/f/g/h/i").mkdir(parents=True)
    (tmp_path / "a/b/c/d/e/f/g/h/i/Note.md").write_text("Down here.")
    for created in (8, 0):
        assert (await shelf.take_in(tmp_path)).folders == created
    *_, last = folder_list(await shelf.app.folders.list_folders(shelf.owner))
    assert last.names == (*"abcdefg", "h/i")


async def test_what_came_in_is_found_at_once(shelf: Shelf, vault: Path) -> None:
    await shelf.take_in(vault)
    found = await shelf.app.search.search(shelf.owner, "borrow checkers", mode=Mode.KEYWORD)
    assert [hit.passage.title for hit in found.hits] == ["Ownership"]
    found = await shelf.app.search.search(shelf.owner, "borrow checkers", mode=Mode.SEMANTIC)
    assert found.hits[0].passage.title == "Ownership" and not found.degraded
    assert await shelf.app.worker.run_once() == 3, "a summary for each"


async def test_importing_again_changes_nothing_and_an_edit_replaces_the_text(
    shelf: Shelf, vault: Path
) -> None:
    await shelf.take_in(vault)
    assert (await shelf.take_in(vault)).outcomes[Outcome.UNCHANGED] == 3
    before = (await shelf.by_title())["Welcome home"].item
    (vault / "Welcome.md").write_text("# Welcome home\n\nNothing here but zebras.\n")
    assert (await shelf.take_in(vault)).outcomes == {
        Outcome.ADDED: 0,
        Outcome.CHANGED: 1,
        Outcome.UNCHANGED: 2,
    }
    after = (await shelf.by_title())["Welcome home"]
    assert (after.item.id, after.item.revision) == (before.id, before.revision + 1)
    assert "zebras" in after.text
    for query, titles in (("zebras", ["Welcome home"]), ("start", [])):
        found = await shelf.app.search.search(shelf.owner, query, mode=Mode.KEYWORD)
        assert [hit.passage.title for hit in found.hits] == titles


async def test_a_copy_of_the_folder_elsewhere_is_not_a_second_library(
    shelf: Shelf, vault: Path, tmp_path: Path
) -> None:
    await shelf.take_in(vault)
    shutil.move(vault, tmp_path / "moved")
    assert (await shelf.take_in(tmp_path / "moved")).outcomes[Outcome.ADDED] == 0


async def test_files_that_say_the_same_stay_apart_by_path_and_date(
    shelf: Shelf, other_shelf: Shelf, tmp_path: Path
) -> None:
    dates = {
        "2024/standup.md": "2024-03-01",
        "2025/standup.md": "2025-03-01",
        "copy.md": "2024-03-01",
    }
    for name, date in dates.items():
        (tmp_path / "vault" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "vault" / name).write_text(
            f"---\ntitle: Standup\ndate: {date}\n---\nNothing new.\n"
        )
    for name in ("a.md", "b.md"):
        (tmp_path / "vault" / name).write_text("# Same\n\nthe same words twice\n")
    assert (await shelf.take_in(tmp_path / "vault")).outcomes == {
        Outcome.ADDED: 5,
        Outcome.CHANGED: 0,
        Outcome.UNCHANGED: 0,
    }
    items, _ = await shelf.app.library.page(shelf.owner, ItemFilter(), limit=10)
    assert {
        item.metadata["path"]: item.created_at.date().isoformat()
        for item in items
        if item.title == "Standup"
    } == dates
    shutil.copytree(tmp_path / "vault", tmp_path / "elsewhere")
    for folder in ("vault", "elsewhere"):
        assert (await shelf.take_in(tmp_path / folder)).outcomes[Outcome.UNCHANGED] == 5
    await shelf.give_out(tmp_path / "out")
    for wanted in (Outcome.ADDED, Outcome.UNCHANGED):
        assert (await other_shelf.take_in(tmp_path / "out")).outcomes[wanted] == 5
    assert (await shelf.take_in(tmp_path / "out")).outcomes[Outcome.ADDED] == 0


async def test_a_file_of_the_same_name_and_words_with_another_date_is_another(
    shelf: Shelf, tmp_path: Path
) -> None:
    for folder, date in (("one", "2024-03-01"), ("two", "2025-03-01")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "day.md").write_text(f"---\ndate: {date}\n---\nNothing new.\n")
        assert (await shelf.take_in(tmp_path / folder)).outcomes[Outcome.ADDED] == 1
    (tmp_path / "one" / "undated.md").write_text("Words without a date.\n")
    await shelf.app.library.add(shelf.owner, Draft("text", "undated", "Words without a date.\n"))
    assert (await shelf.take_in(tmp_path / "one")).outcomes == {
        Outcome.ADDED: 0,
        Outcome.CHANGED: 0,
        Outcome.UNCHANGED: 2,
    }


async def test_an_export_is_the_folder_that_came_in(
    shelf: Shelf, vault: Path, tmp_path: Path
) -> None:
    await shelf.take_in(vault)
    assert await shelf.give_out(tmp_path / "out") == 3
    expected = {
        path: front_matter.parse(text, "").text
        for path, text in VAULT.items()
        if path.endswith(".md") and path[0] != "."
    }
    assert bodies(tmp_path / "out") == expected
    assert front_matter.read(tmp_path / "out/work/plan.md").front["aliases"] == ["Roadmap"]


async def test_round_trip_into_an_empty_library(
    shelf: Shelf, other_shelf: Shelf, vault: Path, tmp_path: Path
) -> None:
    await shelf.take_in(vault)
    added = await shelf.app.library.add(
        shelf.owner, Draft("text", 'Slashes/and: "quotes"?', "---\nnot: front matter\n---\n\ntext")
    )
    folder = await shelf.app.folders.create(shelf.owner, "Ideas")
    plan = (await shelf.by_title())["The plan"].item
    await shelf.app.folders.file(shelf.owner, added.item.id, [folder.id])
    await shelf.app.folders.file(shelf.owner, plan.id, [folder.id])
    await shelf.give_out(tmp_path / "out")
    result = await other_shelf.take_in(tmp_path / "out")
    assert (result.outcomes[Outcome.ADDED], result.skipped) == (4, ())
    here, there = await shelf.by_title(), await other_shelf.by_title()
    assert set(here) == set(there)
    for title, one in here.items():
        other = there[title]
        assert other.text == one.text
        assert sorted(f.name for f in other.folders) == sorted(f.name for f in one.folders)
        assert replace(
            other.item,
            library_id="",
            content_id="",
            folders=(),
            updated_at=one.item.updated_at,
            metadata={},
            revision=1,
        ) == replace(one.item, library_id="", content_id="", folders=(), metadata={}, revision=1)
    assert (await other_shelf.take_in(tmp_path / "out")).outcomes[Outcome.UNCHANGED] == 4


async def test_two_items_that_say_the_same_stay_two(
    shelf: Shelf, other_shelf: Shelf, tmp_path: Path
) -> None:
    library = shelf.app.library
    folders = [await shelf.app.folders.create(shelf.owner, name) for name in ("a", "b")]
    for folder in folders:
        scoped = replace(shelf.owner, folders=frozenset({folder.id}))
        await library.add(scoped, Draft("text", "Same", "the same words twice"))
    await shelf.give_out(tmp_path / "out")
    assert len(files(tmp_path / "out")) == 2
    assert (await other_shelf.take_in(tmp_path / "out")).outcomes[Outcome.ADDED] == 2


async def test_export_writes_over_its_own_files_only(shelf: Shelf, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "Note.md").write_text("mine, keep it")
    added = await shelf.app.library.add(
        shelf.owner, Draft("text", "Note", "the library's own note")
    )
    await shelf.give_out(out)
    assert (out / "Note.md").read_text() == "mine, keep it"
    own = out / f"Note ({added.item.public_id}).md"
    assert "the library's own note" in own.read_text()
    await shelf.app.library.update(shelf.owner, added.item.id, {"title": "Another title"})
    await shelf.give_out(out)
    assert sorted(file.name for file in out.iterdir()) == [own.name, "Note.md"]
    assert front_matter.read(own).title == "Another title"


async def test_export_stays_inside_its_folder(shelf: Shelf, tmp_path: Path) -> None:
    folder = await shelf.app.folders.create(shelf.owner, "../../up")
    added = await shelf.app.library.add(
        shelf.owner, Draft("text", "../../../etc/passwd", "an innocent text")
    )
    await shelf.app.folders.file(shelf.owner, added.item.id, [folder.id])
    out = tmp_path / "a" / "b" / "out"
    await shelf.give_out(out)
    assert [out in file.parents for file in files(tmp_path)] == [True]


async def test_folders_are_known_again_however_their_names_are_written(
    shelf: Shelf, tmp_path: Path
) -> None:
    for name in ("Cafe\u0301", "Caf\u00e9", "Two  words", " "):
        (tmp_path / "vault" / name).mkdir(parents=True)
        (tmp_path / "vault" / name / "note.md").write_text(f"Something in {name!r}.")
    assert (await shelf.take_in(tmp_path / "vault")).folders == 2
    again = await shelf.take_in(tmp_path / "vault")
    assert (again.folders, again.outcomes[Outcome.UNCHANGED]) == (0, 4)
    assert [folder.name for folder in await shelf.app.folders.list_folders(shelf.owner)] == [
        "Caf\u00e9",
        "Two words",
    ]


async def test_an_export_that_finds_the_disk_full_leaves_what_was_there(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await shelf.app.library.add(shelf.owner, Draft("text", "Kept", "What was said at first."))
    await shelf.give_out(tmp_path / "out")
    before = (tmp_path / "out" / "Kept.md").read_bytes()

    def full(file: Path, said: bytes) -> int:
        with file.open("wb") as half:
            half.write(said[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        await shelf.give_out(tmp_path / "out")
    assert (tmp_path / "out" / "Kept.md").read_bytes() == before
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["Kept.md"]


async def test_what_is_not_text_is_left_out_and_named(shelf: Shelf, vault: Path) -> None:
    (vault / "latin.md").write_bytes("caf\xe9".encode("latin-1"))
    (vault / "nul.md").write_bytes(b"a\0b")
    result = await shelf.take_in(vault)
    assert result.outcomes[Outcome.ADDED] == 3
    assert dict(result.skipped) == {
        "latin.md": "latin.md is not UTF-8 text.",
        "nul.md": "nul.md contains NUL characters, so it is not text.",
    }


async def test_front_matter_that_is_not_yaml_is_text(shelf: Shelf, tmp_path: Path) -> None:
    odd = {
        "a.md": "---\nkey: [unclosed\n---\nbody",
        "b.md": "---\njust a rule\n\n---\nbody",
        "c.md": "---\ndate: 2026-13-45\n---\nx",
    }
    (tmp_path / "odd").mkdir()
    for name, text in odd.items():
        (tmp_path / "odd" / name).write_text(text)
    await shelf.take_in(tmp_path / "odd")
    assert {title: reading.text for title, reading in (await shelf.by_title()).items()} == {
        name.removesuffix(".md"): text for name, text in odd.items()
    }


@pytest.mark.parametrize("front", ["a: &a [*a]", "a: &a [x, x]\nb: [*a, *a]", f"a: {'[' * 3000}"])
async def test_front_matter_that_unfolds_without_end_is_text(
    shelf: Shelf, tmp_path: Path, front: str
) -> None:
    text = f"---\n{front}\n---\nbody"
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "note.md").write_text(text)
    await shelf.take_in(tmp_path / "odd")
    assert (await shelf.by_title())["note"].text == text


@pytest.mark.parametrize(
    "front",
    [
        "key_points: 5",
        "metadata: {front_matter: 5, path: ../x.md}",
        "created: 0001-01-01T00:00:00+05:00",
        "date: 9999-12-31T23:59:59-05:00",
        "folders: [null, '', ' ']",
        "public_id: aaaaaaaabbbbbbbbccccccccdddddddd",
    ],
)
async def test_odd_values_harm_neither_their_file_nor_an_export(
    shelf: Shelf, tmp_path: Path, front: str
) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "note.md").write_text(f"---\n{front}\n---\nbody")
    assert (await shelf.take_in(tmp_path / "odd")).skipped == ()
    note = (await shelf.by_title())["note"]
    assert (note.text, note.item.key_points, note.folders, len(note.item.public_id)) == (
        "body",
        (),
        (),
        12,
    )
    await shelf.give_out(tmp_path / "out")
    assert bodies(tmp_path / "out") == {"note.md": "body"}


async def test_what_anybody_keeps_in_metadata_harms_no_export(shelf: Shelf, tmp_path: Path) -> None:
    kept: list[dict[str, object]] = [
        {"front_matter": "x"},
        {"front_matter": [1]},
        {"path": 5},
        {"path": "a" * 300 + ".md"},
        {"path": "b.md"},
        {"path": "b.md/c.md"},
        {"path": "d/" * 3_000 + "e.md"},
        {"path": "src/auth.py"},
        {"path": "f/../../g.md"},
    ]
    for n, metadata in enumerate(kept):
        await shelf.app.entities.add(
            shelf.owner,
            NewEntity(f"Entity {n}", f"body {n}", metadata=metadata),
            check_conflicts=False,
        )
    await shelf.give_out(tmp_path / "out")
    assert sorted(bodies(tmp_path / "out").values()) == [f"body {n}" for n in range(len(kept))]


async def test_names_and_front_matter_that_no_store_can_keep_are_left_out_and_named(
    shelf: Shelf, vault: Path
) -> None:
    (vault / "nul.md").write_text('---\ntitle: "a\\0b"\n---\nbody')
    (vault / "half.md").write_text('---\nother: {"\\ud800": 1}\n---\nbody')
    (vault / "caf\udce9.md").write_text("body")
    result = await shelf.take_in(vault)
    assert result.outcomes[Outcome.ADDED] == 3
    assert {path: why.split(",")[0] for path, why in result.skipped} == {
        "nul.md": "The front matter contains NUL characters or lone surrogates",
        "half.md": "The front matter contains NUL characters or lone surrogates",
        "caf?.md": "The file's name is not UTF-8 text.",
    }


async def test_titles_and_folders_of_any_length_and_ending_get_files(
    shelf: Shelf, other_shelf: Shelf, tmp_path: Path
) -> None:
    titles = {
        "漢" * 400: "",
        "Notes": "",
        "Inner": "Notes.md",
        "two  spaces\nand a line": "漢" * 200,
    }
    for title, folder in titles.items():
        added = await shelf.app.library.add(
            shelf.owner, Draft("text", title, f"A text that is called {title}.")
        )
        if folder:
            made = await shelf.app.folders.create(shelf.owner, folder)
            await shelf.app.folders.file(shelf.owner, added.item.id, [made.id])
    assert await shelf.give_out(tmp_path / "out") == len(titles)
    await other_shelf.take_in(tmp_path / "out")
    found = await other_shelf.by_title()
    assert {
        title: "".join(folder.name for folder in reading.folders)
        for title, reading in found.items()
    } == titles


async def test_nothing_to_import_is_said(shelf: Shelf, tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="not a folder"):
        await shelf.take_in(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(Invalid, match="no Markdown files"):
        await shelf.take_in(tmp_path / "empty")


async def test_a_token_of_one_folder_cannot_import(shelf: Shelf, vault: Path) -> None:
    folder = await shelf.app.folders.create(shelf.owner, "work")
    scoped = replace(shelf.owner, folders=frozenset({folder.id}))
    with pytest.raises(ForbiddenScope):
        await import_folder(shelf.app.bulk_import, shelf.app.folders, scoped, vault, quiet)
    assert await shelf.by_title() == {}


async def test_entities_come_back_with_what_they_say_and_how_they_are_joined(
    shelf: Shelf, other_shelf: Shelf, tmp_path: Path
) -> None:
    add, other = shelf.app.entities.add, other_shelf
    project = (await add(shelf.owner, NewEntity("Auth", "Services.", "project"), sync=True)).item
    first = (
        await add(
            shelf.owner, NewEntity("Set up", "First of all.", "task", project=project.id), sync=True
        )
    ).item
    task = (
        await add(
            shelf.owner,
            NewEntity(
                "Callback",
                "Handle it.",
                "task",
                project=project.id,
                priority="high",
                due_date="2026-03-31",
                languages=("python",),
                technologies=("fastapi",),
                assignees=("alice",),
                depends_on=(first.id,),
                metadata={"points": 3},
            ),
            sync=True,
        )
    ).item
    old = (await add(shelf.owner, NewEntity("Retries", "Three.", "decision"), sync=True)).item
    await add(
        shelf.owner,
        NewEntity("Retries again", "Five.", "decision", related_to=(f"supersedes:{old.id}",)),
        sync=True,
    )
    await shelf.give_out(tmp_path / "out")
    await other.take_in(tmp_path / "out")
    back = (await other.by_title())["Callback"].item
    for name in (
        "id",
        "entity_type",
        "status",
        "priority",
        "due_date",
        "languages",
        "technologies",
        "assignees",
        "tags",
    ):
        assert getattr(back, name) == getattr(task, name), name
    assert back.metadata["points"] == 3
    assert (await other.by_title())["Retries"].item.status == "superseded"
    everything = [reading.item.id for reading in (await shelf.by_title()).values()]

    async def joins(of: Shelf) -> set[tuple[str, str, str, bool, float]]:
        return {
            (r.from_id, r.kind, r.to_id, r.explicit, r.weight)
            for r in await of.app.library.relations(of.owner, everything)
        }

    assert await joins(other) == await joins(shelf) != set()
    again = await other.take_in(tmp_path / "out")
    assert again.outcomes[Outcome.UNCHANGED] == 5


async def test_what_leads_nowhere_is_left_out_and_other_peoples_words_stay_theirs(
    shelf: Shelf, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    here, gone = "0b0e7a3e-0c1c-4b5e-9a3f-000000000001", "0b0e7a3e-0c1c-4b5e-9a3f-000000000002"
    (folder / "a.md").write_text(
        f"---\nid: {here}\nstatus: odd\npriority: urgent\ndue_date: soon\nrelations:\n"
        f"- kind: RELATED_TO\n  to: {gone}\n- nonsense\n---\nText."
    )
    (folder / "b.md").write_text(
        "---\nstatus: wrong\npriority: high\n---\nA note of somebody's own."
    )
    (folder / "c.md").write_text(
        f"---\nid: {here[:-1]}3\nentity_type: task\nstatus: planning\n---\nA task in a state of epics."
    )
    await shelf.take_in(folder)
    found = await shelf.by_title()
    assert (found["a"].item.status, found["a"].item.priority, found["a"].item.due_date) == (
        "",
        "",
        None,
    )
    assert (found["b"].item.status, found["b"].item.metadata["front_matter"]) == (
        "",
        {"status": "wrong", "priority": "high"},
    )
    assert (found["c"].item.entity_type, found["c"].item.status) == ("task", "")
    assert await shelf.app.library.relations(shelf.owner, [here]) == []


async def test_what_was_said_before_is_given_out_and_not_taken_in_again(
    shelf: Shelf, tmp_path: Path
) -> None:
    added = (
        await shelf.app.entities.add(
            shelf.owner, NewEntity("Tides", "The moon pulls.", "idea"), sync=True
        )
    ).item
    await shelf.app.entities.update(
        shelf.owner, added.id, {"content": "The moon and the sun pull."}
    )
    await shelf.give_out(tmp_path / "out")
    assert (
        tmp_path / "out" / ".versions" / added.public_id / "1.md"
    ).read_text() == "The moon pulls."
    await shelf.take_in(tmp_path / "out")
    assert (await shelf.by_title())["Tides"].text == "The moon and the sun pull."
    assert len(await shelf.by_title()) == 1


async def test_links_tags_and_files_of_a_vault_become_relations_tags_and_items(
    shelf: Shelf, tmp_path: Path
) -> None:
    (vault := tmp_path / "vault").mkdir()
    (vault / "sub").mkdir()
    (vault / "Rivers.md").write_text(
        "---\naliases: [Streams]\n---\nSee [[Herons|birds]], [plan](sub/Herons.md#now), ![[list.txt]] and #wet/cold.\n"
        "```\n[[Nothing]] #code\n```\n"
    )
    (vault / "sub" / "Herons.md").write_text("They stand in [[streams#deep]]. `#no`")
    (vault / "list.txt").write_text("Boots, binoculars.")
    (vault / "left.txt").write_text("Nobody names this.")
    (vault / "broken.pdf").write_bytes(b"%PDF-1.7 nothing")
    (vault / "2024_03_02.md").write_text("![[broken.pdf]]")
    for _ in range(2):
        result = await shelf.take_in(vault)
        found = await shelf.by_title()
        assert found.keys() == {"Rivers", "Herons", "list", "2024_03_02"}
        assert [name for name, _ in result.unread] == ["broken.pdf"]
        ids = {title: reading.item.id for title, reading in found.items()}
        joins = await shelf.app.library.relations(shelf.owner, list(ids.values()))
        assert {(join.from_id, join.to_id) for join in joins if join.explicit} == {
            (ids["Rivers"], ids["Herons"]),
            (ids["Herons"], ids["Rivers"]),
            (ids["Rivers"], ids["list"]),
        }
        assert (found["Rivers"].item.tags, found["Herons"].item.tags) == (("wet/cold",), ())
        assert found["2024_03_02"].item.created_at == datetime(2024, 3, 2, tzinfo=UTC)


async def test_notes_that_are_alike_stay_two_and_are_named(shelf: Shelf, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / "vault" / name).mkdir(parents=True)
        (tmp_path / "vault" / name / "Note.md").write_text("The same words.")
    result = await shelf.take_in(tmp_path / "vault")
    assert result.same == (("b/Note.md", "a/Note.md"),)
    assert result.outcomes[Outcome.ADDED] == 2
