"""Reflectors extract memories from notes: by rules, or by a model where there is one."""

from commonplace.ports import Model, Reflector
from commonplace.settings import Settings


def make_reflector(settings: Settings, model: Model | None) -> Reflector:
    """Return the one that uses the model; without one, the rules. Imports only what is used."""
    if model:
        from commonplace.adapters.reflect.by_model import ModelReflector

        return ModelReflector(model)
    from commonplace.adapters.reflect.rule_reflector import LocalReflector

    return LocalReflector(settings)
