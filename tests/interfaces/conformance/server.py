"""Our MCP stack (gate, endpoint, error mapping; only tokens are off) around the fixtures of the conformance suite.

`python server.py PORT` serves without sessions at /mcp, and with them at /sessions, for what asks the client back; our own
handlers, of an empty library, are at /library.
"""

import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as t
import uvicorn
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.message import ServerMessageMetadata
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from commonplace.app import open_app
from commonplace.errors import Invalid
from commonplace.interfaces.http.gate import Gate
from commonplace.interfaces.mcp.http import Endpoint
from commonplace.interfaces.mcp.server import ALL_TOOLS, Context, Toolset, new_server
from commonplace.model import Caller, Capability
from commonplace.settings import Settings

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="


IMAGE = t.ImageContent(type="image", data=PNG, mime_type="image/png")


def text(value: str) -> t.TextContent:
    return t.TextContent(type="text", text=value)


def embedded(uri: str, mime_type: str, content: str) -> t.EmbeddedResource:
    resource = t.TextResourceContents(uri=uri, mime_type=mime_type, text=content)
    return t.EmbeddedResource(type="resource", resource=resource)


def form(message: str, **properties: Any) -> t.ElicitRequestFormParams:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return t.ElicitRequestFormParams(message=message, requested_schema=schema)


def ask(message: str, **properties: Any) -> t.ElicitRequest:
    return t.ElicitRequest(params=form(message, **properties))


def sample(prompt: str, max_tokens: int) -> t.CreateMessageRequest:
    message = t.SamplingMessage(role="user", content=text(prompt))
    return t.CreateMessageRequest(
        params=t.CreateMessageRequestParams(messages=[message], max_tokens=max_tokens)
    )


def missing(**capabilities: Any) -> t.ErrorData:
    return t.ErrorData(
        code=t.MISSING_REQUIRED_CLIENT_CAPABILITY,
        message="The client lacks a capability.",
        data={"requiredCapabilities": capabilities},
    )


