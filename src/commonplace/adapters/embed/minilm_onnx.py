"""all-MiniLM-L6-v2 as an ONNX graph, from its safetensors weights.

It takes the token ids of texts that are equally long, and so needs no padding and no mask. The operators were chosen
by measuring: no form of attention is faster, and the fused skip and layer norm is slower than its parts.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper
from safetensors import safe_open

from commonplace.adapters.embed.minilm_model import DIMENSIONS, GRAPH, MAX_TOKENS, MODEL
from commonplace.ports import Vectors

_DATA = "weights.bin"
_LAYERS, _HEADS = 6, 12
_CONTRIB = "com.microsoft"


class _Graph:
    """Collects nodes, and writes tensors to a file beside the graph, which onnxruntime maps instead of copying."""

    def __init__(self, weights: Path, folder: Path) -> None:
        self.nodes: list[NodeProto] = []
        self.tensors: list[TensorProto] = []
        self._source: Any = safe_open(weights, framework="np")
        self._file = (folder / _DATA).open("wb")

    def weights(self, *names: str) -> Vectors:
        """Tensors of the model, side by side; matrices lie the way MatMul wants them."""
        return np.concatenate([self._source.get_tensor(name).T for name in names], axis=-1)

    def weight(self, *names: str) -> str:
        return self.tensor(names[0], self.weights(*names))

    def tensor(self, name: str, array: Vectors) -> str:
        self._file.seek(-self._file.tell() % 4096, os.SEEK_CUR)
        proto = TensorProto(
            name=name,
            data_type=TensorProto.FLOAT,
            dims=array.shape,
            data_location=TensorProto.EXTERNAL,
        )
        for key, value in (
            ("location", _DATA),
            ("offset", self._file.tell()),
            ("length", array.nbytes),
        ):
            proto.external_data.add(key=key, value=str(value))
        self._file.write(np.ascontiguousarray(array, np.float32).tobytes())
        self.tensors.append(proto)
        return name

    def numbers(self, name: str, *values: int) -> str:
        self.tensors.append(helper.make_tensor(name, TensorProto.INT64, [len(values)], values))
        return name

    def node(self, op: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        output = f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [output], domain=domain, **attributes))
        return output

    def close(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()


def build(weights: Path, folder: Path) -> None:
    graph = _Graph(weights, folder)
    try:
        hidden = _embeddings(graph)
        for layer in range(_LAYERS):
            hidden = _layer(graph, hidden, f"encoder.layer.{layer}.")
        pooled = graph.node("ReduceMean", hidden, graph.numbers("tokens_axis", 1), keepdims=0)
        output = graph.node("LpNormalization", pooled, axis=1, p=2)
    finally:
        graph.close()
    proto = helper.make_graph(
        graph.nodes,
        MODEL,
        [helper.make_tensor_value_info("ids", TensorProto.INT32, ["batch", "length"])],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["batch", DIMENSIONS])],
        graph.tensors,
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(_CONTRIB, 1)]
    model = helper.make_model(proto, opset_imports=opsets, ir_version=9)
    (folder / GRAPH).write_bytes(model.SerializeToString())


def _embeddings(graph: _Graph) -> str:
    words, positions, types = (
        graph.weights(f"embeddings.{kind}_embeddings.weight").T
        for kind in ("word", "position", "token_type")
    )
    word = graph.node("Gather", graph.tensor("words", words), "ids")
    length = graph.node("Shape", "ids", start=1, end=2)
    places = graph.tensor("places", positions[:MAX_TOKENS] + types[0])
    place = graph.node("Slice", places, graph.numbers("first", 0), length)
    return _norm(graph, graph.node("Add", word, place), "embeddings.LayerNorm")


def _layer(graph: _Graph, hidden: str, name: str) -> str:
    own, dense = f"{name}attention.self.", f"{name}attention.output."
    matrix = graph.weight(*(f"{own}{part}.weight" for part in ("query", "key", "value")))
    bias = graph.weight(*(f"{own}{part}.bias" for part in ("query", "key", "value")))
    attended = graph.node("Attention", hidden, matrix, bias, domain=_CONTRIB, num_heads=_HEADS)
    hidden = _residual(graph, attended, hidden, dense)
    wide = graph.node("MatMul", hidden, graph.weight(f"{name}intermediate.dense.weight"))
    wide = graph.node(
        "BiasGelu", wide, graph.weight(f"{name}intermediate.dense.bias"), domain=_CONTRIB
    )
    return _residual(graph, wide, hidden, f"{name}output.")


def _residual(graph: _Graph, inner: str, hidden: str, name: str) -> str:
    dense = graph.node("MatMul", inner, graph.weight(f"{name}dense.weight"))
    biased = graph.node("Add", dense, graph.weight(f"{name}dense.bias"))
    return _norm(graph, graph.node("Add", biased, hidden), f"{name}LayerNorm")


def _norm(graph: _Graph, inner: str, name: str) -> str:
    return graph.node(
        "LayerNormalization",
        inner,
        graph.weight(f"{name}.weight"),
        graph.weight(f"{name}.bias"),
        axis=-1,
        epsilon=1e-12,
    )
