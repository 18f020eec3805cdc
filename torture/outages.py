"""A dependency that is down: writes are kept, reads stay quick, and nothing is missing later."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil

from tests.embedding_service import EmbeddingService, embedding_service
from tests.services import running_postgres, running_redis
from tests.stub_service import KEY, Mishap
from torture.harness import Broken, Part, Play, Round, Stage, require
from torture.server import Place, Server, Words, in_words

EVERY_SECONDS = 0.25
QUICK_SECONDS = 0.2  # of a call while Redis hangs, at p95
AFTERWARDS_SECONDS = 120.0
TEN_MINUTES = 600.0
# Adding waits ten seconds for an embedder that accepts and never answers, on an idle machine.
SLOWEST_ADD = 60.0


class Outages:
    def __init__(self, stage: Stage) -> None:
        self._stage, self._seconds = stage, stage.plan.outage_seconds
        self._kinds = (self._embedder, self._redis, self._postgres)

    def play(self, round: Round) -> None:
        self._kinds[round.seed % len(self._kinds)](round)

    # -- embedder

    def _embedder(self, round: Round) -> None:
        with embedding_service() as service:
            factor = max(1.0, TEN_MINUTES / self._seconds)
            place = Place(
                round.folder / "data",
                {
                    "embedder": "openai",
                    "embedder_url": f"{service.url}/v1",
                    "embedder_key": KEY,
                    "embedder_model": "m",
                    "embedder_dimensions": "64",
                },
                program=[sys.executable, "-P", "-m", "torture.scaled", str(factor)],
            )
            with place.serve(quiet=False) as server, server.watch(self._stage.vitals):
                server.client.timeout = SLOWEST_ADD
                words = Words(round.seed)
                kept = self._add_until(server, words, time.monotonic() + 2, lambda answer: False)
                with self._down(service, round):
                    kept |= self._add_until(
                        server, words, time.monotonic() + self._seconds, lambda answer: False
                    )
                    answer = server.client.post(
                        "/api/v1/search", json={"query": "heron", "mode": "hybrid"}
                    )
                    require(
                        answer.status_code == 200
                        and (answer.json().get("hits") or answer.json().get("results")),
                        f"Hybrid search does not fall back to words: {answer.text[:300]}",
                    )
                self._require_kept(server, kept)
                self._wait_for_vectors(place)
                self._require_meaning(server)

    @contextmanager
    def _down(self, service: EmbeddingService, round: Round) -> Iterator[None]:
        """It answers 503 or 429, or with nonsense, or not at all."""
        failure = round.random.choice(
            (Mishap(503), Mishap(429), Mishap(500), Mishap(200, body="<html>"), Mishap(silent=True))
        )
        service.mishaps.extend([failure] * 1_000_000)
        try:
            yield
        finally:
            service.mishaps.clear()
            service.closing.set()

    def _wait_for_vectors(self, place: Place) -> None:
        deadline = time.monotonic() + AFTERWARDS_SECONDS
        while True:
            said = place.run("doctor", "--json")
            facts = said.out and httpx.Response(200, content=said.out).json()
            if facts and facts["sections"] and facts["sections"] == facts["sections_with_vectors"]:
                require(facts["ok"], f"doctor: {facts['problems']}")
                return
            if time.monotonic() > deadline:
                waited = f"{AFTERWARDS_SECONDS:.0f} s after the outage"
                raise Broken(f"Vectors are missing {waited}: {said.out[:800]}")
            time.sleep(1)

    def _require_meaning(self, server: Server) -> None:
        answer = server.client.post("/api/v1/search", json={"query": "heron", "mode": "semantic"})
        require(
            answer.status_code == 200,
            f"Semantic search answers {answer.status_code}: {answer.text[:300]}",
        )

    # -- Redis

    def _redis(self, round: Round) -> None:
        high = {
            f"rate_{name}": "1000000"
            for name in ("requests_per_minute", "reads_per_hour", "writes_per_hour")
        }
        with running_redis() as (url, pid):
            place = Place(round.folder / "data", {"redis_url": url, **high})
            with place.serve(quiet=False) as server, server.watch(self._stage.vitals):
                words = Words(round.seed)
                kept = self._add_until(server, words, time.monotonic() + 1, lambda answer: False)
                os.kill(pid, signal.SIGSTOP)
                try:
                    took = self._time_calls(server, words, kept)
                finally:
                    os.kill(pid, signal.SIGCONT)
                p95 = sorted(took)[int(len(took) * 0.95)]
                require(
                    p95 < QUICK_SECONDS,
                    f"Calls took {p95:.2f} s at p95 while Redis hung ({len(took)} calls, "
                    f"worst {max(took):.2f} s).",
                )
                kept |= self._add_until(server, words, time.monotonic() + 1, lambda answer: False)
                self._require_kept(server, kept)

    def _time_calls(self, server: Server, words: Words, kept: dict[str, str]) -> list[float]:
        took, until = [], time.monotonic() + self._seconds
        while time.monotonic() < until:
            began = time.monotonic()
            if len(took) % 10 == 0:
                word = words.next()
                answer = server.add(f"A heron of {word} waits for fish.")
                kept |= {answer.json()["user_item_id"]: word} if answer.is_success else {}
            else:
                answer = server.client.get("/api/v1/items", params={"per_page": 5})
            took.append(time.monotonic() - began)
            require(
                answer.is_success, f"{answer.status_code} while Redis hangs: {answer.text[:300]}"
            )
            time.sleep(EVERY_SECONDS / 5)
        return took

    # -- Postgres

    def _postgres(self, round: Round) -> None:
        with running_postgres() as (url, pid):
            place = Place(round.folder / "data", {"database_url": url})
            with place.serve(quiet=False) as server, server.watch(self._stage.vitals):
                words = Words(round.seed)
                kept = self._add_until(server, words, time.monotonic() + 1, lambda answer: False)
                with stopped_postgres(pid):
                    kept |= self._add_until(
                        server,
                        words,
                        time.monotonic() + self._seconds,
                        lambda answer: answer.status_code == 503,
                    )
                self._wait_until_it_works(server, words, kept)
                self._require_kept(server, kept)
            require(place.json("doctor")["ok"], "doctor finds problems after the outage.")

    def _wait_until_it_works(self, server: Server, words: Words, kept: dict[str, str]) -> None:
        deadline = time.monotonic() + AFTERWARDS_SECONDS
        while not server.add(f"A heron of {words.next()} waits for fish.").is_success:
            require(
                time.monotonic() < deadline,
                f"Adding still fails {AFTERWARDS_SECONDS:.0f} s after the outage.",
            )
            time.sleep(0.5)

    # -- all

    def _add_until(
        self,
        server: Server,
        words: Words,
        deadline: float,
        may_fail: Callable[[httpx.Response], bool],
    ) -> dict[str, str]:
        """Add texts; those that were acknowledged, as id -> word."""
        kept = {}
        while time.monotonic() < deadline:
            word = words.next()
            answer = server.add(
                f"A heron of {word} waits.\n\nIts second part has {word}.", f"Text {word}"
            )
            if answer.is_success:
                kept[answer.json()["user_item_id"]] = word
            else:
                said = in_words(answer)
                require(may_fail(answer), f"Adding answers {answer.status_code}: {said}")
            time.sleep(EVERY_SECONDS)
        return kept

    def _require_kept(self, server: Server, kept: dict[str, str]) -> None:
        require(kept, "Nothing was added.")
        for item_id, word in kept.items():
            answer = server.client.get(f"/api/v1/items/{item_id}")
            require(
                answer.status_code == 200 and word in answer.text,
                f"The acknowledged item {item_id} is lost.",
            )


@contextmanager
def stopped_postgres(pid: int) -> Iterator[None]:
    """Stop a server at once, and start it again with the same command."""
    server = psutil.Process(pid)
    command, user, group, folder = (
        server.cmdline(),
        server.uids().real,
        server.gids().real,
        server.cwd(),
    )
    program = server.exe()
    server.send_signal(signal.SIGQUIT)
    psutil.wait_procs([server], timeout=30)
    try:
        yield
    finally:
        Path(folder).joinpath("postmaster.pid").unlink(missing_ok=True)
        subprocess.Popen(
            command,
            executable=program,
            cwd=folder,
            user=user,
            group=group,
            extra_groups=[],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


@contextmanager
def open_outages(stage: Stage) -> Iterator[Play]:
    yield Outages(stage).play
    stage.require_calm()


PART = Part("outages", rounds=3, long_rounds=60, share=2, open=open_outages, at_once=3)
