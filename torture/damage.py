"""Damaged files, a folder that cannot be written, a clock that jumps: one sentence, or it works."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

from torture.engines import DATABASE, require_sound, write_notes
from torture.harness import Broken, Part, Play, Round, Stage, require
from torture.server import EARLY_CHECKPOINTS, START_SECONDS, Place, Words, first_line, in_words
from torture.shim import Shim, compiler

NOTES = 20
PAGE = 4096
DAY = 86_400
WAIT_SECONDS = 30.0


# -- what is done to the files


def empty_database(folder: Path, random: Random) -> None:
    remove_wal(folder)
    folder.joinpath(DATABASE).write_bytes(b"")


def garbage_header(folder: Path, random: Random) -> None:
    remove_wal(folder)
    write_at(folder / DATABASE, 0, random.randbytes(100))


def half_database(folder: Path, random: Random) -> None:
    remove_wal(folder)
    size = folder.joinpath(DATABASE).stat().st_size
    os.truncate(folder / DATABASE, int(size * random.uniform(0.2, 0.8)))


def garbage_pages(folder: Path, random: Random) -> None:
    remove_wal(folder)
    pages = folder.joinpath(DATABASE).stat().st_size // PAGE
    for page in random.sample(range(1, pages), min(pages - 1, 30)):
        write_at(folder / DATABASE, page * PAGE, random.randbytes(PAGE))


def another_file(folder: Path, random: Random) -> None:
    remove_wal(folder)
    folder.joinpath(DATABASE).write_bytes(b"something else entirely " * 200)


def cut_wal(folder: Path, random: Random) -> None:
    wal = folder / (DATABASE + "-wal")
    os.truncate(wal, random.randrange(wal.stat().st_size))


def garbage_wal(folder: Path, random: Random) -> None:
    wal = folder / (DATABASE + "-wal")
    write_at(wal, random.randrange(wal.stat().st_size), random.randbytes(500))


def other_wal(folder: Path, random: Random) -> None:
    folder.joinpath(DATABASE + "-wal").write_bytes(random.randbytes(50_000))


def garbage_shm(folder: Path, random: Random) -> None:
    folder.joinpath(DATABASE + "-shm").write_bytes(random.randbytes(32_768))


def no_shm(folder: Path, random: Random) -> None:
    folder.joinpath(DATABASE + "-shm").unlink(missing_ok=True)


def damaged_checkpoint(folder: Path, random: Random) -> None:
    for path in checkpoints(folder):
        size = path.stat().st_size
        kind = random.choice(("cut", "empty", "flip", "replace"))
        if kind == "cut":
            os.truncate(path, random.randrange(size))
        elif kind == "flip":
            write_at(path, random.randrange(size), random.randbytes(200))
        else:
            path.write_bytes(random.randbytes(size) if kind == "replace" else b"")


def remove_wal(folder: Path) -> None:
    """SQLite would mend the file from it."""
    for end in ("-wal", "-shm"):
        folder.joinpath(DATABASE + end).unlink(missing_ok=True)


def write_at(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


def checkpoints(folder: Path) -> list[Path]:
    """The files that hold what is searched."""
    return [path for path in folder.glob("search_index/*") if path.is_file()]


Damage = Callable[[Path, Random], None]
REFUSED: tuple[Damage, ...] = (empty_database, garbage_header, half_database, another_file)
DETECTED: tuple[Damage, ...] = (garbage_pages,)  # at the latest by `doctor`
RECOVERED: tuple[Damage, ...] = (
    cut_wal,
    garbage_wal,
    other_wal,
)  # what was committed last may be gone
HARMLESS: tuple[Damage, ...] = (garbage_shm, no_shm, damaged_checkpoint)


class Damages:
    def __init__(self, prepared: Path, token: str, words: list[str], late: list[str]) -> None:
        self._prepared, self._token, self._words, self._late = prepared, token, words, late
        files = [
            (damage, judge)
            for group, judge in (
                (REFUSED, self._refused),
                (DETECTED, self._detected),
                (RECOVERED, self._recovered),
                (HARMLESS, self._harmless),
            )
            for damage in group
        ]
        self._cases: list[tuple[str, Callable[[Round, Place], None]]] = [
            (damage.__name__, self._damaging(damage, judge)) for damage, judge in files
        ]
        self._cases += [
            ("read-only folder", self._read_only),
            ("a file for a folder", self._no_folder),
        ]
        if compiler():
            self._cases += [("clock jumps", self._clock)] * 2

    def play(self, round: Round) -> None:
        name, case = self._cases[round.seed % len(self._cases)]
        data = round.folder / "data"
        shutil.copytree(self._prepared, data)
        try:
            case(round, Place(data, token=self._token, program=EARLY_CHECKPOINTS))
        except Broken as error:
            raise Broken(f"{name}: {error}") from None

    def _damaging(
        self, damage: Damage, judge: Callable[[Round, Place], None]
    ) -> Callable[[Round, Place], None]:
        def case(round: Round, place: Place) -> None:
            damage(place.data_dir, round.random)
            judge(round, place)

        return case

    # -- what is expected

    def _refused(self, round: Round, place: Place) -> None:
        file = place.data_dir / DATABASE
        before = file.read_bytes()
        commands = [
            ("list",),
            ("search", "heron"),
            ("backup", round.folder / "b.backup"),
            ("add", "-", "--title", "T"),
        ]
        place.run(*round.random.choice(commands), stdin="A text of some words.").refused()
        place.run("doctor").refused()
        said = self._serve(place)
        require(said, "the server starts as if nothing were wrong.")
        require(file.read_bytes() == before, "the damaged file was written to.")

    def _detected(self, round: Round, place: Place) -> None:
        self._serve(place)
        said = place.run("doctor", "--json")
        require(
            said.code != 0 and '"ok": false' in said.out, f"doctor finds nothing: {said.out[:300]}"
        )
        place.run("list")
        place.run("backup", round.folder / "b.backup").refused()

    def _survived(self, round: Round, place: Place) -> None:
        with place.serve() as server:
            for word in self._words:
                require(server.search(word), f"{word!r} is not found.")
            require(server.add("A text that is added afterwards.").is_success, "adding fails.")
        require_sound(place)
        require(place.json("doctor")["ok"], "doctor finds problems.")

    def _recovered(self, round: Round, place: Place) -> None:
        """It starts without what cannot be read, or says which file to delete."""
        said = self._serve(place)
        if said:
            require(DATABASE + "-wal" in said, f"it does not say which file is damaged: {said}")
            remove_wal(place.data_dir)
        self._survived(round, place)

    def _harmless(self, round: Round, place: Place) -> None:
        with place.serve() as server:
            for word in self._late:
                require(server.search(word), f"{word!r} is not found.")
        self._survived(round, place)

    def _serve(self, place: Place) -> str:
        """What a server that does not start says; "" when it starts."""
        process = place.start(
            "serve", "--port", "0", "--json", stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        began = time.monotonic()
        try:
            if first_line(process):
                process.terminate()
                said = process.communicate(timeout=START_SECONDS)[1]
                require(
                    "Traceback" not in said, f"the server's log has a traceback:\n{said[-1500:]}"
                )
                return ""
            said = process.communicate(timeout=START_SECONDS)[1].strip()
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise Broken(
                f"the server neither starts nor ends in {time.monotonic() - began:.0f} s."
            ) from None
        require(
            process.returncode != 0 and " " in said,
            f"it ends with {process.returncode} and says {said!r}.",
        )
        require("Traceback" not in said, f"starting shows a traceback:\n{said[-1500:]}")
        return said

    def _read_only(self, round: Round, place: Place) -> None:
        """As root, without the privilege to write everywhere."""
        drop = ["setpriv", "--bounding-set=-dac_override"] if os.geteuid() == 0 else []
        if drop and not shutil.which("setpriv"):
            return
        paths = [place.data_dir, *place.data_dir.rglob("*")]
        for path in paths:
            path.chmod(0o555 if path.is_dir() else 0o444)
        try:
            for arguments in (("list",), ("add", "-", "--title", "T"), ("doctor",)):
                said = place.run(*arguments, stdin="A text of some words.", before=drop)
                if said.code:
                    said.refused()
                require(
                    said.code or arguments[0] != "add",
                    "adding claims success in a folder that cannot be written.",
                )
        finally:
            for path in paths:
                with suppress(OSError):
                    path.chmod(0o755 if path.is_dir() else 0o644)
        self._survived(round, place)

    def _no_folder(self, round: Round, place: Place) -> None:
        file = round.folder / "file"
        file.write_text("not a folder")
        Place(file).run("list").refused()
        Place(file / "data").run("list").refused()
        require(self._serve(Place(file)), "the server starts in a file.")

    def _clock(self, round: Round, place: Place) -> None:
        """The clock jumps: everything keeps working, and nothing waits for a wrong time."""
        shim = Shim(round.folder, place.data_dir)
        place.extra_env = shim.env
        place.settings |= {
            "rate_requests_per_minute": "100000",
            "rate_reads_per_hour": "100000",
            "rate_writes_per_hour": "100000",
            "rate_graph_writes_per_hour": "100000",
        }
        place.token = ""
        place.token = place.json(
            "token", "create", "--name", "forever", "--write", "--expires", "36500"
        )["token"]
        words = Words(round.seed)
        with place.serve() as server:
            server.client.headers["Authorization"] = f"Bearer {place.token}"
            jumps = [
                round.random.choice((1, -1))
                * round.random.choice((60, 3600, DAY, 40 * DAY, 400 * DAY, 10_000 * DAY))
                for _ in range(4)
            ]
            for jump in [*jumps, 0]:
                shim.set(clock=jump)
                word = words.next()
                answer = server.add(f"A heron of {word} waits for fish.", f"Text {word}")
                if (
                    answer.status_code == 401
                ):  # the token is not valid yet, or no more, at that time
                    continue
                require(
                    answer.is_success,
                    f"at {jump:+} s adding answers {answer.status_code}: "
                    f"{in_words(answer) if not answer.is_success else ''}",
                )
                require(server.search(word), f"at {jump:+} s what was added is not found.")
                status = server.client.get("/readyz").status_code
                require(status == 200, f"at {jump:+} s /readyz answers {status}.")
            self._wait_for_jobs(place)

    def _wait_for_jobs(self, place: Place) -> None:
        """With the right time again, no job waits for a wrong one."""
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            jobs = place.json("doctor")["jobs"]
            if not jobs.get("queued") and not jobs.get("running"):
                return
            require(
                time.monotonic() < deadline,
                f"jobs wait {WAIT_SECONDS:.0f} s after the clock was set right: {jobs}",
            )
            time.sleep(0.5)


@contextmanager
def open_damage(stage: Stage) -> Iterator[Play]:
    """A library that was killed: it has a WAL, and a checkpoint of what is searched."""
    words = write_notes(stage.folder / "source", Words(0), NOTES)
    place = Place(stage.folder / "prepared", program=EARLY_CHECKPOINTS)
    place.token = place.json("token", "create", "--name", "torture", "--write")["token"]
    place.json("import", stage.folder / "source", "--wait")
    late = [f"late{n}" for n in range(5)]
    with place.serve() as server:
        server.search("heron")  # what was searched is kept in a file when the server stops
    with place.serve(quiet=False) as server:
        for word in late:
            require(server.add(f"A heron of {word} waits for fish.").is_success, "Adding fails.")
        server.kill()
    require((place.data_dir / (DATABASE + "-wal")).stat().st_size, "There is no WAL to damage.")
    require(
        checkpoints(place.data_dir),
        f"There is no checkpoint to damage: {os.listdir(place.data_dir)}",
    )
    yield Damages(place.data_dir, place.token, words, late).play


PART = Part("damage", rounds=30, long_rounds=5_000, share=3, open=open_damage, at_once=2)
