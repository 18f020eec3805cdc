"""Reflectors extract memories from notes. The setting `transformer` chooses one."""

from commonplace.adapters.lazy_import import Maker, maker
from commonplace.ports import Reflector

REFLECTORS = {
    "local": "rule_reflector:LocalReflector",
    "anthropic": "anthropic:AnthropicReflector",
}
make_reflector: Maker[Reflector] = maker("transformer", REFLECTORS, __name__)
