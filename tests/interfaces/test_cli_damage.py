"""A damaged library ends every start with one sentence, is not backed up, and is replaced by restoring a backup."""

import logging
import shutil
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from commonplace.database import clean_close
from commonplace.database.sqlite import MARKER
from tests.interfaces.command import Commands

FILE = "commonplace.sqlite3"


def remove(file: Path) -> None:
    file.unlink()


def empty(file: Path) -> None:
    file.write_bytes(b"")


def garble_header(file: Path) -> None:
    overwrite(file, 0, 100)


def cut_in_half(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def garble_page(file: Path) -> None:
    """One page of texts, which no start reads."""
    with closing(apsw.Connection(str(file))) as connection:
        page = connection.execute(
            "SELECT max(pageno) FROM dbstat WHERE name = 'sections' AND pagetype = 'leaf'"
        ).get
    overwrite(file, (page - 1) * 4096, 4096)


def garble_log(file: Path) -> None:
    file.with_name(f"{FILE}-wal").write_bytes(b"\x5a" * 20_000)


def overwrite(file: Path, start: int, count: int) -> None:
    with file.open("r+b") as opened:
        opened.seek(start)
        opened.write(b"\x5a" * count)


Damage = Callable[[Path], None]
DAMAGES = [remove, empty, garble_header, cut_in_half, garble_page, garble_log]
damaged = pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)


@pytest.fixture
def cli(new_data_dir: Path, tmp_path: Path) -> Commands:
    """A library of 40 notes, and a backup of it."""
    notes = tmp_path / "notes"
    notes.mkdir()
    for n in range(40):
        (notes / f"{n}.md").write_text(
            f"# Note {n}\n\n" + " ".join(f"word{n}x{w}" for w in range(400))
        )
    made = Commands(new_data_dir)
    made.json("import", notes, "--wait")
    made.text("backup", tmp_path / "good.backup")
    return made


def ended(cli: Commands, *arguments: str) -> tuple[int, str]:
    """How a real command ends. Half a minute is for a machine that does other things as well."""
    process = cli.start(*arguments)
    try:
        _, said = process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return process.returncode, said


@damaged
def test_a_damaged_library_ends_the_start_in_one_sentence(
    cli: Commands, new_data_dir: Path, damage: Damage
) -> None:
    damage(new_data_dir / FILE)
    before = {
        path.name: path.read_bytes()
        for path in new_data_dir.iterdir()
        if path.is_file() and not path.name.endswith(("shm", clean_close.NAME))
    }
    code, said = ended(cli, "serve", "--port", "0")
    assert code == 1 and "commonplace restore FILE" in said and len(said.splitlines()) == 1, said
    doctor = cli.run("doctor")
    assert (
        doctor.exit_code == 1
        and "✗ Database  The " in doctor.stdout
        and "No problems" not in doctor.stdout
    )
    if damage is not garble_page:  # which only shows where it is read
        assert cli.fails("list") == said
    assert {name: (new_data_dir / name).read_bytes() for name in before} == before, (
        "what could be salvaged was changed"
    )


@damaged
def test_a_damaged_library_is_not_backed_up_over_a_good_backup(
    cli: Commands, new_data_dir: Path, tmp_path: Path, damage: Damage
) -> None:
    backup = tmp_path / "good.backup"
    good = backup.read_bytes()
    damage(new_data_dir / FILE)
    assert "commonplace restore FILE" in cli.fails("backup", backup, "--force")
    assert backup.read_bytes() == good and list(tmp_path.glob(".good*")) == []


@damaged
def test_restoring_replaces_a_damaged_library(
    cli: Commands, new_data_dir: Path, tmp_path: Path, damage: Damage
) -> None:
    damage(new_data_dir / FILE)
    if damage in (remove, empty):
        cli.text("restore", tmp_path / "good.backup")  # there is nothing to lose
    else:
        assert "--force" in cli.fails("restore", tmp_path / "good.backup")
        cli.text("restore", tmp_path / "good.backup", "--force")
    assert cli.json("doctor")["items"] == 40
    assert list(new_data_dir.glob(".restore*")) == []


def test_a_restore_that_fails_leaves_the_damaged_library(
    cli: Commands, new_data_dir: Path, tmp_path: Path
) -> None:
    garble_page(new_data_dir / FILE)
    before = (new_data_dir / FILE).read_bytes()
    backup = tmp_path / "good.backup"
    backup.write_bytes(backup.read_bytes()[:-100])
    assert "damaged or incomplete" in cli.fails("restore", backup, "--force")
    assert (new_data_dir / FILE).read_bytes() == before


def test_a_new_library_is_started_without_the_marker(cli: Commands, new_data_dir: Path) -> None:
    (new_data_dir / FILE).unlink()
    assert str(new_data_dir / MARKER) in cli.fails("list")
    (new_data_dir / MARKER).unlink()
    assert cli.json("list")["total"] == 0
    (new_data_dir / FILE).write_bytes(b"")
    assert "is empty" in cli.fails("list")


def test_a_data_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a letter")
    cli = Commands(tmp_path / "data")
    assert "is a file" in cli.fails("list")
    assert ended(cli, "serve", "--port", "0") == (1, cli.fails("list"))


def test_a_damaged_index_file_is_built_again(
    new_data_dir: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("commonplace.store.CHECKPOINT_SECTIONS", 1)
    cli = Commands(new_data_dir)
    cli.json("add", "-", "--title", "Tides", stdin="The sea comes and goes twice a day.")
    cli.json("search", "sea")
    [kept] = (new_data_dir / "search_index").glob("*.index")
    whole = kept.read_bytes()
    for broken in (
        whole[:-10],
        b"\x5a" * len(whole),
        b"\x5a" * (len(whole) // 2) + whole[len(whole) // 2 :],
        b"",
    ):
        kept.write_bytes(broken)
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            assert [hit["title"] for hit in cli.json("search", "sea")["hits"]] == ["Tides"]
        assert [record.message for record in caplog.records if "is damaged" in record.message], (
            broken
        )
    shutil.rmtree(new_data_dir / "search_index")
    assert [hit["title"] for hit in cli.json("search", "sea")["hits"]] == ["Tides"]
