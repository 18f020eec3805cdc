"""Transformers: rules for every item, and a model for those with `auto_transform`."""

from commonplace.ports import Model, Transformer
from commonplace.settings import Settings


def make_transformer(settings: Settings, model: Model | None) -> Transformer:
    """Return the one that uses the model; without one, the rules. Imports only what is used."""
    if model:
        from commonplace.adapters.summarize.by_model import ModelTransformer

        return ModelTransformer(model)
    from commonplace.adapters.summarize.extractive import LocalTransformer

    return LocalTransformer(settings)
