"""Transformers. `local` is for every item; the configured one for those with `auto_transform`."""

from commonplace.adapters.lazy_import import Maker, maker
from commonplace.ports import Transformer

TRANSFORMERS = {
    "local": "extractive:LocalTransformer",
    "anthropic": "anthropic:AnthropicTransformer",
}
make_transformer: Maker[Transformer] = maker("transformer", TRANSFORMERS, __name__)
