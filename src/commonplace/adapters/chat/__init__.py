"""Language models over HTTP. The setting `model` chooses one; by default there is none."""

from commonplace.adapters.lazy_import import Maker, maker
from commonplace.ports import Model

MODELS = {
    "none": "none:no_model",
    "anthropic": "anthropic:AnthropicModel",
    "openai": "openai:OpenAIModel",
}
make_model: Maker[Model | None] = maker("model", MODELS, __name__)
