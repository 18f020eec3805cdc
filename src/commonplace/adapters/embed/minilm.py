"""The default embedder: all-MiniLM-L6-v2 on this machine's processor, without a key."""

import os
from collections.abc import Sequence
from hashlib import file_digest
from pathlib import Path
from threading import Lock

import numpy as np
import onnxruntime as ort
from anyio import CapacityLimiter, Lock as Turn, to_thread

from commonplace.adapters.embed import minilm_onnx, packed_model
from commonplace.adapters.embed.batches import batch, clean, first, flat, regroup, require_own
from commonplace.adapters.embed.safetensors_file import read_index
from commonplace.adapters.embed.wordpiece import WordPiece
from commonplace.adapters.model_download import MINILM, find
from commonplace.errors import EmbeddingFailed
from commonplace.malloc_trim import release_memory
from commonplace.ports import Vector, Vectors
from commonplace.settings import Settings

MODEL, DIMENSIONS, MAX_TOKENS = "all-MiniLM-L6-v2", 384, 256
_FILE, _TABLE = "model.safetensors", "embeddings.word_embeddings.weight"
# Vectors of other weights could not be compared.
_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_BATCH_TOKENS = 256  # a query waits for the texts that run together
_SLICE = 512  # texts tokenized at once
_BYTES = 20_000  # of a text; 256 tokens are far fewer


class LocalEmbedder:
    quick = False
    dimensions = DIMENSIONS
    stamp = f"local/{MODEL}-int8/{DIMENSIONS}"

    def __init__(self, settings: Settings) -> None:
        require_own(settings, MODEL, DIMENSIONS)
        self._models = settings.data_dir / "models"
        self._threads = settings.threads or os.cpu_count() or 1
        self._lock = Lock()
        self._loaded: _Model | None = None
        # One inference at a time has the cores. Bulk work queues for its own turn first, so that
        # of all the batches waiting only one is ever ahead of a query.
        self._one = CapacityLimiter(1)
        self._bulk = Turn()

    async def documents(self, texts: Sequence[Sequence[str]]) -> list[Vectors]:
        passages = flat(texts)
        vectors = np.empty((len(passages), self.dimensions), np.float32)
        done = 0
        while done < len(passages):
            tokens = await to_thread.run_sync(self._tokens, passages[done : done + _SLICE])
            for run in batch(tokens, len, _BATCH_TOKENS, _SLICE):
                async with self._bulk:
                    vectors[done : done + len(run)] = await to_thread.run_sync(
                        self._run, run, limiter=self._one
                    )
                done += len(run)
        return regroup(vectors, texts)

    async def query(self, text: str) -> Vector:
        return first(
            await to_thread.run_sync(lambda: self._run(self._tokens([text])), limiter=self._one)
        )

    async def close(self) -> None:
        with self._lock:
            if self._loaded is not None:
                self._loaded.table.close()
            self._loaded = None

    def _tokens(self, texts: Sequence[str]) -> list[list[int]]:
        return [self._model().tokenizer.tokens(clean(text, _BYTES)) for text in texts]

    def _run(self, tokens: Sequence[Sequence[int]]) -> Vectors:
        return self._model().run(tokens)

    def _model(self) -> "_Model":
        """Load the model at first use: it may have been downloaded since the start."""
        with self._lock:
            if self._loaded is None:
                folder = find(MINILM, self._models)
                if folder is None:
                    raise EmbeddingFailed(f"The {MINILM.title} is not downloaded yet.")
                self._loaded = _Model(folder, self._models, self._threads)
                release_memory()  # the weights as they were before they were packed
            return self._loaded


class _Model:
    def __init__(self, folder: Path, cache: Path, threads: int) -> None:
        """`cache`: where the model is kept as it was made of the weights in `folder`."""
        try:
            index = read_index(folder / _FILE)
            self.tokenizer = WordPiece(folder / "vocab.txt", MAX_TOKENS)
            self.table, self._offset = (folder / _FILE).open("rb", 0), index[_TABLE].offset
            packed = packed_model.load(folder / _FILE, cache)
            if packed is None:
                _require_known(folder / _FILE)
                packed = minilm_onnx.build(index, folder / _FILE, DIMENSIONS)
                packed_model.save(packed, folder / _FILE, cache)
            self._session = _session(packed, threads)
        except Exception as error:  # onnxruntime's own errors have no common base
            raise EmbeddingFailed(
                f"The {MINILM.title} in {folder} is damaged. Delete that folder, "
                f"then run `commonplace setup`. ({error})"
            ) from error

    def run(self, tokens: Sequence[Sequence[int]]) -> Vectors:
        """Return unit vectors. Each text runs alone: see minilm_onnx.py."""
        return np.concatenate([self._one(text) for text in tokens])

    def _one(self, text: Sequence[int]) -> Vectors:
        rows = b"".join(map(self._row, text))
        given = np.frombuffer(rows, np.float32).reshape(1, -1, DIMENSIONS)
        vector: Vectors = self._session.run(None, {minilm_onnx.INPUT: given})[0]
        return vector

    def _row(self, number: int) -> bytes:
        """Read a token's vector from the file: in memory, the table would double the model."""
        return os.pread(self.table.fileno(), 4 * DIMENSIONS, self._offset + 4 * DIMENSIONS * number)


def _require_known(weights: Path) -> None:
    with weights.open("rb") as file:
        if file_digest(file, "sha256").hexdigest() != _SHA256:
            raise ValueError(f"{_FILE} is not that of {MODEL}")


def _session(model: bytes, threads: int) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    # Higher levels would fuse skip and layer norm again, into the slower operator.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
