"""kill -9 at random points: no acknowledged write is lost, none is there by half, it starts."""

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

from tests.embedding_service import embedding_service
from tests.stub_service import KEY
from torture.engines import ENGINES, Engines, prepared_engines, require_sound, write_notes
from torture.harness import Part, Play, Round, Stage, require
from torture.server import Place, Server, Words, end, kill_alone

PREPARED = 60
CLIENTS = 3


class Kills:
    def __init__(self, engines: Engines, folder: Path, words: list[str], embedder: str) -> None:
        self._engines, self._words = engines, words
        self._embedder = {
            "embedder": "openai",
            "embedder_url": f"{embedder}/v1",
            "embedder_key": KEY,
            "embedder_model": "m",
            "embedder_dimensions": "64",
        }
        self._folder, self._lock = folder, threading.Lock()
        self._actions: tuple[Callable[[Round, Place], None], ...] = (
            self._add,
            self._import,
            self._back_up,
            self._restore,
            self._reindex,
        )

    def play(self, round: Round) -> None:
        engine = ENGINES[round.seed % 2]
        action = self._actions[round.seed // 2 % len(self._actions)]
        with self._engines.copy(engine, round.folder) as place:
            action(round, place)
            require_sound(place)
            self._require_order(place)

    def _require_order(self, place: Place) -> None:
        said = place.json("doctor")
        require(said["ok"], f"doctor: {said['problems']}")

    def _require_prepared(self, place: Place) -> None:
        with place.serve() as server:
            self._require_found(server, self._words[:3])
            total = server.client.get("/api/v1/items").json()["total"]
            require(total >= PREPARED, f"Of {PREPARED} items {total} are left.")

    def _require_found(self, server: Server, words: list[str]) -> None:
        for word in words:
            require(server.search(word), f"Search does not find {word!r}.")

    def _backup(self) -> Path:
        """A backup of another library, with one item."""
        file = self._folder / "older.backup"
        with self._lock:
            if not file.exists():
                older = Place(self._folder / "older")
                older.json("add", "-", "--title", "Older", stdin="an older library, of one text")
                older.json("backup", file)
        return file

    # -- what is killed

    def _add(self, round: Round, place: Place) -> None:
        """Clients add, edit and delete; the server is killed under them."""
        words = Words(round.seed)
        kept: dict[str, str] = {}  # id -> the word that tells it
        deleted: set[str] = set()
        doubtful: set[str] = set()  # asked to be deleted, and never answered
        refused: list[str] = []
        lock = threading.Lock()

        def client(server: Server) -> None:
            with suppress(httpx.HTTPError):
                while True:
                    with lock:
                        word = words.next()
                    text = f"A text about {word}.\n\nIts second part has {word} too."
                    if word.endswith("4"):  # now and then a file, which a process of its own reads
                        answer = server.upload(f"{word}.md", "text/markdown", text.encode())
                    else:
                        answer = server.add(text, f"Text {word}")
                    if not answer.is_success:
                        refused.append(f"{answer.status_code}: {answer.text[:300]}")
                        return
                    item_id = answer.json()["user_item_id"]
                    with lock:
                        kept[item_id] = word
                    if round.seed % 3 == 0:
                        with lock:
                            doubtful.add(item_id)
                        if server.client.delete(f"/api/v1/items/{item_id}").is_success:
                            with lock:
                                deleted.add(item_id)

        with place.serve(quiet=False) as server:
            clients = [threading.Thread(target=client, args=[server]) for _ in range(CLIENTS)]
            for thread in clients:
                thread.start()
            time.sleep(round.random.uniform(0.05, 1.5))
            server.kill()
            for thread in clients:
                thread.join()
        require(not refused, f"Adding answers {refused}")
        with place.serve() as server:
            for item_id, word in kept.items():
                answer = server.client.get(f"/api/v1/items/{item_id}")
                there = answer.status_code == 200
                require(
                    there or item_id in doubtful,
                    f"The acknowledged item {item_id} is lost ({answer.status_code}).",
                )
                require(not (there and item_id in deleted), f"The deleted item {item_id} is back.")
                if there:
                    require(word in answer.json()["text"], f"The item {item_id} has lost its text.")
                    self._require_found(server, [word])
            self._require_found(server, self._words[:3])

    def _import(self, round: Round, place: Place) -> None:
        source = round.folder / "notes"
        words = write_notes(source, Words(round.seed), 60)
        self._kill(round, place, 2.0, "import", source, "--json")
        said = place.json("import", source)
        require(
            said["added"] + said["unchanged"] + said.get("changed", 0) == len(words),
            f"Importing again says {said}.",
        )
        again = place.json("import", source)
        require(again["unchanged"] == len(words), f"A third import says {again}.")
        with place.serve() as server:
            for word in round.random.sample(words, 5):
                require(
                    len({hit["item_id"] for hit in server.search(word)}) == 1,
                    f"{word!r} is not there once.",
                )

    def _back_up(self, round: Round, place: Place) -> None:
        """The file has the whole old backup or the whole new one."""
        file = round.folder / "all.backup"
        file.write_bytes(self._backup().read_bytes())
        self._kill(round, place, 1.5, "backup", file, "--force")
        restored = Place(round.folder / "restored")
        rows = restored.json("restore", file)["rows"]["items"]
        require(rows in (1, PREPARED), f"The backup has {rows} items.")
        self._require_prepared(place)

    def _restore(self, round: Round, place: Place) -> None:
        """The library is the old one or the restored one."""
        self._kill(round, place, 1.5, "restore", self._backup(), "--force")
        total = place.json("list")["total"]
        require(
            total in (1, PREPARED),
            f"The library has {total} items, neither all of the old nor of the restored.",
        )
        with place.serve() as server:
            if total > 1:
                self._require_found(server, self._words[:3])
            else:
                place.token = place.json("token", "create", "--name", "again")["token"]
                server.client.headers["Authorization"] = f"Bearer {place.token}"
                self._require_found(server, ["older"])

    def _reindex(self, round: Round, place: Place) -> None:
        place.settings.update(self._embedder)
        self._kill(round, place, 2.0, "reindex")
        with place.serve() as server:
            self._require_found(server, self._words[:3])
        place.run("reindex").well()
        said = place.json("doctor")
        require(said["sections"] == said["sections_with_vectors"], f"Vectors are missing: {said}")

    def _kill(self, round: Round, place: Place, seconds: float, *arguments: object) -> None:
        """Kill a command at some point of the time that it takes."""
        process = place.start(*arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            process.wait(timeout=round.random.uniform(0.3, seconds))
        except subprocess.TimeoutExpired:
            kill_alone(process)
        finally:
            end(process)
            assert process.stderr is not None
            with process.stderr as said:
                text = said.read()
        require(
            "Traceback" not in text,
            f"`commonplace {arguments[0]}` shows a traceback:\n{text[-1500:]}",
        )


@contextmanager
def open_kills(stage: Stage) -> Iterator[Play]:
    words = write_notes(stage.folder / "source", Words(0), PREPARED)
    with (
        prepared_engines(stage.folder, stage.folder / "source") as engines,
        embedding_service() as embedder,
    ):
        yield Kills(engines, stage.folder, words, embedder.url).play


PART = Part("kills", rounds=60, long_rounds=10_000, share=8, open=open_kills, at_once=2)
