"""Files made to hurt: each ends in a sentence, in bounded time, and the next file is read as if nothing had been."""

import io
import struct
import zipfile
import zlib
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from anyio import create_task_group, move_on_after
from PIL import Image

from commonplace.adapters.extract import Caps, FileExtractor
from commonplace.errors import IngestFailed
from tests.contract.test_extract import pdf

pytestmark = pytest.mark.anyio

SAMPLES = Path(__file__).parents[1] / "samples"
WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


@pytest.fixture(scope="module")
async def extractor(anyio_backend: str) -> AsyncIterator[FileExtractor]:
    extractor = FileExtractor()
    yield extractor
    await extractor.close()


@pytest.fixture(scope="module")
async def strict(anyio_backend: str) -> AsyncIterator[FileExtractor]:
    extractor = FileExtractor(processes=1, caps=Caps(unpacked_megabytes=5))
    yield extractor
    await extractor.close()


async def refused(extractor: FileExtractor, path: Path, declared: str = "") -> str:
    with pytest.raises(IngestFailed) as failed:
        await extractor.extract(path, declared)
    await still_works(extractor)
    return failed.value.message


async def still_works(extractor: FileExtractor) -> None:
    assert "heron" in (await extractor.extract(SAMPLES / "notes.docx", "")).text


def docx(path: Path, document: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", document)
    return path


async def test_a_zip_bomb(strict, tmp_path) -> None:
    assert "larger than 5 MB when unpacked" in await refused(
        strict, docx(tmp_path / "bomb.docx", b" " * 6_000_000)
    )


async def test_a_zip_bomb_that_lies_about_its_size(strict, tmp_path) -> None:
    path = docx(tmp_path / "liar.docx", b" " * 6_000_000)
    path.write_bytes(
        path.read_bytes().replace(struct.pack("<I", 6_000_000), struct.pack("<I", 1000))
    )
    assert "damaged" in await refused(strict, path)


async def test_a_billion_laughs(extractor, tmp_path) -> None:
    entities = '<!ENTITY a0 "ha">' + "".join(
        f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12)
    )
    laugh = f"<!DOCTYPE x [{entities}]><w:document {WORD}><w:body><w:p><w:r><w:t>&a11;</w:t></w:r></w:p></w:body></w:document>"
    assert await refused(extractor, docx(tmp_path / "laughs.docx", laugh.encode()))


async def test_a_file_named_in_an_entity_is_not_read(extractor, tmp_path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the password")
    text = (
        f'<!DOCTYPE x [<!ENTITY e SYSTEM "{secret.as_uri()}">]><w:document {WORD}><w:body><w:p><w:r><w:t>open &e; text</w:t>'
        "</w:r></w:p></w:body></w:document>"
    )
    found = await extractor.extract(docx(tmp_path / "curious.docx", text.encode()), "")
    assert "open" in found.text and "password" not in found.text


async def test_deeply_nested_xml(extractor, tmp_path) -> None:
    deep = f"<w:document {WORD}><w:body>{'<w:sdt>' * 100_000}".encode()
    assert "damaged" in await refused(extractor, docx(tmp_path / "deep.docx", deep))


async def test_an_image_that_claims_to_be_huge(extractor, tmp_path) -> None:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", 100_000, 100_000, 8, 0, 0, 0, 0)
    path = tmp_path / "huge.png"
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\x00" * 1000))
        + chunk(b"IEND", b"")
    )
    assert "larger than 60 megapixels" in await refused(extractor, path)


async def test_a_pdf_that_claims_too_many_pages(extractor, tmp_path) -> None:
    path = tmp_path / "long.pdf"
    path.write_bytes(
        b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n2 0 obj\n<< /Type /Pages /Kids [3 0 R] "
        b"/Count 100000 >>\nendobj\n3 0 obj\n<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] >>\nendobj\n"
        b"trailer << /Root 1 0 R >>\n%%EOF\n"
    )
    assert "100,000 pages; the limit is 5,000" in await refused(extractor, path)


