"""Embedders. The setting `embedder` chooses one; the others are not imported."""

from commonplace.adapters.lazy_import import chosen
from commonplace.ports import Embedder
from commonplace.settings import Settings

EMBEDDERS = {
    "local": "minilm:LocalEmbedder",
    "static": "wordllama:StaticEmbedder",
    "voyage": "service:VoyageEmbedder",
    "openai": "service:OpenAIEmbedder",
    "fastembed": "fastembed:FastembedEmbedder",
}


def make_embedder(settings: Settings) -> Embedder:
    """Make the configured embedder. Raises ConfigurationError for wrong settings.

    A model is loaded when it is first used.
    """
    embedder: Embedder = chosen("embedder", EMBEDDERS, __name__, settings)
    return embedder
