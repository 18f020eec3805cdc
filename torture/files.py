"""Damaged files by upload: read or refused in words, and the server does not notice."""

import mimetypes
from collections.abc import Iterator
from contextlib import contextmanager

from tests.mutations import mutated, originals
from torture.harness import Part, Play, Round, Stage, require
from torture.server import Place, in_words

GROWN_MB = 100.0
UNKNOWN = "application/octet-stream"
GOOD = b"# Kingfisher\n\nThe kingfisher dives, and this file is whole."


@contextmanager
def open_files(stage: Stage) -> Iterator[Play]:
    whole = originals()
    with Place(stage.folder / "data").serve() as server:
        for name, content in whole.items():  # readers and caches are warm before memory is measured
            server.upload(name, UNKNOWN, content)
        with server.watch(stage.vitals):

            def play(round: Round) -> None:
                name = round.random.choice(list(whole))
                declared = mimetypes.guess_type(name)[0] if round.random.random() < 0.7 else None
                content = mutated(whole[name], round.random)
                if not content:
                    return
                answer = server.upload(name, declared or UNKNOWN, content)
                if not answer.is_success:
                    require(
                        answer.status_code < 500,
                        f"{name}: {answer.status_code} {answer.text[:300]}",
                    )
                    in_words(answer)

            yield play
        again = server.upload("good.md", "text/markdown", GOOD)
        require(
            again.is_success and server.search("kingfisher"),
            f"A good file is not read afterwards: {again.text[:300]}",
        )
        stage.require_calm(GROWN_MB)


PART = Part("files", rounds=400, long_rounds=1_000_000, share=1, open=open_files, at_once=2)
