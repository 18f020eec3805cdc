"""Reflectors extract memories from notes. The setting `transformer` chooses one."""

from commonplace.adapters.lazy_import import chosen
from commonplace.ports import Reflector
from commonplace.settings import Settings

REFLECTORS = {
    "local": "rule_reflector:LocalReflector",
    "anthropic": "anthropic:AnthropicReflector",
}


def make_reflector(settings: Settings) -> Reflector:
    reflector: Reflector = chosen("transformer", REFLECTORS, __name__, settings)
    return reflector