@pytest.mark.parametrize("name", ["notes.docx", "levels.pptx", "birds.xlsx", "scanned.pdf"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
async def test_truncated_documents(extractor, tmp_path, name, share) -> None:
    """A PDF may still show what is left of it; nothing else happens than that, or a sentence."""
    whole = (SAMPLES / name).read_bytes()
    path = tmp_path / name
    path.write_bytes(whole[: int(len(whole) * share)])
    if name == "scanned.pdf":
        try:
            assert (await extractor.extract(path, "")).text
        except IngestFailed as failed:
            assert "PDF" in failed.message
        await still_works(extractor)
    else:
        assert "zip archive" in await refused(extractor, path)


@pytest.mark.parametrize("kind", ["png", "jpeg", "webp", "tiff", "gif", "bmp"])
async def test_truncated_images(extractor, tmp_path, kind) -> None:
    whole = io.BytesIO()
    Image.effect_noise((200, 200), 90).convert("RGB").save(whole, kind)
    path = tmp_path / f"half.{kind}"
    path.write_bytes(whole.getvalue()[: len(whole.getvalue()) // 2])
    assert "image" in await refused(extractor, path)


@pytest.mark.parametrize(
    ("magic", "reason"),
    [
        (b"%PDF-1.7\n", "damaged"),
        (b"\x89PNG\r\n\x1a\n", "damaged"),
        (b"PK\x03\x04", "zip archive"),
        (b"\xff\xd8\xff\xe0", "damaged"),
        (b"II*\x00", "damaged"),
    ],
)
async def test_the_right_beginning_and_then_noise(extractor, tmp_path, magic, reason) -> None:
    path = tmp_path / "noise"
    path.write_bytes(magic + bytes(range(256)) * 400)
    assert reason in await refused(extractor, path)


async def test_a_page_of_fifty_megabytes(extractor, tmp_path) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(b"<!DOCTYPE html><html>" + b"<div>" * 10_000_000)
    assert "larger than 20 MB" in await refused(extractor, path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "tag", ["<div>", "<b>", "<table><tr><td>", "<ul><li>", "<p class=x id=y>a", "&lt;<!--"]
)
async def test_a_page_of_nested_tags(extractor, tmp_path, tag) -> None:
    path = tmp_path / "page.html"
    path.write_text("<!DOCTYPE html><html><body>" + tag * (5_000_000 // len(tag)))
    try:
        await extractor.extract(path, "text/html")
    except IngestFailed as failed:
        assert failed.message.endswith(".") and "Error" not in failed.message, failed.message
    await still_works(extractor)


async def test_a_file_that_takes_too_long_is_given_up(tmp_path) -> None:
    Image.effect_noise((600, 600), 90).save(tmp_path / "noise.png")
    hasty = FileExtractor(processes=1, caps=Caps(seconds=0.05))
    with pytest.raises(IngestFailed, match=r"longer than 0.05 s"):
        await hasty.extract(tmp_path / "noise.png", "")
    await hasty.close()


@pytest.mark.slow
async def test_a_file_that_needs_too_much_memory_is_given_up(tmp_path) -> None:
    Image.new("RGB", (7000, 7000), "white").save(tmp_path / "large.png")
    small = FileExtractor(processes=1, caps=Caps(megabytes=350))
    with pytest.raises(IngestFailed, match=r"memory|could not be read"):
        await small.extract(tmp_path / "large.png", "")
    await still_works(small)
    await small.close()


async def test_a_reader_that_has_gone_is_replaced() -> None:
    extractor = FileExtractor(processes=1)
    await still_works(extractor)
    (reader,) = psutil.Process().children()[-1:]
    reader.kill()
    await still_works(extractor)
    await extractor.close()


async def test_no_more_files_are_read_at_once_than_was_said(tmp_path) -> None:
    before = {child.pid for child in psutil.Process().children()}
    extractor = FileExtractor(processes=2)
    async with create_task_group() as tasks:
        for _ in range(6):
            tasks.start_soon(still_works, extractor)
    assert len({child.pid for child in psutil.Process().children()} - before) == 2
    await extractor.close()
    assert not {child.pid for child in psutil.Process().children()} - before


async def test_a_caller_who_leaves_takes_the_reader_along(tmp_path) -> None:
    Image.effect_noise((2000, 2000), 90).save(tmp_path / "noise.png")
    before = {child.pid for child in psutil.Process().children()}
    extractor = FileExtractor(processes=1)
    with move_on_after(0.3):
        await extractor.extract(tmp_path / "noise.png", "")
        pytest.fail("it was read before it could be given up")
    assert not {child.pid for child in psutil.Process().children()} - before
    await still_works(extractor)
    await extractor.close()


async def test_the_readers_do_not_see_our_keys(monkeypatch) -> None:
    monkeypatch.setenv("COMMONPLACE_EMBEDDER_KEY", "a-secret-key")
    fresh = FileExtractor(processes=1)
    await still_works(fresh)
    around = environments_of_children()
    await fresh.close()
    assert around
    assert not any(b"a-secret-key" in each for each in around)


def environments_of_children() -> list[bytes]:
    return [
        Path(f"/proc/{child.pid}/environ").read_bytes() for child in psutil.Process().children()
    ]


async def test_a_reader_of_a_large_server_is_kept_for_the_next_file() -> None:
    """What the server has grown to is not the reader's own size."""
    ballast = bytearray(600_000_000)
    ballast[::4096] = b"x" * len(ballast[::4096])
    before = {child.pid for child in psutil.Process().children()}
    extractor = FileExtractor(processes=1)
    await still_works(extractor)
    assert len({child.pid for child in psutil.Process().children()} - before) == 1
    await extractor.close()
    del ballast


async def test_pages_are_drawn_within_bounds(extractor, tmp_path) -> None:
    page = tmp_path / "page.pdf"
    for box in ("0 0 612 792", "0 0 14400 1", "0 0 1 14400", "0 0 99999999 99999999", "5 5 5 5"):
        page.write_bytes(pdf([["The heron waits."]]).replace(b"0 0 612 792", box.encode()))
        with suppress(IngestFailed):  # some are refused
            width, height = Image.open(io.BytesIO(await extractor.draw_page(page, 1))).size
            assert width <= 1_100 and width * height <= 4_100_000, box
    for data in (b"", b"%PDF-1.4\n" + b"\xff" * 2_000, b"<html>", pdf([["One"]])[:200]):
        page.write_bytes(data)
        with pytest.raises(IngestFailed):
            await extractor.draw_page(page, 1)
    with pytest.raises(IngestFailed, match="encrypted"):
        await extractor.draw_page(SAMPLES / "encrypted.pdf", 1)
    page.write_bytes(pdf([["One"], ["Two"]]))
    for number in (0, 3, -1, 2**40):
        with pytest.raises(IngestFailed, match="has 2 pages"):
            await extractor.draw_page(page, number)
    with Image.open(io.BytesIO(await extractor.draw_page(page, 2))) as drawn:
        assert (drawn.format, drawn.size, drawn.mode) == ("PNG", (1_100, 1_424), "RGB")
        assert drawn.getextrema() == ((0, 255),) * 3  # black on white
    await still_works(extractor)
