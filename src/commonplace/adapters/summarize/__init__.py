"""Transformers. `local` is for every item; the configured one for those with `auto_transform`."""

from commonplace.adapters.lazy_import import chosen
from commonplace.ports import Transformer
from commonplace.settings import Settings

TRANSFORMERS = {
    "local": "extractive:LocalTransformer",
    "anthropic": "anthropic:AnthropicTransformer",
}


def make_transformer(settings: Settings) -> Transformer:
    """Make the configured transformer. Raises ConfigurationError for wrong settings."""
    transformer: Transformer = chosen("transformer", TRANSFORMERS, __name__, settings)
    return transformer
