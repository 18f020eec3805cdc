"""Take the pictures of the web app for the docs: `.venv/bin/python tools/screenshots.py`.

The library is a real server on a temporary folder. Its articles are the descriptions of installed
packages (MIT, BSD and Apache licences) and, for the map, our own guides.
"""

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import metadata
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
from PIL import Image
from playwright.sync_api import Page, sync_playwright

DOCS = Path(__file__).parents[1] / "docs"
ARTICLES = {  # package: title, folder, tags
    "webauthn": ("Passkeys on the server with py_webauthn", "Security", ["passkeys", "webauthn"]),
    "argon2-cffi": ("argon2-cffi: secure password hashes", "Security", ["passwords", "argon2"]),
    "typer": ("Typer: command lines from type hints", "Web services", ["cli", "python"]),
    "trafilatura": ("Trafilatura: text from the web", "Search and text", ["scraping", "html"]),
    "faster-whisper": ("Faster Whisper with CTranslate2", "Search and text", ["speech", "models"]),
    "schemathesis": ("Schemathesis: fuzzing an OpenAPI", "Web services", ["testing", "openapi"]),
    "redis": ("redis-py: pipelines and Pub/Sub", "Web services", ["redis", "python"]),
    "httpx": ("HTTPX: sync and async HTTP", "Web services", ["http", "async"]),
    "starlette": ("Starlette, the little ASGI framework", "Web services", ["http", "async"]),
    "mcp": ("MCP Python SDK", "Agents", ["mcp", "agents"]),
    "fastapi": ("FastAPI: APIs from type hints", "Web services", ["http", "openapi"]),
}
WORK = [
    {
        "title": "Crawler",
        "content": "Fetches pages for the search index, politely.",
        "entity_type": "project",
    },
    {
        "title": "Keep rate limits in Redis",
        "content": "Moving window, so that a burst at the full hour cannot double the limit.",
        "entity_type": "decision",
        "tags": ["rate-limiting", "redis"],
    },
    {
        "title": "Deploy the crawler",
        "content": "1. Drain the queue. 2. Restart one worker at a time. 3. Watch /metrics.",
        "entity_type": "procedure",
        "tags": ["deploy"],
    },
]
SHOTS = (
    ("library", "/", "light"),
    ("search", "/search?q=async http requests", "light"),
    ("reader", "/items/{trafilatura}", "dark"),
)


def article(package: str) -> str:
    """Return a package's description as plain Markdown, without badges and HTML."""
    text = str(metadata(package).get_payload())
    text = re.sub(r"<(picture|p|div|a|table)\b.*?</\1>", "", text, flags=re.S)
    text = re.sub(r"^.*(<|!\[|^---).*$", "", text, flags=re.M)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def stock(http: httpx.Client) -> dict[str, str]:
    """Add the articles and the work, and return the articles' ids."""
    ids = {}
    names = sorted({folder for _, folder, _ in ARTICLES.values()})
    folders = {n: http.post("/api/v1/folders", json={"name": n}).json()["id"] for n in names}
    for package, (title, folder, tags) in ARTICLES.items():
        body = {"kind": "text", "title": title, "text": article(package)}
        ids[package] = (
            http.post("/api/v1/ingest", json=body).raise_for_status().json()["user_item_id"]
        )
        http.patch(f"/api/v1/items/{ids[package]}", json={"tags": tags}).raise_for_status()
        http.post(f"/api/v1/items/{ids[package]}/folders", json={"folder_ids": [folders[folder]]})
    for entity in WORK:
        http.post("/api/entities?sync=true", json=entity).raise_for_status()
    return ids


def stock_pages(http: httpx.Client) -> None:
    """Add our own guides section by section: enough for a map."""
    for file in sorted(DOCS.glob("how-to/*.md")):
        for part in re.split(r"^#+ (?=.+\n)", file.read_text(), flags=re.M)[1:]:
            title, _, text = part.partition("\n")
            if len(text.split()) > 30:
                title = title.replace("`", "")[:120]
                http.post(
                    "/api/v1/ingest", json={"kind": "text", "title": title, "text": text[:200_000]}
                )


def shoot(page: Page, name: str, path: str, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(path, wait_until="networkidle")
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    picture.quantize(96).save(DOCS / "pictures" / f"web-{name}.png", optimize=True)


@contextmanager
def served(folder: str) -> Iterator[dict[str, str]]:
    """Run a server without rate limits, and yield what `serve --json` prints."""
    limits = ("REQUESTS_PER_MINUTE", "READS_PER_HOUR", "WRITES_PER_HOUR", "DELETES_PER_HOUR")
    server = subprocess.Popen(
        [sys.executable, "-m", "commonplace", "serve", "--port=0", "--json", "--data-dir", folder],
        env=os.environ
        | {f"COMMONPLACE_RATE_{name}": "0" for name in limits}
        | {"COMMONPLACE_EMBEDDER": "static"},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout
        yield json.loads(server.stdout.readline())
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    with TemporaryDirectory() as folder, served(folder) as site, sync_playwright() as play:
        token = {"Authorization": f"Bearer {site['token']}"}
        http = httpx.Client(base_url=site["address"], headers=token, timeout=60)
        ids = stock(http)
        browser = play.chromium.launch(
            executable_path="/usr/bin/chromium-headless-shell",
            args=["--no-sandbox"] if os.geteuid() == 0 else [],
        )
        page = browser.new_page(base_url=site["address"], viewport={"width": 1180, "height": 720})
        page.goto(site["claim"])
        page.fill("[name=name]", "Ada")
        page.fill("[name=email]", "ada@example.org")
        page.fill("[name=password]", "a long enough password")
        page.locator("button.wide").click()
        page.wait_for_url("**/")
        for name, path, scheme in SHOTS:
            shoot(page, name, path.format(**ids), scheme)
        stock_pages(http)
        shoot(page, "map", "/graph", "light")
        browser.close()


if __name__ == "__main__":
    main()
