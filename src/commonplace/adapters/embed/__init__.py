"""Embedders, chosen by the setting `embedder`. Each is imported only when it is the one."""

from commonplace.adapters.lazy_import import chosen
from commonplace.ports import Embedder
from commonplace.settings import Settings

EMBEDDERS = {
    "local": "minilm:LocalEmbedder",
    "static": "wordllama:StaticEmbedder",
    "voyage": "voyage:VoyageEmbedder",
    "openai": "openai:OpenAIEmbedder",
    "fastembed": "fastembed:FastembedEmbedder",
}


def make_embedder(settings: Settings) -> Embedder:
    """The embedder of the settings. A model is loaded when it is first used; a mistake in the settings shows here."""
    embedder: Embedder = chosen("embedder", EMBEDDERS, __name__, settings)
    return embedder
