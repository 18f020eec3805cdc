"""The files of deploy/ and of CI, checked by the programs that know their formats; `make image-check` runs them."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from commonplace.settings import Settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UNITS = [
    DEPLOY / "systemd" / name for name in ("commonplace.service", "commonplace-worker.service")
]
TOOLS = Path(sys.executable).parent


def check(*command: object) -> str:
    """Run a checker. What it complains about is the failure's message."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    return found


def example_settings() -> dict[str, str]:
    """The example's lines, those that are commented out included."""
    return dict(re.findall(r"^(?:# )?([A-Z_]+)=(.*)$", (DEPLOY / ".env.example").read_text(), re.M))


def test_hadolint_accepts_the_dockerfile() -> None:
    assert check(TOOLS / "hadolint", DEPLOY / "Dockerfile") == ""


@pytest.mark.parametrize(
    ("schema", "file"),
    [
        ("compose-spec", "deploy/compose.yaml"),
        ("github-workflows", ".github/workflows/test.yml"),
        ("gitlab-ci", ".gitlab-ci.yml"),
    ],
)
def test_files_follow_their_schema(schema: str, file: str) -> None:
    check(TOOLS / "check-jsonschema", "--builtin-schema", f"vendor.{schema}", ROOT / file)


@pytest.mark.parametrize("file", [".github/workflows/test.yml", ".gitlab-ci.yml"])
def test_ci_runs_make_test(file: str) -> None:
    jobs = yaml.safe_load((ROOT / file).read_text())
    job = jobs["jobs"]["test"]["steps"] if "jobs" in jobs else jobs["test"]["script"]
    assert job[-1] in ({"run": "make test"}, "make test")


def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    """With a program that is there, as systemd looks for it; warnings do not fail its exit code."""
    for unit in UNITS:
        text = unit.read_text().replace("/opt/commonplace/bin/commonplace", "/bin/true")
        (tmp_path / unit.name).write_text(text)
    assert check("systemd-analyze", "verify", "--man=no", *tmp_path.iterdir()) == ""
    check("systemd-analyze", "security", "--offline=true", "--threshold=20", *tmp_path.iterdir())


def test_server_and_worker_units_differ_in_their_command_only() -> None:
    server, worker = (unit.read_text() for unit in UNITS)
    same = worker.replace("Commonplace worker", "Commonplace server")
    same = same.replace("commonplace worker\n", "commonplace serve\n")
    assert same.replace(" commonplace.service\n", "\n") == server


def test_compose_uses_settings_that_exist_and_that_both_processes_share(
    services: dict[str, Any],
) -> None:
    server, worker = services["server"], services["worker"]
    assert server["environment"] == worker["environment"]
    assert server["volumes"] == worker["volumes"] == ["data:/var/lib/commonplace"]
    settings = Settings.from_env(example_settings() | server["environment"])
    assert settings.workers == 0 and settings.redis_url and settings.database_url


def test_compose_opens_nothing_to_the_outside(services: dict[str, Any]) -> None:
    published = {name: service["ports"] for name, service in services.items() if "ports" in service}
    assert published == {"server": ["127.0.0.1:8642:8642"]}


def test_image_copies_no_more_than_its_ignore_file_lets_through() -> None:
    """A file that the ignore file holds back would be missing; one that is needless would be sent."""
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (DEPLOY / "Dockerfile").read_text(), re.M)
    let_through = re.findall(r"^!(.+)$", (DEPLOY / "Dockerfile.dockerignore").read_text(), re.M)
    assert sorted(" ".join(copied).split()) == sorted(let_through)
    assert all((ROOT / name).exists() for name in let_through)


def test_image_installs_the_extras_that_a_server_needs() -> None:
    locked = re.findall(r"^([\w-]+)==", (ROOT / "requirements.txt").read_text(), re.M)
    wanted = {"faster-whisper", "obstore", "psycopg", "redis", "rapidocr", "yt-dlp"}
    assert wanted <= set(locked)
