"""ENOSPC, EIO and short writes at the n-th call: refused in words, nothing by half, works again."""

import errno
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx

from torture.engines import Engines, prepared_engines, require_sound, write_notes
from torture.harness import Broken, Part, Play, Round, Stage, require
from torture.server import EARLY_CHECKPOINTS, Place, Server, Words, in_words
from torture.shim import Shim

PREPARED = 30
KINDS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "short write": 0}
RESTART_EVERY = 25  # rounds with one server
COMMAND_EVERY = 10  # every tenth round is a command instead
# No more calls than a quiet run has, so that most faults hit.
CALLS = {
    "text": 14,
    "file": 24,
    "edit": 14,
    "delete": 14,
    "memory": 20,
    "folder": 8,
    "import": 80,
    "backup": 20,
    "restore": 160,
    "add": 40,
}
Fails = Callable[..., bool]


class Faults:
    def __init__(self, engines: Engines, folder: Path) -> None:
        self._engines, self._folder = engines, folder
        self._served: Server | None = None
        self._open = ExitStack()
        self._rounds = 0
        self._calls: dict[str, Callable[[Server, str], tuple[httpx.Response, str]]] = {
            "text": self._text,
            "file": self._file,
            "edit": self._edit,
            "delete": self._delete,
            "memory": self._memory,
            "folder": self._make_folder,
        }
        self._commands: dict[str, Callable[[Round, Place, Fails], None]] = {
            "import": self._import,
            "backup": self._back_up,
            "restore": self._restore,
            "add": self._add,
        }

    def play(self, round: Round) -> None:
        kind = list(KINDS)[round.seed % len(KINDS)]
        if round.seed % COMMAND_EVERY == 0:
            self._play_command(round, kind)
        else:
            self._play_call(round, kind)

    def _arm(self, round: Round, shim: Shim, what: str, kind: str) -> str:
        call, sticky = round.random.randint(1, CALLS[what]), round.random.random() < 0.5
        shim.arm(call, KINDS[kind], sticky)
        later = " and all later ones" if sticky and KINDS[kind] else ""
        return f"{what} with {kind} at call {call}{later}"

    # -- calls to a server

    def _play_call(self, round: Round, kind: str) -> None:
        server = self._server()
        what = round.random.choice(list(self._calls))
        word = f"w{round.seed}q{round.random.randrange(1 << 30)}"
        before = self._total(server)
        armed = self._arm(round, self._shim, what, kind)
        try:
            answer, item_id = self._calls[what](server, word)
        except httpx.HTTPError as error:
            raise Broken(f"{armed}: the server does not answer ({error!r}).") from None
        finally:
            fired = self._shim.disarm()
        try:
            self._judge(server, what, word, answer, item_id, before, bool(fired))
            again, _ = self._text(server, word + "again")
            require(
                again.is_success, f"adding fails afterwards: {again.status_code} {again.text[:300]}"
            )
        except Broken as error:
            raise Broken(f"{armed}: {error}") from None

    def _judge(
        self,
        server: Server,
        what: str,
        word: str,
        answer: httpx.Response,
        item_id: str,
        before: int,
        fired: bool,
    ) -> None:
        if not answer.is_success:
            require(fired, f"{answer.status_code} without a fault: {answer.text[:300]}")
            in_words(answer)
        body = answer.json()
        if what == "memory":  # JSON-RPC is always 200
            refused = "error" in body or body["result"].get("isError")
            said = str(body.get("error", ""))
            require("its log says" not in said, f"An unforeseen failure: {said}")
            item_id = "" if refused else body["result"]["structuredContent"]["id"]
        else:
            refused = not answer.is_success
        if what in ("text", "file"):
            item_id = "" if refused else body["user_item_id"]
        found = server.search(word)
        if what in ("text", "file", "memory"):
            require(refused or found, "acknowledged, and search does not find it.")
            grown = self._total(server) - before
            require(grown == 1 or (refused and grown == 0), f"{grown} items more than before.")
            require(grown == 0 or found, "refused, and there by half.")
            if item_id:
                kept = server.client.get(f"/api/v1/items/{item_id}")
                require(
                    kept.status_code == 200 and word in kept.json()["text"],
                    "acknowledged, and not there whole.",
                )
        elif what == "edit":
            title = server.client.get(f"/api/v1/items/{item_id}").json()["title"]
            require(refused or title == word, "an acknowledged edit is lost.")
        elif what == "delete":
            there = server.client.get(f"/api/v1/items/{item_id}").status_code == 200
            require(refused or not there, "an acknowledged delete is undone.")

    def _text(self, server: Server, word: str) -> tuple[httpx.Response, str]:
        return server.add(
            f"A heron named {word}.\n\nThe second part of {word}.", f"Text {word}"
        ), ""

    def _file(self, server: Server, word: str) -> tuple[httpx.Response, str]:
        page = (
            f"<html><body><p>A page about {word}, with enough words to be kept.</p></body></html>"
        )
        return server.upload(f"{word}.html", "text/html", page.encode()), ""

    def _memory(self, server: Server, word: str) -> tuple[httpx.Response, str]:
        return server.call_tool(
            "remember",
            {"title": f"Rule {word}", "content": f"Always feed {word}.", "kind": "procedure"},
        ), ""

    def _edit(self, server: Server, word: str) -> tuple[httpx.Response, str]:
        item_id = self._some_item(server)
        return server.client.patch(f"/api/v1/items/{item_id}", json={"title": word}), item_id

    def _delete(self, server: Server, word: str) -> tuple[httpx.Response, str]:
        item_id = self._some_item(server)
        return server.client.delete(f"/api/v1/items/{item_id}"), item_id

    def _make_folder(self, server: Server, word: str) -> tuple[httpx.Response, str]:
        return server.client.post("/api/v1/folders", json={"name": word}), ""

    def _some_item(self, server: Server) -> str:
        return str(
            server.client.get("/api/v1/items", params={"per_page": 1}).json()["items"][0]["id"]
        )

    def _total(self, server: Server) -> int:
        return int(server.client.get("/api/v1/items", params={"per_page": 1}).json()["total"])

    def _server(self) -> Server:
        if self._served is None or self._rounds % RESTART_EVERY == 0:
            self.close()
            folder = self._folder / f"served-{self._rounds}"
            folder.mkdir()
            self._shim = Shim(folder, folder / "data-root")
            self._place = self._open.enter_context(
                self._engines.copy("sqlite", folder / "data-root")
            )
            self._place.program, self._place.extra_env = EARLY_CHECKPOINTS, self._shim.env
            self._served = self._open.enter_context(self._place.serve(quiet=False))
        self._rounds += 1
        return self._served

    def close(self) -> None:
        """Stop the server and look at what the faults have left."""
        if self._served is not None:
            self._served = None
            self._open.close()
            require_sound(self._place)
            said = self._place.json("doctor")
            require(said["ok"], f"doctor, after faults: {said['problems']}")

    # -- commands

    def _play_command(self, round: Round, kind: str) -> None:
        what = list(self._commands)[round.seed // COMMAND_EVERY % len(self._commands)]
        library = round.folder / "library"
        shim = Shim(round.folder, library)
        with self._engines.copy("sqlite", library) as place:
            place.extra_env = shim.env
            armed = f"{what} with {kind}"

            def fails(*arguments: object, stdin: str = "") -> bool:
                """Run a command under the fault: whether it fails, and then says why."""
                nonlocal armed
                armed = self._arm(round, shim, what, kind)
                said = place.run(*arguments, stdin=stdin)
                fired = shim.disarm()
                if said.code:
                    require(fired, f"it fails without a fault: {said.err[-500:]}")
                    said.refused()
                return said.code != 0

            try:
                self._commands[what](round, place, fails)
                require_sound(place)
                said = place.json("doctor")
                require(said["ok"], f"doctor: {said['problems']}")
            except Broken as error:
                raise Broken(f"{armed}: {error}") from None

    def _add(self, round: Round, place: Place, fails: Fails) -> None:
        word = f"w{round.seed}"
        refused = fails("add", "-", "--title", "Added", stdin=f"A text of {word}.")
        hits = place.json("search", word, "--mode", "keyword")
        require(refused or hits.get("hits", hits.get("results")), "added, and not found.")

    def _import(self, round: Round, place: Place, fails: Fails) -> None:
        words = write_notes(round.folder / "notes", Words(round.seed), 10)
        fails("import", round.folder / "notes", "--json")
        place.json("import", round.folder / "notes")
        said = place.json("import", round.folder / "notes")
        require(said["unchanged"] == len(words), f"importing again says {said}.")

    def _back_up(self, round: Round, place: Place, fails: Fails) -> None:
        """The file lies where writes fail, and what it had before is not lost."""
        file = round.folder / "library" / "all.backup"
        place.json("backup", file)
        place.json("add", "-", "--title", "Later", stdin="added after the backup")
        refused = fails("backup", file, "--force")
        rows = Place(round.folder / "restored").json("restore", file)["rows"]["items"]
        require(
            rows == PREPARED + 1 or (refused and rows == PREPARED), f"the backup has {rows} items."
        )

    def _restore(self, round: Round, place: Place, fails: Fails) -> None:
        older, backup = Place(round.folder / "older"), round.folder / "older.backup"
        older.json("add", "-", "--title", "Older", stdin="an older library")
        older.json("backup", backup)
        refused = fails("restore", backup, "--force")
        total = place.json("list")["total"]
        require(total == 1 or (refused and total == PREPARED), f"the library has {total} items.")


@contextmanager
def open_faults(stage: Stage) -> Iterator[Play]:
    write_notes(stage.folder / "source", Words(0), PREPARED)
    with prepared_engines(stage.folder, stage.folder / "source") as engines:
        faults = Faults(engines, stage.folder)
        try:
            yield faults.play
        except BaseException:
            faults._open.close()
            raise
        faults.close()


PART = Part("faults", rounds=200, long_rounds=20_000, share=4, open=open_faults)
