"""Embedders. The setting `embedder` chooses one; the others are not imported."""

from commonplace.adapters.lazy_import import Maker, maker
from commonplace.ports import Embedder

EMBEDDERS = {
    "local": "minilm:LocalEmbedder",
    "static": "wordllama:StaticEmbedder",
    "voyage": "service:VoyageEmbedder",
    "openai": "service:OpenAIEmbedder",
    "onnx": "onnx_folder:OnnxEmbedder",
    "fastembed": "fastembed:FastembedEmbedder",
}
# A model is loaded when it is first used.
make_embedder: Maker[Embedder] = maker("embedder", EMBEDDERS, __name__)