STRING, BOOLEAN = {"type": "string"}, {"type": "boolean"}
OPTIONS = ["option1", "option2", "option3"]
TITLED = [
    {"const": f"value{n}", "title": title}
    for n, title in enumerate(("First", "Second", "Third"), 1)
]
NAME = ask("What is your name?", name=STRING)
DEFAULTS = form(
    "Check these values",
    **{
        "name": STRING | {"default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "verified": BOOLEAN | {"default": True},
        "status": STRING | {"enum": ["active", "inactive", "pending"], "default": "active"},
    },
)
ENUMS = form(
    "Choose",
    **{
        "untitledSingle": STRING | {"enum": OPTIONS},
        "titledSingle": STRING | {"oneOf": TITLED},
        "legacyEnum": STRING
        | {
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": STRING | {"enum": OPTIONS}},
        "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
    },
)

FIXED: dict[str, list[Any]] = {
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [IMAGE],
    "test_audio_content": [t.AudioContent(type="audio", data=WAV, mime_type="audio/wav")],
    "test_embedded_resource": [
        embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ],
    "test_multiple_content_types": [
        text("Multiple content types test:"),
        IMAGE,
        embedded(
            "test://mixed-content-resource", "application/json", '{"test":"data","value":123}'
        ),
    ],
}
# What each tool asks for in turn (2026-07-28: answers come with the next call).
ROUNDS: dict[str, list[dict[str, Any]]] = {
    "test_input_required_result_elicitation": [{"user_name": NAME}],
    "test_input_required_result_sampling": [
        {"capital_question": sample("What is the capital of France?", 100)}
    ],
    "test_input_required_result_list_roots": [{"client_roots": t.ListRootsRequest()}],
    "test_input_required_result_request_state": [{"confirm": ask("Please confirm", ok=BOOLEAN)}],
    "test_input_required_result_tampered_state": [{"confirm": ask("Please confirm", ok=BOOLEAN)}],
    "test_input_required_result_multiple_inputs": [
        {
            "user_name": NAME,
            "greeting": sample("Generate a greeting", 50),
            "client_roots": t.ListRootsRequest(),
        }
    ],
    "test_input_required_result_multi_round": [
        {"step1": ask("Step 1: What is your name?", name=STRING)},
        {"step2": ask("Step 2: What is your favorite color?", color=STRING)},
    ],
}
STATEFUL = ("request_state", "tampered_state", "multiple_inputs", "multi_round")
ARGUMENTS = {"test_sampling": {"prompt": STRING}, "test_elicitation": {"message": STRING}}
OTHERS = (
    "test_error_handling",
    "test_tool_with_logging",
    "test_logging_tool",
    "test_tool_with_progress",
    "test_sampling",
    "test_elicitation",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_input_required_result_capabilities",
)


def tool(name: str) -> t.Tool:
    properties = ARGUMENTS.get(name, {})
    return t.Tool(
        name=name,
        description=f"Fixture {name}",
        input_schema={"type": "object", "properties": properties, "required": list(properties)},
    )


async def list_tools(ctx: Context, params: Any) -> t.ListToolsResult:
    return t.ListToolsResult(tools=[tool(name) for name in (*FIXED, *ROUNDS, *OTHERS)])


async def call_tool(ctx: Context, params: t.CallToolRequestParams) -> Any:
    if params.name in FIXED:
        return t.CallToolResult(content=FIXED[params.name])
    if params.name in ROUNDS:
        return play_round(params)
    arguments, capabilities = (
        params.arguments or {},
        ctx.session.client_capabilities or t.ClientCapabilities(),
    )
    match params.name:
        case "test_error_handling":
            reason = text("This tool intentionally returns an error for testing")
            return t.CallToolResult(content=[reason], is_error=True)
        case "test_tool_with_logging" | "test_logging_tool":
            for message in (
                "Tool execution started",
                "Tool processing data",
                "Tool execution completed",
            ):
                await ctx.session.send_log_message(
                    "info", message, related_request_id=ctx.request_id
                )
                await anyio.sleep(0.05)
        case "test_tool_with_progress":
            for progress in (0, 50, 100):
                await ctx.session.report_progress(progress, 100)
                await anyio.sleep(0.05)
        case "test_sampling":
            answer = await ask_back(ctx, sample(arguments["prompt"], 100), t.CreateMessageResult)
            return t.CallToolResult(content=[text(f"LLM response: {answer.content}")])
        case "test_elicitation":
            return await elicit(ctx, form(arguments["message"], username=STRING, email=STRING))
        case "test_elicitation_sep1034_defaults":
            return await elicit(ctx, DEFAULTS)
        case "test_elicitation_sep1330_enums":
            return await elicit(ctx, ENUMS)
        case "test_missing_capability" if capabilities.sampling is None:
            return missing(sampling={})
        case "test_streaming_elicitation":
            return t.InputRequiredResult(input_requests={"user_name": NAME})
        case "test_input_required_result_capabilities":
            wanted = {"user_name": NAME} if capabilities.elicitation else {}
            wanted |= (
                {"greeting": sample("Generate a greeting", 50)} if capabilities.sampling else {}
            )
            return t.InputRequiredResult(input_requests=wanted)
    return t.CallToolResult(content=[text(f"{params.name} is done")])


async def ask_back(ctx: Context, question: Any, answer: type[Any]) -> Any:
    """On the stream of the call itself: the client's standalone stream may not be open yet."""
    channel = ServerMessageMetadata(related_request_id=ctx.request_id)
    return await ctx.session.send_request(question, answer, metadata=channel)


async def elicit(ctx: Context, params: t.ElicitRequestFormParams) -> t.CallToolResult:
    answer = await ask_back(ctx, t.ElicitRequest(params=params), t.ElicitResult)
    return t.CallToolResult(
        content=[text(f"Elicitation completed: action={answer.action}, content={answer.content}")]
    )


def play_round(params: t.CallToolRequestParams) -> t.CallToolResult | t.InputRequiredResult:
    rounds, answers = ROUNDS[params.name], params.input_responses or {}
    stateful = params.name.endswith(STATEFUL)
    number = int(params.request_state or 0)
    if set(rounds[number]) <= set(answers):
        number += 1
        if number == len(rounds):
            return t.CallToolResult(
                content=[text(f"state-ok {[answer.model_dump() for answer in answers.values()]}")]
            )
    return t.InputRequiredResult(
        input_requests=rounds[number], request_state=str(number) if stateful else None
    )


RESOURCES: dict[str, t.TextResourceContents | t.BlobResourceContents] = {
    "test://static-text": t.TextResourceContents(
        uri="test://static-text",
        mime_type="text/plain",
        text="This is the content of the static text resource.",
    ),
    "test://static-binary": t.BlobResourceContents(
        uri="test://static-binary", mime_type="image/png", blob=PNG
    ),
    "test://template/123/data": t.TextResourceContents(
        uri="test://template/123/data",
        mime_type="application/json",
        text='{"id":"123","templateTest":true,"data":"Data for ID: 123"}',
    ),
    "test://watched-resource": t.TextResourceContents(
        uri="test://watched-resource", mime_type="text/plain", text="Watched"
    ),
}


async def list_resources(ctx: Context, params: Any) -> t.ListResourcesResult:
    return t.ListResourcesResult(
        resources=[
            t.Resource(uri=uri, name=uri, description=uri, mime_type=content.mime_type)
            for uri, content in RESOURCES.items()
            if "template" not in uri
        ]
    )


async def list_templates(ctx: Context, params: Any) -> t.ListResourceTemplatesResult:
    template = t.ResourceTemplate(
        uri_template="test://template/{id}/data", name="template", description="By id"
    )
    return t.ListResourceTemplatesResult(resource_templates=[template])


async def read_resource(ctx: Context, params: t.ReadResourceRequestParams) -> t.ReadResourceResult:
    if str(params.uri) not in RESOURCES:
        raise Invalid("Resource not found", uri=str(params.uri))
    return t.ReadResourceResult(contents=[RESOURCES[str(params.uri)]])


async def accept(ctx: Context, params: Any) -> t.EmptyResult:
    return t.EmptyResult()


PROMPTS = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_image": (),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_input_required_result_prompt": (),
}


async def list_prompts(ctx: Context, params: Any) -> t.ListPromptsResult:
    return t.ListPromptsResult(
        prompts=[
            t.Prompt(
                name=name,
                description=f"Fixture {name}",
                arguments=[
                    t.PromptArgument(name=argument, required=True) for argument in arguments
                ],
            )
            for name, arguments in PROMPTS.items()
        ]
    )


async def get_prompt(
    ctx: Context, params: t.GetPromptRequestParams
) -> t.GetPromptResult | t.InputRequiredResult:
    arguments = params.arguments or {}
    contents: list[Any] = [text("This is a simple prompt for testing.")]
    match params.name:
        case "test_prompt_with_arguments":
            contents = [
                text(
                    f"Prompt with arguments: arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'"
                )
            ]
        case "test_prompt_with_image":
            contents = [IMAGE, text("Please analyze the image above.")]
        case "test_prompt_with_embedded_resource":
            resource = embedded(
                arguments["resourceUri"], "text/plain", "Embedded resource content for testing."
            )
            contents = [resource, text("Please process the embedded resource above.")]
        case "test_input_required_result_prompt" if "user_context" not in (
            params.input_responses or {}
        ):
            question = ask("What context should the prompt use?", context=STRING)
            return t.InputRequiredResult(input_requests={"user_context": question})
    return t.GetPromptResult(
        messages=[t.PromptMessage(role="user", content=content) for content in contents]
    )


async def complete(ctx: Context, params: Any) -> t.CompleteResult:
    return t.CompleteResult(
        completion=t.Completion(values=["paris", "park", "party"], total=3, has_more=False)
    )


class AnybodyMayCall:
    """In place of core's Access: the suite has no token to send."""

    async def identify(self, bearer: str | None, *, mcp: bool = False) -> Caller:
        return Caller("library", "person", "anybody")

    async def request(self, caller: Caller, *, mcp: bool = False) -> None:
        return None


class Library:
    """Our own handlers, for the owner of a new library."""

    endpoint: Endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.endpoint(scope, receive, send)

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        with tempfile.TemporaryDirectory() as folder:
            async with open_app(Settings(data_dir=Path(folder), embedder="static")) as services:
                person = await services.people.ensure_owner()
                owner = Caller(person.id, person.id, person.name, frozenset(Capability))

                async def get_caller(_: Context) -> Caller:
                    return owner

                self.endpoint = Endpoint(Toolset(ALL_TOOLS, services).server(get_caller))
                async with self.endpoint.run():
                    yield


def fixture_app() -> Starlette:
    server = new_server(
        "Fixtures of the conformance suite.",
        "https://example.org",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_completion=complete,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=accept,
        on_unsubscribe_resource=accept,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_set_logging_level=accept,
    )
    server.middleware.append(
        RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="fixture")
    )
    stateless, stateful = Endpoint(server), Endpoint(server, stateful=True)
    library = Library()

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with stateless.run(), stateful.run(), library.run():
            yield

    gate: Any = Middleware(Gate, AnybodyMayCall(), Settings())
    routes = [Route("/mcp", stateless), Route("/sessions", stateful), Route("/library", library)]
    return Starlette(routes=routes, middleware=[gate], lifespan=lifespan)


if __name__ == "__main__":
    uvicorn.run(fixture_app(), port=int(sys.argv[1]), log_level="warning")
