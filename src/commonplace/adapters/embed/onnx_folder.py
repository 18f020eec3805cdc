"""Any sentence-transformers model in ONNX form: a folder with the model and its tokenizer."""

import json
import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import onnxruntime as ort
from anyio import CapacityLimiter, Lock as Turn, to_thread

from commonplace.adapters.embed.batches import clean, first, flat, regroup, require_own, unit
from commonplace.errors import ConfigurationError, EmbeddingFailed, extra
from commonplace.ports import Vector, Vectors
from commonplace.settings import Settings

_MODELS = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx")
_CONFIGS = (
    "config.json",
    "config_sentence_transformers.json",
    "sentence_bert_config.json",
    "1_Pooling/config.json",
)
_TOKENIZER = "tokenizer.json"
_TOKENS = 512  # where the model does not say how many it reads
_BYTES = 40_000
# What models whose files name no prompts were trained with: query, passage.
_E5 = ("query: ", "passage: ")
_BGE = ("Represent this sentence for searching relevant passages: ", "")
_FAMILIES = {"e5-": _E5, "bge-small-en": _BGE, "bge-base-en": _BGE, "bge-large-en": _BGE}


class OnnxEmbedder:
    quick = False

    def __init__(self, settings: Settings) -> None:
        with extra("onnx", "The onnx embedder"):
            import tokenizers  # noqa: F401
        self._folder = Path(settings.embedder_model).expanduser()
        self._file = next((self._folder / n for n in _MODELS if (self._folder / n).is_file()), None)
        if not settings.embedder_model or self._file is None:
            raise ConfigurationError(
                f"There is no ONNX model in {settings.embedder_model!r}. Set "
                "COMMONPLACE_EMBEDDER_MODEL to a folder with model.onnx (or onnx/model.onnx)."
            )
        if not (self._folder / _TOKENIZER).is_file():
            raise ConfigurationError(f"{self._folder / _TOKENIZER} is missing.")
        model, prompts, sentences, pooling = (self._read(name) for name in _CONFIGS)
        if "hidden_size" not in model:
            raise ConfigurationError(f"{self._folder / _CONFIGS[0]} has no hidden_size.")
        self.dimensions = int(model["hidden_size"])
        require_own(settings, settings.embedder_model, self.dimensions)
        self._first_token = bool(pooling.get("pooling_mode_cls_token", False))
        most = sentences.get("max_seq_length") or model.get("max_position_embeddings") or _TOKENS
        self._most = min(int(most), _TOKENS)
        name = self._folder.resolve().name
        plain = name.lower().replace("_", "-")
        known = next((pair for part, pair in _FAMILIES.items() if part in plain), ("", ""))
        given = prompts.get("prompts") or {}
        self._prompts = (
            given.get("query", known[0]),
            given.get("document", given.get("passage", known[1])),
        )
        # Other weights, pooling or prompts give vectors that cannot be compared.
        told = [self._file.stat().st_size, self._first_token, self._most, *self._prompts]
        digest = sha256(json.dumps(told).encode() + (self._folder / _TOKENIZER).read_bytes())
        self.stamp = f"onnx/{name}-{digest.hexdigest()[:8]}/{self.dimensions}"
        self._threads = settings.threads or os.cpu_count() or 1
        self._lock = Lock()
        self._loaded: tuple[Any, ort.InferenceSession] | None = None
        self._one, self._bulk = CapacityLimiter(1), Turn()  # as in minilm.py

    async def documents(self, texts: Sequence[Sequence[str]]) -> list[Vectors]:
        found = [np.empty((0, self.dimensions), np.float32)]
        for text in flat(texts):
            async with self._bulk:
                found.append(
                    await to_thread.run_sync(
                        self._embed, self._prompts[1] + text, limiter=self._one
                    )
                )
        return regroup(np.concatenate(found), texts)

    async def query(self, text: str) -> Vector:
        return first(
            await to_thread.run_sync(self._embed, self._prompts[0] + text, limiter=self._one)
        )

    async def close(self) -> None:
        self._loaded = None

    def _read(self, name: str) -> dict[str, Any]:
        file = self._folder / name
        try:
            found = json.loads(file.read_bytes()) if file.is_file() else {}
        except ValueError as error:
            raise ConfigurationError(f"{file} is not JSON: {error}") from None
        return found if isinstance(found, dict) else {}

    def _embed(self, text: str) -> Vectors:
        """Embed one text alone: no padding, and its vector does not depend on others."""
        tokenizer, session = self._load()
        ids = np.array([tokenizer.encode(clean(text, _BYTES)).ids], np.int64)
        given = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        given["token_type_ids"] = np.zeros_like(ids)
        named = [each.name for each in session.get_inputs()]
        hidden = session.run(None, {name: given[name] for name in named})[0]
        if hidden.ndim == 3:  # else the model pools
            hidden = hidden[:, 0] if self._first_token else hidden.mean(axis=1)
        return unit(np.asarray(hidden, np.float32))

    def _load(self) -> tuple[Any, ort.InferenceSession]:
        from tokenizers import Tokenizer

        with self._lock:
            if self._loaded is None:
                options = ort.SessionOptions()
                options.intra_op_num_threads = self._threads
                options.add_session_config_entry("session.intra_op.allow_spinning", "0")
                try:
                    tokenizer = Tokenizer.from_file(str(self._folder / _TOKENIZER))
                    tokenizer.no_padding()
                    tokenizer.enable_truncation(self._most)
                    self._loaded = (
                        tokenizer,
                        ort.InferenceSession(
                            str(self._file), options, providers=["CPUExecutionProvider"]
                        ),
                    )
                except Exception as error:  # neither library has a common base of its errors
                    raise EmbeddingFailed(
                        f"The model in {self._folder} cannot be loaded: {error}"
                    ) from error
            return self._loaded
