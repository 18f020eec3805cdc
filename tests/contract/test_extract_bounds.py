"""What a single file can cost: text, processor time, the turns of others, and processes that outlive their server."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil
import pytest
from anyio import create_task_group, fail_after, to_thread
from anyio.lowlevel import checkpoint
from PIL import Image

from commonplace.adapters.extract import Caps, FileExtractor, media_type
from commonplace.adapters.extract.input_file import LONGEST_TEXT
from commonplace.errors import IngestFailed
from tests.mutations import docx, epub, mutants, pdf, xlsx

pytestmark = pytest.mark.anyio

PARAGRAPH = "<w:p><w:r><w:t>" + "The heron waits for eels at the weir. " * 25 + "</w:t></w:r></w:p>"


@pytest.fixture(scope="module")
async def extractor(anyio_backend: str) -> AsyncIterator[FileExtractor]:
    extractor = FileExtractor()
    yield extractor
    await extractor.close()


def file(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


# -- what it is


async def test_what_a_file_is_is_found_out_by_a_reader(extractor, tmp_path, monkeypatch) -> None:
    monkeypatch.delattr(media_type, "sniff")  # of this process; the readers have their own
    assert await extractor.detect_type(file(tmp_path / "a", b"<?a?>" * 40)) == "text/plain"
    assert (
        await extractor.detect_type(file(tmp_path / "b", b"<!-- a --><?b?><html>")) == "text/html"
    )


# -- text


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.docx", docx(PARAGRAPH * 8_000)),
        ("a.txt", b"heron " * 1_000_000),
        ("a.md", "鷺 ".encode() * 1_500_000),
        (
            "a.xlsx",
            xlsx(f'<row><c t="inlineStr"><is><t>{"heron " * 10_000}</t></is></c></row>' * 100),
        ),
        ("a.epub", epub("<html><body><p>" + "heron " * 50_000 + "</p></body></html>", times=200)),
        (
            "a.html",
            b"<html><body>"
            + b"<p>The heron waits for eels at the weir, and so do I.</p>" * 110_000,
        ),
        (
            "a.srt",
            b"".join(
                b"%d\n%02d:%02d:%02d,000 --> 99:59:59,000\n%s\n\n"
                % (n, n // 360, n // 6 % 60, n * 10 % 60, b"heron %d " % n * 80)
                for n in range(10_000)
            ),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_text_is_cut_at_five_megabytes(extractor, tmp_path, name, data) -> None:
    found = await extractor.extract(file(tmp_path / name, data), "", name=name)
    assert found.truncated
    assert LONGEST_TEXT - 4 <= len(found.text.encode()) <= LONGEST_TEXT
    assert all(mark.at < len(found.text) for mark in found.marks)
    assert len(found.marks) <= 20_000


async def test_a_text_file_larger_than_can_be_read_at_once_is_cut_too(extractor, tmp_path) -> None:
    found = await extractor.extract(file(tmp_path / "a.txt", b"heron " * 4_000_000), "")
    assert (found.truncated, len(found.text)) == (True, LONGEST_TEXT)


async def test_shorter_texts_are_whole(extractor, tmp_path) -> None:
    found = await extractor.extract(file(tmp_path / "a.txt", b"heron " * 800_000), "")
    assert (found.truncated, len(found.text)) == (False, 4_800_000)


# -- tables


@pytest.mark.parametrize(
    "row",
    [
        '<row><c r="ALK1"><v>7</v></c></row>',
        '<row><c r="XFD1048576"><v>7</v></c></row>',
        '<row><c r="ZZZZ1"><v>7</v></c></row>',
    ],
)
async def test_cells_in_far_columns_are_not_padded(extractor, tmp_path, row) -> None:
    found = await extractor.extract(file(tmp_path / "a.xlsx", xlsx(row * 5_000)), "")
    assert found.text.count("7") == 5_000
    assert len(found.text) < 10 * 5_000


async def test_cells_that_share_neither_row_nor_column_are_not_padded(extractor, tmp_path) -> None:
    column = lambda n: chr(65 + n // 676) + chr(65 + n // 26 % 26) + chr(65 + n % 26)  # noqa: E731
    rows = "".join(f'<row><c r="{column(n)}1"><v>{n + 10_000}</v></c></row>' for n in range(5_000))
    found = await extractor.extract(file(tmp_path / "a.xlsx", xlsx(rows)), "")
    assert "14999" in found.text
    assert len(found.text) < 10 * 5_000


async def test_blanks_in_cells_push_nothing_out(extractor, tmp_path) -> None:
    blank = f'<row><c t="inlineStr"><is><t>heron{" " * 60_000}</t></is></c></row>'
    last = '<row><c t="inlineStr"><is><t>the last\n\nrow</t></is></c></row>'
    found = await extractor.extract(file(tmp_path / "a.xlsx", xlsx(blank * 100 + last)), "")
    assert "| the last row |" in found.text and not found.truncated


async def test_rows_are_not_padded_to_the_longest(extractor, tmp_path) -> None:
    cell = "<w:tc><w:p><w:r><w:t>x</w:t></w:r></w:p></w:tc>"
    rows = f"<w:tr>{cell * 60}</w:tr>" + f"<w:tr>{cell}</w:tr>" * 3_000
    found = await extractor.extract(file(tmp_path / "a.docx", docx(f"<w:tbl>{rows}</w:tbl>")), "")
    assert found.text.count("x") == 3_060
    assert len(found.text) < 10 * 3_060


async def test_tables_in_tables_are_read_once(extractor, tmp_path) -> None:
    body = "<w:p><w:r><w:t>heron</w:t></w:r></w:p>"
    for _ in range(40):
        body = f"<w:tbl><w:tr><w:tc>{body}</w:tc></w:tr></w:tbl>"
    found = await extractor.extract(file(tmp_path / "a.docx", docx(body)), "")
    assert found.text.count("heron") == 1


@pytest.mark.parametrize(
    "cell",
    ["<td colspan=1000 rowspan=1000>", "<td colspan=99999999999999999999>", "<td rowspan=100>"],
)
async def test_merged_cells_of_a_page_are_not_padded(extractor, tmp_path, cell) -> None:
    page = f"<html><body><article><p>{'The heron waits. ' * 30}</p><table>{f'<tr>{cell}x' * 2_000}</table></article></body></html>"
    found = await extractor.extract(file(tmp_path / "a.html", page.encode()), "")
    assert "The heron waits." in found.text
    assert len(found.text) < 5 * len(page)


# -- time


async def test_a_page_of_unclosed_tags_is_read(tmp_path) -> None:
    """Looking for the article in it takes longer than the time that one file has."""
    one = FileExtractor(processes=1)
    found = await one.extract(
        file(tmp_path / "a.html", b"<html><body>" + b"<p>x<b>y<i>z " * 60_000), ""
    )
    await one.close()
    assert found.text.count("z") == 60_000


async def test_a_long_document_is_read(extractor, tmp_path) -> None:
    found = await extractor.extract(file(tmp_path / "a.pdf", pdf(500)), "")
    assert "does not move. 499" in found.text
    assert len(found.marks) == 500


async def test_a_file_that_takes_too_much_processor_time_is_given_up(tmp_path) -> None:
    hasty = FileExtractor(processes=1, caps=Caps(cpu_seconds=1))
    slow = file(tmp_path / "slow.html", b"<html><body>" + b"<p>x<b>y<i>z " * 30_000)
    with pytest.raises(IngestFailed, match=r"more than 1 s of processor time"):
        await hasty.extract(slow, "")
    assert (
        await hasty.extract(file(tmp_path / "a.txt", b"The heron waits."), "")
    ).text == "The heron waits."
    await hasty.close()


async def test_images_have_a_time_of_their_own(tmp_path) -> None:
    page = Image.effect_noise((1500, 1500), 90)
    page.save(tmp_path / "noise.tiff", save_all=True, append_images=[page] * 39)
    hasty = FileExtractor(processes=1, caps=Caps(ocr_cpu_seconds=1))
    with pytest.raises(IngestFailed, match=r"1 s for scans and images"):
        await hasty.extract(tmp_path / "noise.tiff", "")
    await hasty.close()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such limit")
def test_a_reader_has_that_time_for_every_file() -> None:
    """However much it has used for files before."""
    script = """import time
