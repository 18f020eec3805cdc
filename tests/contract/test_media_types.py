"""What a file is, whatever it is called."""

import zipfile
from pathlib import Path

import pytest

from commonplace.adapters.extract.media_type import sniff

SAMPLES = Path(__file__).parents[1] / "samples"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"%PDF-1.7\n", "application/pdf"),
        (b"junk before\n%PDF-1.4\n", "application/pdf"),
        (b"\x89PNG\r\n\x1a\n\x00", "image/png"),
        (b"\xff\xd8\xff\xe0\x00", "image/jpeg"),
        (b"GIF89a\x00", "image/gif"),
        (b"RIFF\x01\x02\x03\x04WEBPVP8 ", "image/webp"),
        (b"II*\x00\x08\x00", "image/tiff"),
        (b"ID3\x04\x00", "audio/mpeg"),
        (b"\xff\xfb\x90\x00", "audio/mpeg"),
        (b"\xff\xf1\x50\x80", "audio/aac"),
        (b"fLaC\x00", "audio/flac"),
        (b"OggS\x00\x02", "audio/ogg"),
        (b"RIFF\x01\x02\x03\x04WAVEfmt ", "audio/wav"),
        (b"\x00\x00\x00\x20ftypM4A \x00", "audio/mp4"),
        (b"\x00\x00\x00\x20ftypisom\x00", "video/mp4"),
        (b"\x1aE\xdf\xa3\x00\x00B\x82\x84webm", "video/webm"),
        (b"<!DOCTYPE html><html>", "text/html"),
        (b"\xef\xbb\xbf\n<HTML lang=en>", "text/html"),
        (b"<?xml version='1.0'?>\n<!-- x -->\n<rss version='2.0'>", "application/rss+xml"),
        (
            b'<?xml version="1.0"?><!DOCTYPE rss SYSTEM "rss-0.91.dtd">\n<rss version="0.91">',
            "application/rss+xml",
        ),
        (b"<?xml version='1.0'?><!-- a --><?b?><!DOCTYPE  html>", "text/html"),
        (b"<?a?>" * 40, "text/plain"),
        (b"<!-- " * 500, "text/plain"),
        (b"<?a?> <!-- b -->\n" * 200, "text/plain"),
        (b"<?xml ?>" * 60 + b"<feed>", "application/atom+xml"),
        (b"<feed xmlns='http://www.w3.org/2005/Atom'>", "application/atom+xml"),
        (b'{"version": "https://jsonfeed.org/version/1.1", "items": []}', "application/feed+json"),
        (b"WEBVTT\n\n00:01.000 --> 00:02.000\nHi", "text/vtt"),
        (b"1\r\n00:00:01,000 --> 00:00:02,000\r\nHi", "application/x-subrip"),
        (b"just words", "text/plain"),
        ("näher".encode("utf-16"), "text/plain"),
        (b"\x00\x01\x02\x03", "application/octet-stream"),
        (b"", "text/plain"),
    ],
)
def test_the_bytes_decide(tmp_path, data, kind) -> None:
    (tmp_path / "file").write_bytes(data)
    assert sniff(tmp_path / "file") == kind


@pytest.mark.parametrize(
    ("data", "declared", "name", "kind"),
    [
        (b"%PDF-1.7\n", "image/png", "photo.png", "application/pdf"),  # lies do not help
        (b"just words", "image/png", "photo.png", "text/plain"),
        (b"\x00\x01\x02", "application/pdf", "a.pdf", "application/octet-stream"),
        (b"# Title", "text/plain", "a.md", "text/markdown"),  # the vaguer word gives way
        (b"# Title", "text/markdown; charset=utf-8", "a.txt", "text/markdown"),
        (b"# Title", "", "README.MD", "text/markdown"),
        (b"<p>Hello", "text/html", "", "text/html"),
        (b"<html>", "text/markdown", "a.md", "text/markdown"),
        (b"a,b", "application/octet-stream", "a.csv", "text/csv"),
        (b"\x00\x00\x00\x20ftypisom\x00", "audio/x-m4a", "a.m4a", "audio/mp4"),
        (b"\x12\x00\x99", "audio/mp3", "", "audio/mpeg"),  # cut out of a stream
        (b"\x12\x00\x99", "", "talk.MP3", "audio/mpeg"),
    ],
)
def test_then_what_was_declared_then_the_name(tmp_path, data, declared, name, kind) -> None:
    (tmp_path / "file").write_bytes(data)
    assert sniff(tmp_path / "file", declared, name) == kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("notes.docx", "wordprocessingml.document"),
        ("levels.pptx", "presentationml.presentation"),
        ("birds.xlsx", "spreadsheetml.sheet"),
    ],
)
def test_office_files_are_told_apart_by_what_is_in_them(tmp_path, name, kind) -> None:
    (tmp_path / "upload").write_bytes((SAMPLES / name).read_bytes())
    assert sniff(tmp_path / "upload", "application/zip", "a.zip").endswith(kind)


def test_an_archive_is_an_archive_whatever_it_is_called(tmp_path) -> None:
    with zipfile.ZipFile(tmp_path / "a.docx", "w") as archive:
        archive.writestr("readme.txt", "hello")
    assert sniff(tmp_path / "a.docx") == "application/zip"
