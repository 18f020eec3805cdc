"""Embedders, chosen by the setting `embedder`. Each is imported only when it is the one."""

from importlib import import_module

from commonplace.errors import ConfigurationError
from commonplace.ports import Embedder
from commonplace.settings import Settings

EMBEDDERS = {
    "local": "local:LocalEmbedder",
    "static": "static:StaticEmbedder",
    "voyage": "voyage:VoyageEmbedder",
    "openai": "openai:OpenAIEmbedder",
    "fastembed": "fastembed:FastembedEmbedder",
}


def make_embedder(settings: Settings) -> Embedder:
    """The embedder of the settings. A model is loaded when it is first used; a mistake in the settings shows here."""
    if settings.embedder not in EMBEDDERS:
        known = ", ".join(EMBEDDERS)
        raise ConfigurationError(f"COMMONPLACE_EMBEDDER must be one of {known}, not {settings.embedder!r}.")
    module, name = EMBEDDERS[settings.embedder].split(":")
    embedder: Embedder = getattr(import_module(f"{__name__}.{module}"), name)(settings)
    return embedder
