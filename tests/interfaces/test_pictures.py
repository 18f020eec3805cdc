"""Small pictures of pages, files and recordings: drawn anew, served from here, to those who see the item."""

import io
import struct
import zipfile
import zlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image

from tests.interfaces.house import ADDRESS, House, call_tool, open_house
from tests.interfaces.test_redirects import ARTICLE, WORDS, add
from tests.interfaces.test_uploads import finish, send
from tests.interfaces.test_web_people import browser
from tests.webserver import WebServer, page, web_server

pytestmark = pytest.mark.anyio


def drawn(width: int = 900, height: int = 600, kind: str = "PNG", colour: str = "teal") -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(out, kind)
    return out.getvalue()


def bomb() -> bytes:
    """A PNG of some kilobytes that says it has 100,000 x 100,000 pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", 100_000, 100_000, 8, 2, 0, 0, 0)
    rows = zlib.compress(bytes(1_000_000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def article(picture: str = "", body: str = "") -> str:
    meta = f'<meta property="og:image" content="{picture}">' if picture else ""
    return ARTICLE.replace("<head>", f"<head>{meta}").replace("</h1>", f"</h1>{body}")


@pytest.fixture
def web() -> Iterator[WebServer]:
    with web_server() as server:
        server.pages |= {
            "/otters": page(article("/otter.png")),
            "/otter.png": page(drawn(), "image/png"),
        }
        yield server


@pytest.fixture
async def house(
    either_engine: dict[str, str], data_dir: Path, web: WebServer
) -> AsyncIterator[House]:
    async with open_house(data_dir, fetch_allow_hosts=web.host, **either_engine) as opened:
        yield opened


async def item_of(client: httpx.AsyncClient, item_id: str) -> Any:
    return (await client.get(f"/api/v1/items/{item_id}")).json()


async def picture(client: httpx.AsyncClient, item: Any) -> Image.Image:
    answer = await client.get(item["thumbnail_url"])
    assert answer.status_code == 200 and answer.headers["content-type"] == "image/webp"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "immutable" in answer.headers["cache-control"]
    image = Image.open(io.BytesIO(answer.content), formats=["WEBP"])
    image.load()
    return image


async def test_a_page_has_the_picture_that_it_names(house: House, web: WebServer) -> None:
    async with house.client("owner") as owner, house.client("stranger") as stranger:
        item_id = (await add(owner, f"{web.url}/otters"))["user_item_id"]
        item = await item_of(owner, item_id)
        assert item["thumbnail_url"].startswith(f"{ADDRESS}/api/v1/items/{item_id}/thumbnail?v=")
        assert (await picture(owner, item)).size == (480, 320)
        tool = await call_tool(owner, "get_item", {"item_id": item_id})
        assert tool["result"]["structuredContent"]["thumbnail_url"] == item["thumbnail_url"]
        assert (await stranger.get(item["thumbnail_url"])).status_code == 404
        theirs = await item_of(stranger, (await add(stranger, f"{web.url}/otters"))["user_item_id"])
        assert (await picture(stranger, theirs)).size == (480, 320)
        assert [each.path for each in web.requests].count("/otter.png") == 1
        async with house.client() as nobody:
            assert (await nobody.get(item["thumbnail_url"])).status_code == 401
        await owner.patch(f"/api/v1/items/{item_id}", json={"text": "My own words on otters."})
        assert (await picture(owner, await item_of(owner, item_id))).size == (480, 320)
        await owner.delete(f"/api/v1/items/{item_id}?permanent=true")
        assert (await owner.get(item["thumbnail_url"])).status_code == 404
        assert (await picture(stranger, theirs)).size == (480, 320)
    async with await browser(house, house.stranger.person_id) as person:
        for path in ("/", f"/items/{theirs['public_id']}"):
            assert f"/items/{theirs['public_id']}/thumbnail?v=" in (await person.get(path)).text
        shown = await person.get(f"/items/{theirs['public_id']}/thumbnail")
        assert shown.headers["content-type"] == "image/webp"


async def test_icons_and_what_is_no_image_are_passed_over(house: House, web: WebServer) -> None:
    figures = "".join(f'<figure><img src="/{n}.png" alt="{n}"></figure>' for n in range(3))
    web.pages |= {
        "/a": page(article("/missing.png", figures)),
        "/0.png": page(drawn(40, 40), "image/png"),
        "/1.png": page(drawn(200, 400, colour="red"), "image/png"),
        "/b": page(article("/script.svg")),
        "/script.svg": page("<svg onload=alert(1)/>", "image/svg+xml"),
        "/c": page(article("/bomb.png")),
        "/bomb.png": page(bomb(), "image/png"),
        "/d": page(article("http://10.0.0.1/a.png")),
        "/e": page(article("/page.png")),
        "/page.png": page(ARTICLE),
        "/f": page(article("/broken.png")),
        "/broken.png": page(drawn()[:300], "image/png"),
    }
    async with house.client("owner") as owner:
        items = {
            path: await item_of(owner, (await add(owner, web.url + path))["user_item_id"])
            for path in ("/a", "/b", "/c", "/d", "/e", "/f")
        }
        assert (await picture(owner, items.pop("/a"))).size == (200, 400)
        assert {each["thumbnail_url"] for each in items.values()} == {None}
        assert all("otter swims" in each["text"] for each in items.values())


def pdf() -> bytes:
    import pypdfium2

    out = io.BytesIO()
    document = pypdfium2.PdfDocument.new()
    document.new_page(400, 800)
    document.save(out)
    return out.getvalue()


def book() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as parts:
        parts.writestr("mimetype", "application/epub+zip")
        parts.writestr(
            "META-INF/container.xml",
            '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="b/a.opf"/></rootfiles></container>',
        )
        parts.writestr(
            "b/a.opf",
            '<package xmlns="http://www.idpf.org/2007/opf"><manifest>'
            '<item id="c" href="c.jpg" properties="cover-image"/><item id="t" href="t.xhtml"/>'
            '</manifest><spine><itemref idref="t"/></spine></package>',
        )
        parts.writestr("b/c.jpg", drawn(300, 600, "JPEG"))
        parts.writestr(
            "b/t.xhtml", f'<html xmlns="http://www.w3.org/1999/xhtml"><body>{WORDS}</body></html>'
        )
    return out.getvalue()


async def test_books_bring_their_cover(house: House) -> None:
    async with house.client("owner") as owner:
        upload = await send(house, owner, book(), "a.epub", "application/epub+zip")
        item = await item_of(owner, (await finish(owner, upload)).json()["user_item_id"])
        assert (await picture(owner, item)).size == (240, 480)


@pytest.mark.parametrize(
    ("data", "kind", "size"),
    [
        (pdf(), "application/pdf", (240, 480)),
        (drawn(1000, 500, "JPEG"), "image/jpeg", (480, 240)),
        (drawn(20, 10), "image/png", (20, 10)),
        (drawn(700, 350, "GIF"), "image/gif", (480, 240)),
    ],
    ids=["pdf", "jpeg", "small", "gif"],
)
async def test_files_are_drawn(
    house_with: Any, data: bytes, kind: str, size: tuple[int, int], tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_bytes(data)
    async with house_with() as house:
        found = await house.app.uploads._pictures.of_file(file, kind)
    assert Image.open(io.BytesIO(found.data)).size == size


async def test_videos_and_recordings_bring_a_still(house_with: Any, tmp_path: Path) -> None:
    import av
    import numpy as np

    file = tmp_path / "a.mp4"
    with av.open(str(file), "w") as out:
        stream = out.add_stream("mpeg4", rate=5)
        stream.width, stream.height, stream.pix_fmt = 320, 240, "yuv420p"
        for _ in range(10):
            frame = av.VideoFrame.from_ndarray(np.full((240, 320, 3), 200, np.uint8))
            out.mux(stream.encode(frame))
        out.mux(stream.encode())
    async with house_with() as house:
        found = await house.app.uploads._pictures.of_file(file, "video/mp4")
    assert Image.open(io.BytesIO(found.data)).size == (320, 240)


async def test_nothing_of_the_original_file_is_passed_on(house_with: Any, tmp_path: Path) -> None:
    file = tmp_path / "a.jpg"
    exif = Image.Exif()
    exif[0x010E], exif[0x0112] = "GPS and secrets", 6
    Image.new("RGB", (300, 150)).save(file, "JPEG", exif=exif)
    with file.open("ab") as out:
        out.write(b"<script>alert(1)</script>")
    async with house_with() as house:
        found = await house.app.uploads._pictures.of_file(file, "image/jpeg")
    assert b"secrets" not in found.data and b"script" not in found.data
    assert Image.open(io.BytesIO(found.data)).size == (150, 300), "turned as the camera was held"


async def test_images_of_a_page_are_kept_up_to_a_size(house_with: Any, web: WebServer) -> None:
    figure = f'<figure><img src="{web.url}/in.png" alt="An otter &lt;b&gt;"></figure>'
    web.pages |= {"/a": page(article("", figure)), "/in.png": page(drawn(), "image/png")}
    async with house_with(keep_images=1, fetch_allow_hosts=web.host) as house:
        async with house.client("owner") as owner:
            item_id = (await add(owner, f"{web.url}/a"))["user_item_id"]
        [kept] = await house.app.files.images(house.owner, item_id)
        async with await browser(house, house.owner.person_id) as person:
            text = (await person.get(f"/items/{item_id}")).text
            source = text.partition('<img src="')[2] and f"/images/{kept.id}"
            assert source in text and web.url + "/in.png" not in text
            assert '<span class="caption">An otter &lt;b&gt;</span>' in text
            path = f"/items/{item_id}/images/{kept.id}"
            assert (await person.get(path)).headers["content-type"] == "image/webp"
        async with await browser(house, house.stranger.person_id) as other:
            assert (await other.get(path)).status_code == 404
        assert (
            await house.app.library._sources._pictures.of_text(f"![a]({web.url}/in.png)", 99, "")
            == ()
        )
