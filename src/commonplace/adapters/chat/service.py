"""What the language models have in common: limits of each call, and how answers are read."""

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import anyio

from commonplace.adapters.http_client import PAUSES, HttpService
from commonplace.errors import TransformFailed
from commonplace.model import Json
from commonplace.settings import Settings

_MOST_CHARS = 200_000  # of the material
MOST_TOKENS = 16_000  # of the answer, including the model's thinking

R = TypeVar("R")


class Reply(NamedTuple):
    text: str
    tokens_in: int | None  # None: the service does not tell
    tokens_out: int | None
    cost: float | None = None  # dollars; None: unknown


class ChatService(HttpService, ABC):
    def __init__(
        self,
        settings: Settings,
        url: str,
        name: str,
        headers: Mapping[str, str],
        *,
        pauses: Sequence[float] = PAUSES,
        timeout: float = 120.0,
    ) -> None:
        self._name = name
        super().__init__(
            f"{settings.model} model",
            url,
            settings.model_key,
            headers=headers,
            setting="COMMONPLACE_MODEL",
            failure=TransformFailed,
            pauses=pauses,
            timeout=timeout,
        )

    async def complete(
        self,
        task: str,
        material: str,
        schema: Json,
        parse: Callable[[Json, float | None], R],
        *,
        seconds: float = 180.0,
    ) -> R:
        try:
            with anyio.fail_after(seconds):
                reply = await self._reply(task, _clean(material[:_MOST_CHARS]), schema, seconds)
            logging.getLogger(__name__).info(
                "%s: %s tokens in, %s out, %s USD",
                self._name,
                *("unknown" if count is None else count for count in reply[1:3]),
                "unknown" if reply.cost is None else f"{reply.cost:.6f}",
            )
            return parse(_clean(_read(reply.text)), reply.cost)
        except TimeoutError:
            failure = self.failure("did not answer in time")
            failure.transient = True
            raise failure from None
        except (
            ArithmeticError,  # 1e999 is no whole number
            AttributeError,
            LookupError,
            RecursionError,
            TypeError,
            ValueError,
        ):
            raise self.unexpected() from None

    @abstractmethod
    async def _reply(self, task: str, material: str, schema: Json, seconds: float) -> Reply:
        """Ask the service. It may raise the errors of dictionaries and lists, too."""


def _read(text: str) -> Any:
    """Return the JSON object in a text: models without a schema think aloud and fence it."""
    answer = text.rpartition("</think>")[2]
    return json.loads(answer[max(0, answer.find("{")) : answer.rfind("}") + 1])


def _clean(value: Any) -> Any:
    """Remove what no service or database accepts in strings: NUL and lone surrogates."""
    if isinstance(value, str):
        return value.replace("\0", "").encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_clean(each) for each in value]
    return {_clean(k): _clean(v) for k, v in value.items()} if isinstance(value, dict) else value
