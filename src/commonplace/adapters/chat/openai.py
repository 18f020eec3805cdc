"""A model behind OpenAI's chat completions, which Ollama, LM Studio, vLLM and others have as well.

Servers differ in what they accept, so a refused request is sent again in a simpler form. The
schema is also in the task: some servers ignore the field for it without a word.
"""

import json
from functools import partial
from typing import Any

from commonplace.adapters.chat.service import MOST_TOKENS, ChatService, Reply
from commonplace.errors import ConfigurationError, TransformFailed
from commonplace.model import Json
from commonplace.settings import Settings

_OPENAI = "https://api.openai.com/v1"
# The field for the length of the answer, its value, and whether there is a field for the schema.
_FORMS = (
    ("max_tokens", MOST_TOKENS, True),
    ("max_completion_tokens", MOST_TOKENS, True),  # OpenAI's newer models refuse the older name
    ("max_tokens", MOST_TOKENS // 4, True),  # vLLM refuses what its model's context has no room for
    ("max_tokens", MOST_TOKENS // 4, False),
)
_REFUSED = (400, 422)


class OpenAIModel(ChatService):
    def __init__(self, settings: Settings, **timing: Any) -> None:
        if not settings.model_name:
            raise ConfigurationError(
                "The openai model needs a name that its server knows: set COMMONPLACE_MODEL_NAME."
            )
        url = settings.model_url or _OPENAI
        if url == _OPENAI and not settings.model_key:
            raise ConfigurationError(
                "The openai model needs a key: set COMMONPLACE_MODEL_KEY "
                "(or COMMONPLACE_MODEL_URL for a server of your own)."
            )
        self._form = 0  # the first one that was not refused
        super().__init__(
            settings,
            url,
            settings.model_name,
            {"Authorization": f"Bearer {settings.model_key}"},
            **timing,
        )

    async def _reply(self, task: str, material: str, schema: Json, seconds: float) -> Reply:
        told = f"{task}\nAnswer with one JSON object of this schema only: {json.dumps(schema)}"
        form = self._form
        while True:
            make = partial(_request, self._name, told, material, schema, form)
            try:
                answer = await self.ask("POST", "/chat/completions", seconds, make)
            except TransformFailed as failure:
                if failure.status not in _REFUSED or form + 1 == len(_FORMS):
                    raise
                form += 1
            else:
                self._form = form
                return self._read_choice(answer)

    def _read_choice(self, answer: Json) -> Reply:
        choice, usage = answer["choices"][0], answer.get("usage") or {}
        message = choice["message"]
        if message.get("refusal") or choice["finish_reason"] == "content_filter":
            raise self.failure("declined to answer")
        if choice["finish_reason"] == "length":
            raise self.failure("was cut off before the end of its answer")
        return Reply(message["content"], usage.get("prompt_tokens"), usage.get("completion_tokens"))


def _request(name: str, task: str, material: str, schema: Json, form: int) -> Json:
    limit, tokens, has_schema = _FORMS[form]
    body: Json = {
        "model": name,
        limit: tokens,
        "messages": [
            {"role": "system", "content": task},
            {"role": "user", "content": material},
        ],
    }
    if has_schema:
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": True, "schema": schema},
        }
    return {"json": body}
