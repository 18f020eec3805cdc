"""A model behind Anthropic's Messages API, asked for an answer of a given shape."""

import json
import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from commonplace.adapters.http_client import PAUSES, Service
from commonplace.errors import ConfigurationError, TransformFailed
from commonplace.model import Json
from commonplace.settings import Settings

_log = logging.getLogger(__name__)

TIMEOUT = 120.0
_VERSION = "2023-06-01"
_PATIENCE = 180.0
_MOST_TOKENS = 16_000  # of the answer, the model's thinking included
_MILLION = 1_000_000
# US dollars for a million tokens in and out, for prompts of up to 100,000 (ours are shorter). A model that is not here still
# works; its cost is then not known.
_PRICES = {
    "claude-haiku-5-5": (0.10, 0.50),
    "claude-sonnet-5-5": (2.0, 10.0),
    "claude-sonnet-5": (2.0, 10.0),
    "claude-opus-5-5": (4.0, 20.0),
    "claude-fable-5-1": (10.0, 50.0),
}

TEXT: Json = {"type": "string"}
R = TypeVar("R")


def lists(item: Json) -> Json:
    return {"type": "array", "items": item}


def an_object(**properties: Json) -> Json:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


class Messages:
    def __init__(
        self, settings: Settings, *, pauses: Sequence[float] = PAUSES, timeout: float = TIMEOUT
    ) -> None:
        if not settings.anthropic_key:
            raise ConfigurationError(
                "The anthropic transformer needs a key: set COMMONPLACE_ANTHROPIC_KEY."
            )
        self._model = settings.anthropic_model
        self._service = Service(
            "anthropic",
            settings.anthropic_url,
            settings.anthropic_key,
            setting="COMMONPLACE_ANTHROPIC",
            headers={"x-api-key": settings.anthropic_key, "anthropic-version": _VERSION},
            failure=lambda message, status: TransformFailed(message),
            pauses=pauses,
            timeout=timeout,
        )

    async def ask(
        self, task: str, material: str, schema: Json, understand: Callable[[Json, float | None], R]
    ) -> R:
        """What `understand` makes of the answer and of its cost in dollars (None: not known). It raises what dictionaries and
        lists raise when the answer is not what was asked for."""
        body = {
            "model": self._model,
            "max_tokens": _MOST_TOKENS,
            "system": task,
            "messages": [{"role": "user", "content": material.encode("utf-8", "replace").decode()}],
            "output_config": {"format": {"type": "json_schema", "schema": schema}},
        }
        answer = await self._service.ask("POST", "/v1/messages", _PATIENCE, lambda: {"json": body})
        try:
            cost = self._cost(answer["usage"])
            _log.info(
                "%s: %s in, %s out, %s USD",
                self._model,
                answer["usage"]["input_tokens"],
                answer["usage"]["output_tokens"],
                "unknown" if cost is None else f"{cost:.6f}",
            )
            return understand(self._said(answer), cost)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise self._service.puzzled() from None

    async def close(self) -> None:
        await self._service.close()

    def _said(self, answer: Json) -> Json:
        if answer["stop_reason"] == "refusal":
            raise self._service.failed("declined to describe this text")
        if answer["stop_reason"] in ("max_tokens", "model_context_window_exceeded"):
            raise self._service.failed("was cut off before the end of its answer")
        said: Json = json.loads(
            "".join(block["text"] for block in answer["content"] if block["type"] == "text")
        )
        return said

    def _cost(self, usage: Json) -> float | None:
        if self._model not in _PRICES:
            return None
        price_in, price_out = _PRICES[self._model]
        return float(
            (usage["input_tokens"] * price_in + usage["output_tokens"] * price_out) / _MILLION
        )
