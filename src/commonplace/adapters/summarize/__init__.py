"""Transformers. `local` serves every item; the one of the settings serves those that ask for `auto_transform`."""

from commonplace.adapters.lazy_import import chosen
from commonplace.ports import Transformer
from commonplace.settings import Settings

TRANSFORMERS = {
    "local": "extractive:LocalTransformer",
    "anthropic": "anthropic:AnthropicTransformer",
}


def make_transformer(settings: Settings) -> Transformer:
    """The transformer of the settings. A mistake in the settings shows here."""
    transformer: Transformer = chosen("transformer", TRANSFORMERS, __name__, settings)
    return transformer
