"""Weights in the safetensors format: a JSON index of tensors, then their numbers."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_TYPES = {"F16": np.float16, "F32": np.float32}


@dataclass(frozen=True, slots=True)
class Stored:
    shape: tuple[int, ...]
    type: str
    offset: int  # from the beginning of the file


def read_index(file: Path) -> dict[str, Stored]:
    with file.open("rb") as source:
        size = int.from_bytes(source.read(8), "little")
        index = json.loads(source.read(size))
    index.pop("__metadata__", None)
    return {
        name: Stored(tuple(said["shape"]), said["dtype"], 8 + size + said["data_offsets"][0])
        for name, said in index.items()
    }


def read_tensor(file: Path, stored: Stored) -> NDArray[Any]:
    return np.memmap(file, _TYPES[stored.type], "r", stored.offset, stored.shape)