from commonplace.adapters.extract.process_limits import limit_cpu
def work(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass
for _ in range(4):
    limit_cpu(1)
    work(0.8)
print("four files", flush=True)
work(5)
print("one too long")
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("four files\n", -signal.SIGXCPU)


# -- turns


async def test_many_files_of_one_caller_delay_others_by_one(tmp_path) -> None:
    one, order = FileExtractor(processes=1), []
    pipes = [tmp_path / f"pipe{n}" for n in range(3)]
    for pipe in pipes:
        os.mkfifo(pipe)

    async def ask(path: Path, queue: str) -> None:
        await one.detect_type(path, queue=queue)
        order.append(f"{queue} {path.name}")

    async def send(pipe: Path) -> None:
        """To the reader that waits for it."""
        await to_thread.run_sync(pipe.write_bytes, b"words")

    with fail_after(60):
        async with create_task_group() as tasks:
            for pipe in pipes:
                tasks.start_soon(ask, pipe, "ann")
                await checkpoint()
            small = file(tmp_path / "small", b"words")
            for queue in ("bob", "cat"):
                tasks.start_soon(ask, small, queue)
                await checkpoint()
            for pipe in pipes:
                await send(pipe)
    await one.close()
    assert order == ["ann pipe0", "ann pipe1", "bob small", "cat small", "ann pipe2"]


async def test_who_leaves_the_queue_leaves_no_gap(tmp_path) -> None:
    one = FileExtractor(processes=1)
    os.mkfifo(tmp_path / "pipe")
    small = file(tmp_path / "small", b"words")
    with fail_after(60):
        async with create_task_group() as tasks:
            tasks.start_soon(partial(one.detect_type, tmp_path / "pipe", queue="ann"))
            await checkpoint()
            async with create_task_group() as leaving:
                leaving.start_soon(partial(one.detect_type, small, queue="bob"))
                leaving.start_soon(partial(one.detect_type, small, queue="cat"))
                await checkpoint()
                leaving.cancel_scope.cancel()
            tasks.start_soon(partial(one.detect_type, small, queue="dan"))
            await to_thread.run_sync((tmp_path / "pipe").write_bytes, b"words")
        assert await one.detect_type(small, queue="eve") == "text/plain"
    await one.close()


# -- processes


@pytest.mark.skipif(
    sys.platform != "linux", reason="others notice it when they ask for the next file"
)
def test_a_reader_at_work_dies_with_its_server(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe")
    server = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import asyncio, pathlib, sys\nfrom commonplace.adapters.extract import FileExtractor\n"
            "asyncio.run(FileExtractor().extract(pathlib.Path(sys.argv[1]), ''))",
            str(tmp_path / "pipe"),
        ]
    )
    with (tmp_path / "pipe").open(
        "wb"
    ):  # opens when the reader has opened it too, and it then waits for its bytes
        readers = psutil.Process(server.pid).children()
        server.send_signal(signal.SIGKILL)
        server.wait()
        _, alive = psutil.wait_procs(readers, timeout=20)
        for reader in alive:
            reader.kill()
    assert readers
    assert not alive


# -- anything


@pytest.mark.parametrize("seed", range(2))
async def test_damaged_files_are_read_or_refused(extractor, tmp_path, seed) -> None:
    """Nothing else happens. `make torture` does the same for longer."""
    for number, (name, data) in enumerate(mutants(seed, 40)):
        path = file(tmp_path / f"{number}-{name}", data)
        try:
            found = await extractor.extract(path, "", name=name)
        except IngestFailed as failed:
            assert failed.message.endswith(".") and "Error" not in failed.message, failed.message
        else:
            assert len(found.text.encode()) <= LONGEST_TEXT
            assert len(found.title) <= 300
        if name.startswith("feed"):
            with suppress(IngestFailed):
                assert await extractor.parse_feed(path, "https://example.com/")
    assert (
        "heron" in (await extractor.extract(file(tmp_path / "a.txt", b"The heron waits."), "")).text
    )
