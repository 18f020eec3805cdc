"""Tokens: create, list, revoke. A secret is shown once."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field, model_validator
from typing_extensions import TypedDict

from commonplace.core.people.tokens import DEFAULT_EXPIRY_DAYS, NewToken
from commonplace.interfaces.actions import people as people_shapes
from commonplace.interfaces.actions.items import Input, Name, whole_number
from commonplace.interfaces.rest.routes import OK, ApiRequest, Id, Ok, api_router

router = api_router("tokens")


class TokenRequest(Input):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"name": "laptop agent", "write": True, "expires_days": 90}],
            "not": {"required": ["write", "capabilities"]},
        }
    )

    name: Name
    write: Annotated[bool | None, Field(description="Short for capabilities read and write")] = None
    capabilities: Annotated[
        list[Literal["read", "write"]] | None,
        Field(max_length=2, description="`read` always goes with it"),
    ] = None
    folder_ids: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=200)]] | None,
        Field(
            min_length=1,
            max_length=100,
            description="Folders it sees, for good; left out: the whole library",
        ),
    ] = None
    kb_only: Annotated[bool, Field(description="It sees only what is in the KB")] = False
    expires_days: Annotated[
        Annotated[int, Field(ge=1, le=36_500), BeforeValidator(whole_number)] | None,
        Field(description="null: it never expires"),
    ] = DEFAULT_EXPIRY_DAYS

    @model_validator(mode="after")
    def _check_one_field(self) -> "TokenRequest":
        if {"write", "capabilities"} <= self.model_fields_set:
            raise ValueError("say `write` or `capabilities`, not both")
        return self

    def new_token(self) -> NewToken:
        write = self.write or "write" in (self.capabilities or ())
        return NewToken(
            self.name,
            write,
            None if self.folder_ids is None else tuple(self.folder_ids),
            self.kb_only,
            self.expires_days,
        )


class NewTokenAnswer(people_shapes.Token):
    token: str


class Tokens(TypedDict):
    tokens: list[people_shapes.Token]
    total: int


class TokenActivity(TypedDict):
    events: list[people_shapes.Event]


@router.get("/tokens", summary="List the library's tokens")
async def list_tokens(api: ApiRequest) -> Tokens:
    tokens = await api.services.people.tokens(api.caller)
    return {"tokens": [people_shapes.token(token) for token in tokens], "total": len(tokens)}


@router.post("/tokens", status_code=201, summary="Create a token")
async def create_token(api: ApiRequest, body: TokenRequest) -> NewTokenAnswer:
    """`token` is the secret. Only its hash is stored, so this is the only time that it is shown."""
    token, secret = await api.services.people.create_token(api.caller, body.new_token())
    return {**people_shapes.token(token), "token": secret}


@router.delete("/tokens/{token_id}", summary="Revoke a token")
async def revoke_token(api: ApiRequest, token_id: Id) -> Ok:
    await api.services.people.revoke_token(api.caller, token_id)
    return OK


@router.get("/tokens/{token_id}/activity", summary="List the recent activity of a token")
async def token_activity(api: ApiRequest, token_id: Id) -> TokenActivity:
    return {
        "events": [
            people_shapes.event(event)
            for event in await api.services.people.activity(api.caller, token_id)
        ]
    }
