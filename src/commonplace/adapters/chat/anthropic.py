"""A model behind Anthropic's Messages API, with structured output."""

from typing import Any

from commonplace.adapters.chat.service import MOST_TOKENS, ChatService, Reply
from commonplace.errors import ConfigurationError
from commonplace.model import Json
from commonplace.settings import Settings

# US dollars for a million tokens in and out, for prompts of up to 100,000 (ours are shorter).
# A model that is not listed works as well; only its cost is unknown.
_PRICES = {
    "claude-haiku-5-5": (0.10, 0.50),
    "claude-sonnet-5-5": (2.0, 10.0),
    "claude-sonnet-5": (2.0, 10.0),
    "claude-opus-5-5": (4.0, 20.0),
    "claude-fable-5-1": (10.0, 50.0),
}


class AnthropicModel(ChatService):
    def __init__(self, settings: Settings, **timing: Any) -> None:
        if not settings.model_key:
            raise ConfigurationError("The anthropic model needs a key: set COMMONPLACE_MODEL_KEY.")
        super().__init__(
            settings,
            settings.model_url or "https://api.anthropic.com",
            settings.model_name or "claude-haiku-5-5",
            {"x-api-key": settings.model_key, "anthropic-version": "2023-06-01"},
            **timing,
        )

    async def _reply(self, task: str, material: str, schema: Json, seconds: float) -> Reply:
        body = {
            "model": self._name,
            "max_tokens": MOST_TOKENS,
            "system": task,
            "messages": [{"role": "user", "content": material}],
            "output_config": {"format": {"type": "json_schema", "schema": schema}},
        }
        answer = await self.ask("POST", "/v1/messages", seconds, lambda: {"json": body})
        tokens_in, tokens_out = answer["usage"]["input_tokens"], answer["usage"]["output_tokens"]
        if answer["stop_reason"] == "refusal":
            raise self.failure("declined to answer")
        if answer["stop_reason"] in ("max_tokens", "model_context_window_exceeded"):
            raise self.failure("was cut off before the end of its answer")
        price = _PRICES.get(self._name)
        return Reply(
            "".join(block["text"] for block in answer["content"] if block["type"] == "text"),
            tokens_in,
            tokens_out,
            price and (tokens_in * price[0] + tokens_out * price[1]) / 1_000_000,
        )
