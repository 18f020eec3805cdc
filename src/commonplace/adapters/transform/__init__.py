"""Transformers. `local` serves every item; the one of the settings serves those that ask for `auto_transform`."""

from importlib import import_module

from commonplace.errors import ConfigurationError
from commonplace.ports import Transformer
from commonplace.settings import Settings

TRANSFORMERS = {
    "local": "local:LocalTransformer",
    "anthropic": "anthropic:AnthropicTransformer",
}


def make_transformer(settings: Settings) -> Transformer:
    """The transformer of the settings. A mistake in the settings shows here."""
    if settings.transformer not in TRANSFORMERS:
        known = ", ".join(TRANSFORMERS)
        raise ConfigurationError(f"COMMONPLACE_TRANSFORMER must be one of {known}, not {settings.transformer!r}.")
    module, name = TRANSFORMERS[settings.transformer].split(":")
    transformer: Transformer = getattr(import_module(f"{__name__}.{module}"), name)(settings)
    return transformer
