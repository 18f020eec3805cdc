"""The model behind a coding agent, on this machine: it always says the same, in the streams that
Claude Code (Messages) and Codex (Responses) read."""

import json
from dataclasses import dataclass, field
from threading import Event
from typing import Any

from tests.stub_service import Stand

USAGE = {"input_tokens": 1, "output_tokens": 1}


@dataclass
class AgentModel:
    says: str = "Noted."
    url: str = ""
    bodies: list[str] = field(default_factory=list)
    closing: Event = field(default_factory=Event)

    def messages(self) -> list[dict[str, Any]]:
        who = {"id": "msg_1", "type": "message", "role": "assistant", "model": "stub"}
        begun = {"content": [], "stop_reason": None, "stop_sequence": None, "usage": USAGE}
        part = {"index": 0}
        return [
            {"type": "message_start", "message": who | begun},
            {"type": "content_block_start", "content_block": {"type": "text", "text": ""}} | part,
            {"type": "content_block_delta", "delta": {"type": "text_delta", "text": self.says}}
            | part,
            {"type": "content_block_stop"} | part,
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": USAGE},
            {"type": "message_stop"},
        ]

    def responses(self) -> list[dict[str, Any]]:
        text = {"type": "output_text", "text": self.says, "annotations": []}
        item = {"type": "message", "id": "m1", "role": "assistant", "content": [text]}
        done = {"id": "r1", "output": [item], "usage": USAGE | {"total_tokens": 2}}
        return [
            {"type": "response.created", "response": {"id": "r1"}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": done},
        ]


class AgentModelStand(Stand):
    def do_POST(self) -> None:
        model: AgentModel = self.service
        model.bodies.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
        events = model.responses() if "/responses" in self.path else model.messages()
        stream = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events)
        self.send(200, stream, {"Content-Type": "text/event-stream"})

    def do_GET(self) -> None:
        self.send(404, "")

    do_HEAD = do_GET
