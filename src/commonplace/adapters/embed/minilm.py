"""The default embedder: all-MiniLM-L6-v2 on this machine's processor, with nothing to download and no key."""

import os
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from threading import Lock

import numpy as np
import onnxruntime as ort
from anyio import CapacityLimiter, Lock as Turn, to_thread
from tokenizers import Tokenizer

from commonplace.adapters.embed import minilm_model
from commonplace.adapters.embed.batches import clean, first, flat, regroup, require_own
from commonplace.adapters.model_packages import packaged
from commonplace.errors import ConfigurationError, EmbeddingFailed
from commonplace.ports import Vector, Vectors
from commonplace.settings import Settings

_BATCH_TOKENS = 256  # more at once are no faster, and a query waits for the batch that runs
_SLICE = 512  # texts tokenised at once
_BYTES = 20_000  # of a text; 256 tokens are far fewer


class LocalEmbedder:
    quick = False
    dimensions = minilm_model.DIMENSIONS
    stamp = f"local/{minilm_model.MODEL}/{minilm_model.DIMENSIONS}"

    def __init__(self, settings: Settings) -> None:
        require_own(settings, minilm_model.MODEL, minilm_model.DIMENSIONS)
        folder = packaged(minilm_model.PACKAGE, minilm_model.DISTRIBUTION) / "model"
        minilm_model.check_present(folder / "model.safetensors")
        self._model = _Model(settings, folder)
        # One inference at a time has the cores. Bulk work queues for its own turn first, so that of all the batches
        # waiting only one is ever ahead of a query.
        self._one = CapacityLimiter(1)
        self._bulk = Turn()

    async def documents(self, texts: Sequence[Sequence[str]]) -> list[Vectors]:
        passages = flat(texts)
        vectors = np.empty((len(passages), self.dimensions), np.float32)
        for start in range(0, len(passages), _SLICE):
            part = passages[start : start + _SLICE]
            tokens = await to_thread.run_sync(self._model.tokens, part)
            for batch in _batches(tokens):
                async with self._bulk:
                    found = await to_thread.run_sync(
                        self._model.run, [tokens[i] for i in batch], limiter=self._one
                    )
                vectors[[start + i for i in batch]] = found
        return regroup(vectors, texts)

    async def query(self, text: str) -> Vector:
        return first(
            await to_thread.run_sync(
                lambda: self._model.run(self._model.tokens([text])), limiter=self._one
            )
        )

    async def close(self) -> None:
        self._model.unload()


class _Model:
    """Tokeniser and session, loaded at first use by whichever thread is first."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self._folder = folder
        self._models = settings.data_dir / "models"
        self._threads = settings.embedder_threads or os.cpu_count() or 1
        self._lock = Lock()
        self._loaded: tuple[Tokenizer, ort.InferenceSession] | None = None

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        tokenizer, _ = self._load()
        return [
            encoding.ids
            for encoding in tokenizer.encode_batch_fast([clean(text, _BYTES) for text in texts])
        ]

    def run(self, tokens: Sequence[Sequence[int]]) -> Vectors:
        """Unit vectors of texts that have equally many tokens."""
        _, session = self._load()
        vectors: Vectors = session.run(None, {"ids": np.array(tokens, np.int32)})[0]
        return vectors

    def unload(self) -> None:
        with self._lock:
            self._loaded = None

    def _load(self) -> tuple[Tokenizer, ort.InferenceSession]:
        with self._lock:
            if self._loaded is None:
                try:
                    graph = minilm_model.ensure_graph(
                        self._folder / "model.safetensors", self._models
                    )
                    self._loaded = (
                        _tokenizer(self._folder / "tokenizer.json"),
                        _session(graph, self._threads),
                    )
                except (
                    ConfigurationError
                ) as error:  # the server runs by now, and words are found without a model
                    raise EmbeddingFailed(error.message) from error
            return self._loaded


def _tokenizer(file: Path) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_padding()
    tokenizer.enable_truncation(minilm_model.MAX_TOKENS)
    return tokenizer


def _session(graph: Path, threads: int) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    # Higher levels would fuse skip and layer norm again, into the slower operator.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's own errors have no common base
        raise ConfigurationError(
            f"The embedding model in {graph.parent} cannot be loaded; delete that folder, "
            f"and the next start builds it again. ({error})"
        ) from error


def _batches(tokens: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Places of texts that go through the model together: equally long, and few tokens in all."""
    order = sorted(range(len(tokens)), key=lambda place: len(tokens[place]))
    for length, places in groupby(order, key=lambda place: len(tokens[place])):
        rest = list(places)
        size = max(1, _BATCH_TOKENS // length)
        yield from (rest[start : start + size] for start in range(0, len(rest), size))
