"""all-MiniLM-L6-v2 as an ONNX model with matrices of 8-bit integers, made from its weights.

One text goes in at a time, as the vectors of its tokens: no padding, no mask, and the table of
tokens, half of the weights, stays out of memory. What goes into a matrix is scaled by its largest
number, so that in company a text would get another vector. The format is written here because the
`onnx` package takes 31 MB.
"""

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.adapters.embed.safetensors_file import Stored, read_tensor

FORMAT = 1  # changes with what `build` makes of the same weights
INPUT = "tokens"
_LAYERS, _HEADS = 6, 12
# Processors without VNNI add products of two pairs in 16 bits: a 7-bit weight cannot overflow them,
# so that all processors compute the same sums.
_LARGEST = 63
_CONTRIB = "com.microsoft"
_FLOAT = 1
_TYPES = {np.dtype(np.float32): _FLOAT, np.dtype(np.int8): 3, np.dtype(np.int64): 7}
Field = tuple[int, int | float | str | bytes]


class _Graph:
    """Collects nodes and tensors, in protobuf's encoding."""

    def __init__(self, index: Mapping[str, Stored], file: Path) -> None:
        self.nodes: list[bytes] = []
        self.tensors: list[bytes] = []
        self._index, self._file = index, file

    def read(self, *names: str) -> NDArray[np.float32]:
        """Return weights one below the other."""
        return np.concatenate([read_tensor(self._file, self._index[name]) for name in names])

    def tensor(self, array: NDArray[Any]) -> str:
        name = f"tensor_{len(self.tensors)}"
        self.tensors.append(
            _message(
                *((1, size) for size in array.shape),
                (2, _TYPES[array.dtype]),
                (8, name),
                (9, array.tobytes()),
            )
        )
        return name

    def weight(self, *names: str) -> str:
        return self.tensor(self.read(*names))

    def number(self, value: int) -> str:
        return self.tensor(np.array([value], np.int64))

    def product(self, inner: str, *names: str) -> str:
        """Multiply with the matrices side by side, each column on its own scale."""
        columns = self.read(*(f"{name}.weight" for name in names)).T
        scales = np.abs(columns).max(axis=0) / np.float32(_LARGEST)
        numbers = np.rint(columns / scales).astype(np.int8)
        given = inner, self.tensor(numbers), self.tensor(scales)
        return self.node("DynamicQuantizeMatMul", *given, domain=_CONTRIB)

    def product_by_row(self, inner: str, name: str) -> str:
        """Multiply where few tokens have far larger numbers, which would cost others theirs."""
        largest = self.node("ReduceMax", self.node("Abs", inner), self.number(-1), keepdims=1)
        return self.node("Mul", self.product(self.node("Div", inner, largest), name), largest)

    def bias(self, *names: str) -> str:
        return self.weight(*(f"{name}.bias" for name in names))

    def node(self, op: str, *inputs: str, domain: str = "", **attributes: int | float) -> str:
        return self.nodes_of(op, 1, *inputs, domain=domain, **attributes)[0]

    def nodes_of(
        self, op: str, outputs: int, *inputs: str, domain: str = "", **attributes: int | float
    ) -> list[str]:
        """Add an operator with several outputs; an empty input is left out."""
        found = [f"{op}_{len(self.nodes)}_{n}" for n in range(outputs)]
        told = (
            _message((1, name), (2, value), (20, 1))
            if isinstance(value, float)
            else _message((1, name), (3, value), (20, 2))
            for name, value in attributes.items()
        )
        self.nodes.append(
            _message(
                *((1, name) for name in inputs),
                *((2, name) for name in found),
                (4, op),
                *((5, attribute) for attribute in told),
                (7, domain),
            )
        )
        return found


def build(index: Mapping[str, Stored], file: Path, dimensions: int) -> bytes:
    graph = _Graph(index, file)
    hidden = _embeddings(graph)
    for layer in range(_LAYERS):
        hidden = _layer(graph, hidden, f"encoder.layer.{layer}.")
    output = graph.node(
        "LpNormalization",
        graph.node("ReduceMean", hidden, graph.number(1), keepdims=0),
        axis=1,
        p=2,
    )
    proto = _message(
        *((1, node) for node in graph.nodes),
        (2, "all-MiniLM-L6-v2"),
        *((5, tensor) for tensor in graph.tensors),
        (11, _value(INPUT, "batch", "length", dimensions)),
        (12, _value(output, "batch", dimensions)),
    )
    opsets = [_message((1, domain), (2, version)) for domain, version in (("", 18), (_CONTRIB, 1))]
    return _message((1, 9), (7, proto), *((8, opset) for opset in opsets))


def _embeddings(graph: _Graph) -> str:
    positions, kinds = (
        graph.weight(f"embeddings.{kind}_embeddings.weight") for kind in ("position", "token_type")
    )
    first, second = graph.number(0), graph.number(1)
    length = graph.node("Shape", INPUT, start=1, end=2)
    places = graph.node("Add", graph.node("Slice", positions, first, length),
                        graph.node("Slice", kinds, first, second))  # fmt: skip
    return _norm(graph, graph.node("Add", INPUT, places), "embeddings.LayerNorm")


def _layer(graph: _Graph, hidden: str, name: str) -> str:
    own = [f"{name}attention.self.{part}" for part in ("query", "key", "value")]
    own_added = graph.node("Add", graph.product(hidden, *own), graph.bias(*own))
    parts = graph.nodes_of("Split", 3, own_added, axis=-1, num_outputs=3)
    attended = graph.node("MultiHeadAttention", *parts, domain=_CONTRIB, num_heads=_HEADS)
    dense = f"{name}attention.output.dense"
    hidden = _residual(graph, graph.product(attended, dense), hidden, f"{name}attention.output.")
    dense = f"{name}intermediate.dense"
    wide = graph.node("BiasGelu", graph.product_by_row(hidden, dense), graph.bias(dense),
                      domain=_CONTRIB)  # fmt: skip
    wide = graph.product_by_row(wide, f"{name}output.dense")
    return _residual(graph, wide, hidden, f"{name}output.")


def _residual(graph: _Graph, product: str, hidden: str, name: str) -> str:
    dense = graph.node("Add", product, graph.bias(f"{name}dense"))
    return _norm(graph, graph.node("Add", dense, hidden), f"{name}LayerNorm")


def _norm(graph: _Graph, inner: str, name: str) -> str:
    weight, bias = graph.weight(f"{name}.weight"), graph.weight(f"{name}.bias")
    return graph.node("LayerNormalization", inner, weight, bias, axis=-1, epsilon=1e-12)


def _value(name: str, *sizes: int | str) -> bytes:
    dims = (_message((1 if isinstance(size, int) else 2, size)) for size in sizes)
    shape = _message(*((1, dim) for dim in dims))
    return _message((1, name), (2, _message((1, _message((1, _FLOAT), (2, shape))))))


def _message(*fields: Field) -> bytes:
    """Encode numbered fields as protobuf does."""
    return b"".join(_field(number, value) for number, value in fields)


def _field(number: int, value: int | float | str | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    value &= 2**64 - 1  # negative ones in two's complement
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])
