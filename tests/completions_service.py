"""A server on this machine that speaks OpenAI's documented chat completions, as old or as strict as a test needs."""

import json
from dataclasses import dataclass, field
from typing import Any

from jsonschema import validate

from tests.messages_service import INPUT_TOKENS, OUTPUT_TOKENS, describe
from tests.stub_service import Refused, Request, StubService


def error(status: int, message: str) -> Refused:
    return Refused(
        status, {"error": {"message": message, "type": "invalid_request_error", "code": None}}
    )


@dataclass
class CompletionsService(StubService):
    key: str = ""  # that requests must have, if any
    says: dict[str, Any] | None = None  # instead of what it would make of the material
    text: str | None = None  # instead of JSON
    stop_reason: str = "stop"  # also "length" and "content_filter"
    refusal: str | None = None
    has_schema: bool = True  # or response_format is refused
    limit_name: str = "max_tokens"  # another one is refused
    context: int = 128_000  # tokens that an answer may have
    tells_usage: bool = True
    bodies: list[dict[str, Any]] = field(default_factory=list)

    @property
    def material(self) -> str:
        """What the last request was about."""
        sent: str = self.bodies[-1]["messages"][-1]["content"]
        return sent

    def answer(self, request: Request) -> dict[str, Any]:
        if (request.method, request.path) != ("POST", "/v1/chat/completions"):
            raise error(404, f"no such path {request.path}")
        if self.key and request.headers.get("authorization") != f"Bearer {self.key}":
            raise error(401, f"Incorrect API key provided: {request.headers.get('authorization')}")
        body = request.json()
        self.bodies.append(body)
        self._check(body)
        said = self.says or describe(body["messages"][1]["content"])
        if "response_format" in body:
            validate(said, body["response_format"]["json_schema"]["schema"])
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "model": body["model"],
            "choices": [
                {
                    "index": 0,
                    "message": {
                        "role": "assistant",
                        "content": json.dumps(said) if self.text is None else self.text,
                        "refusal": self.refusal,
                    },
                    "finish_reason": self.stop_reason,
                }
            ],
        } | (
            {"usage": {"prompt_tokens": INPUT_TOKENS, "completion_tokens": OUTPUT_TOKENS}}
            if self.tells_usage
            else {}
        )

    def _check(self, body: dict[str, Any]) -> None:
        fields = {"model", "messages", "response_format", self.limit_name}
        if unknown := sorted(set(body) - fields):
            raise error(400, f"Unsupported parameter: '{unknown[0]}'")
        if body[self.limit_name] > self.context:
            raise error(400, f"'{self.limit_name}' is too large: {body[self.limit_name]}.")
        if "response_format" in body:
            if not self.has_schema:
                raise error(400, "response_format: json_schema is not supported")
            asked = body["response_format"]
            if asked["type"] != "json_schema" or not asked["json_schema"]["name"]:
                raise error(400, "response_format: unknown type")
        if [message["role"] for message in body["messages"]] != ["system", "user"]:
            raise error(400, "messages: unexpected roles")
