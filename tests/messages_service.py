"""A server on this machine that speaks Anthropic's documented Messages protocol with structured output."""

import json
import re
from dataclasses import dataclass, field
from typing import Any

from jsonschema import validate

from tests.stub_service import KEY, Refused, Request, StubService

INPUT_TOKENS, OUTPUT_TOKENS = 1200, 300
# What the documentation says that schemas may not use.
UNSUPPORTED = ("minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum", "multipleOf")


def error(status: int, kind: str, message: str) -> Refused:
    return Refused(
        status,
        {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"},
    )


@dataclass
class MessagesService(StubService):
    says: dict[str, Any] | None = None  # instead of what it would make of the material
    text: str | None = None  # instead of JSON
    stop_reason: str = "end_turn"  # also "refusal" and "max_tokens"
    bodies: list[dict[str, Any]] = field(default_factory=list)

    @property
    def material(self) -> str:
        """What the last request was about."""
        sent: str = self.bodies[-1]["messages"][-1]["content"]
        return sent

    def answer(self, request: Request) -> dict[str, Any]:
        if (request.method, request.path) != ("POST", "/v1/messages"):
            raise error(404, "not_found_error", f"no such path {request.path}")
        if request.headers.get("x-api-key") != KEY:
            raise error(401, "authentication_error", "invalid x-api-key")
        if request.headers.get("anthropic-version") != "2023-06-01":
            raise error(400, "invalid_request_error", "anthropic-version: header is required")
        body = request.json()
        self.bodies.append(body)
        _check(body)
        said = self.says or describe(body["messages"][0]["content"])
        validate(said, body["output_config"]["format"]["schema"])
        text = json.dumps(said) if self.text is None else self.text
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [
                {"type": "thinking", "thinking": "", "signature": "s"},
                {"type": "text", "text": text},
            ],
            "stop_reason": self.stop_reason,
            "stop_sequence": None,
            "usage": {"input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS},
        }


def _check(body: dict[str, Any]) -> None:
    output = body["output_config"]["format"]
    schema = json.dumps(output["schema"])
    if (
        set(body) - {"model", "max_tokens", "system", "messages", "output_config"}
        or output["type"] != "json_schema"
    ):
        raise error(400, "invalid_request_error", f"unknown fields: {sorted(body)}")
    if any(f'"{word}"' in schema for word in UNSUPPORTED):
        raise error(
            400, "invalid_request_error", "output_config.format.schema: unsupported keyword"
        )
    if [message["role"] for message in body["messages"]] != ["user"] or not body["messages"][0][
        "content"
    ].strip():
        raise error(400, "invalid_request_error", "messages: text content blocks must be non-empty")


def describe(material: str) -> dict[str, Any]:
    numbers = [int(number) for number in re.findall(r"^\[(\d+)\]$", material, re.MULTILINE)]
    return {
        "summary": "A text. It says things.",
        "key_points": ["It says things."],
        "tags": ["Things", "things", "text"],
        "category": "Learning",
        "sections": [{"number": number, "points": [f"Point {number}"]} for number in numbers],
    }
