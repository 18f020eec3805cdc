"""A model behind Anthropic's Messages API, with structured output."""

import json
import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from commonplace.adapters.http_client import PAUSES, HttpService
from commonplace.errors import ConfigurationError, TransformFailed
from commonplace.model import Json
from commonplace.settings import Settings

_SECONDS = 180.0  # for all attempts
_MOST_TOKENS = 16_000  # of the answer, including the model's thinking
# US dollars for a million tokens in and out, for prompts of up to 100,000 (ours are shorter).
# A model that is not listed works as well; only its cost is unknown.
_PRICES = {
    "claude-haiku-5-5": (0.10, 0.50),
    "claude-sonnet-5-5": (2.0, 10.0),
    "claude-sonnet-5": (2.0, 10.0),
    "claude-opus-5-5": (4.0, 20.0),
    "claude-fable-5-1": (10.0, 50.0),
}

TEXT: Json = {"type": "string"}
R = TypeVar("R")


def array_of(item: Json) -> Json:
    return {"type": "array", "items": item}


def object_of(**properties: Json) -> Json:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


class AnthropicModel(HttpService):
    def __init__(
        self, settings: Settings, *, pauses: Sequence[float] = PAUSES, timeout: float = 120.0
    ) -> None:
        if not settings.anthropic_key:
            raise ConfigurationError(
                "The anthropic transformer needs a key: set COMMONPLACE_ANTHROPIC_KEY."
            )
        self._model = settings.anthropic_model
        super().__init__(
            "anthropic",
            settings.anthropic_url,
            settings.anthropic_key,
            setting="COMMONPLACE_ANTHROPIC",
            headers={"x-api-key": settings.anthropic_key, "anthropic-version": "2023-06-01"},
            failure=lambda message, status: TransformFailed(message),
            pauses=pauses,
            timeout=timeout,
        )

    async def complete(
        self, task: str, material: str, schema: Json, parse: Callable[[Json, float | None], R]
    ) -> R:
        """Return the parsed answer to a task.

        `parse` gets an answer of the shape of `schema` and its cost in dollars (None: unknown). It
        may raise the errors of dictionaries and lists if the answer has another shape.
        """
        body = {
            "model": self._model,
            "max_tokens": _MOST_TOKENS,
            "system": task,
            "messages": [{"role": "user", "content": material.encode("utf-8", "replace").decode()}],
            "output_config": {"format": {"type": "json_schema", "schema": schema}},
        }
        answer = await self.ask("POST", "/v1/messages", _SECONDS, lambda: {"json": body})
        try:
            tokens_in, tokens_out = (
                answer["usage"][name] for name in ("input_tokens", "output_tokens")
            )
            price = _PRICES.get(self._model)
            cost = price and (tokens_in * price[0] + tokens_out * price[1]) / 1_000_000
            logging.getLogger(__name__).info(
                "%s: %s in, %s out, %s USD",
                self._model,
                tokens_in,
                tokens_out,
                "unknown" if cost is None else f"{cost:.6f}",
            )
            if answer["stop_reason"] == "refusal":
                raise self.failure("declined to describe this text")
            if answer["stop_reason"] in ("max_tokens", "model_context_window_exceeded"):
                raise self.failure("was cut off before the end of its answer")
            texts = (block["text"] for block in answer["content"] if block["type"] == "text")
            return parse(json.loads("".join(texts)), cost)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise self.unexpected() from None
