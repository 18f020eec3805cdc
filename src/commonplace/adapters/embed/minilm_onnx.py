"""all-MiniLM-L6-v2 as an ONNX model that reads its weights from the safetensors file unchanged.

Texts of equal length go in together, as the vectors of their tokens: no padding, no mask, and the
table of tokens, half of the weights, stays out of memory. The operators were chosen by measuring:
no form of attention is faster, and the fused skip and layer norm is slower than its parts.
onnxruntime transposes the matrices when it loads them. The format is written here because the
`onnx` package takes 31 MB.
"""

import struct
from collections.abc import Mapping

from commonplace.adapters.embed.safetensors_file import Stored

INPUT = "tokens"
_LAYERS, _HEADS = 6, 12
_CONTRIB = "com.microsoft"
_FLOAT, _INT64, _EXTERNAL = 1, 7, 1
Field = tuple[int, int | float | str | bytes]


class _Graph:
    """Collects nodes and tensors, in protobuf's encoding."""

    def __init__(self, index: Mapping[str, Stored], file: str) -> None:
        self.nodes: list[bytes] = []
        self.tensors: list[bytes] = []
        self._index, self._file = index, file

    def weight(self, name: str) -> str:
        stored = self._index[name]
        place = {"location": self._file, "offset": stored.offset, "length": stored.length}
        self.tensors.append(
            _message(
                *((1, size) for size in stored.shape),
                (2, _FLOAT),
                (8, name),
                *((13, _message((1, key), (2, str(value)))) for key, value in place.items()),
                (14, _EXTERNAL),
            )
        )
        return name

    def number(self, value: int) -> str:
        name = f"number_{len(self.tensors)}"
        self.tensors.append(
            _message((1, 1), (2, _INT64), (8, name), (9, value.to_bytes(8, "little", signed=True)))
        )
        return name

    def node(self, op: str, *inputs: str, domain: str = "", **attributes: int | float) -> str:
        output = f"{op}_{len(self.nodes)}"
        told = (
            _message((1, name), (2, value), (20, 1))
            if isinstance(value, float)
            else _message((1, name), (3, value), (20, 2))
            for name, value in attributes.items()
        )
        self.nodes.append(
            _message(
                *((1, name) for name in inputs),
                (2, output),
                (4, op),
                *((5, attribute) for attribute in told),
                (7, domain),
            )
        )
        return output

    def matrix(self, *names: str) -> str:
        """Weights side by side, lying the way MatMul wants them."""
        return self._joined([self.node("Transpose", self.weight(f"{n}.weight")) for n in names], 1)

    def bias(self, *names: str) -> str:
        return self._joined([self.weight(f"{name}.bias") for name in names], 0)

    def _joined(self, parts: list[str], axis: int) -> str:
        return parts[0] if len(parts) == 1 else self.node("Concat", *parts, axis=axis)


def build(index: Mapping[str, Stored], file: str, dimensions: int) -> bytes:
    """Return the model. `file`: name of the file of weights, in the folder set in the session."""
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
    attended = graph.node("Attention", hidden, graph.matrix(*own), graph.bias(*own),
                          domain=_CONTRIB, num_heads=_HEADS)  # fmt: skip
    hidden = _residual(graph, attended, hidden, f"{name}attention.output.")
    wide = graph.node("MatMul", hidden, graph.matrix(f"{name}intermediate.dense"))
    wide = graph.node("BiasGelu", wide, graph.bias(f"{name}intermediate.dense"), domain=_CONTRIB)
    return _residual(graph, wide, hidden, f"{name}output.")


def _residual(graph: _Graph, inner: str, hidden: str, name: str) -> str:
    dense = graph.node("MatMul", inner, graph.matrix(f"{name}dense"))
    return _norm(
        graph,
        graph.node("Add", graph.node("Add", dense, graph.bias(f"{name}dense")), hidden),
        f"{name}LayerNorm",
    )


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
