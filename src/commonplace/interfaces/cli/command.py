"""Shared parts of all commands: common options, opening the application, output, errors."""

import inspect
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from commonplace import logs
from commonplace.errors import CommonplaceError, ForbiddenScope
from commonplace.interfaces.cli import output
from commonplace.model import Caller
from commonplace.settings import PREFIX, Settings

if TYPE_CHECKING:  # it brings every adapter along, and `--help` should not wait for them
    from commonplace.core.services import Services

log = logging.getLogger(__name__)
Command = Callable[..., Coroutine[Any, Any, None]]
Commands = Mapping[str, Command]  # by path, such as `task add`

PANEL = "Everywhere"
_SHARED: dict[str, tuple[Any, Any]] = {  # options of every command: type and default
    "data_dir": (
        Annotated[
            Path | None,
            typer.Option(
                help="Data folder; overrides COMMONPLACE_DATA_DIR.", rich_help_panel=PANEL
            ),
        ],
        None,
    ),
    "token": (
        Annotated[
            str | None,
            typer.Option(
                envvar=PREFIX + "TOKEN",
                help="Act as this token instead of the owner.",
                rich_help_panel=PANEL,
            ),
        ],
        None,
    ),
    "as_json": (
        Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=PANEL)],
        False,
    ),
}


@dataclass(frozen=True, slots=True)
class CommandContext:
    """The common options of a command, for one that opens the application itself or not at all."""

    settings: Settings
    token: str | None
    as_json: bool

    @asynccontextmanager
    async def open(self, workers: int = 0) -> "AsyncIterator[tuple[Services, Caller]]":
        """Open the application; yield it and the caller: the owner, or the token's."""
        from commonplace.app import open_app

        async with open_app(self.settings, workers=workers) as app:
            await app.people.ensure_owner()
            yield app, await self.find_caller(app)

    async def find_caller(self, app: "Services") -> Caller:
        """Return the caller as of now: a token may have been revoked since the last time."""
        caller = await app.access.identify(self.token) if self.token else await app.access.owner()
        assert caller is not None
        return caller

    def require_owner(self) -> None:
        """Refuse tokens: the command concerns the whole installation."""
        if self.token:
            raise ForbiddenScope(
                "Only the owner can do this: leave out --token and COMMONPLACE_TOKEN."
            )

    def show(self, value: Any, text: str | Callable[[], None]) -> None:
        """Print `value` as JSON with --json; otherwise `text`, or what it prints."""
        if self.as_json:
            output.as_json(value)
        elif callable(text):
            text()
        else:
            output.text(text)


@dataclass(frozen=True, slots=True)
class Session(CommandContext):
    """An open application, and the caller of the command."""

    services: "Services"
    caller: Caller


def make_command(path: str, function: Command) -> Any:
    """Make a command of `async def function(context, ...)`, with the common options.

    One whose first parameter is a Session runs within the opened application. Its parameter `given`
    stands for the fields of the path's actions but those that it takes itself, and receives the
    values that are there.
    """
    context, *own = inspect.signature(function).parameters.values()
    names = {each.name for each in own}
    fields: dict[str, inspect.Parameter] = {}
    if "given" in names:
        from commonplace.interfaces.cli.generated import fields_of

        fields = {name: each for name, each in fields_of(path).items() if name not in names}

    async def call(values: dict[str, Any]) -> None:
        data_dir, as_json = values.pop("data_dir"), values.pop("as_json")
        token = os.environ.get(PREFIX + "TOKEN") if "token" in names else values.pop("token")
        start = CommandContext(_settings(data_dir), token, as_json)
        for value in values.values():
            if isinstance(value, str):
                value.encode()  # fails on bytes that are not UTF-8, kept as lone surrogates
        if "given" in names:
            given = {name: values.pop(name) for name in fields}
            values["given"] = {name: each for name, each in given.items() if each is not None}
        if context.annotation is not Session:
            await function(start, **values)
            return
        async with start.open() as (services, caller):
            await function(Session(start.settings, token, as_json, services, caller), **values)

    def run(**values: Any) -> None:
        _run(call(values))

    parameters: list[inspect.Parameter] = []
    for each in own:
        parameters += fields.values() if each.name == "given" else [each]
    shared = [
        inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for key, (kind, default) in _SHARED.items()
        if key not in names  # `connect` has a --token of its own
    ]
    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters] + shared
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    alone = typer.Typer(add_completion=False)
    alone.command(path.split()[-1], help=inspect.getdoc(function))(run)
    return typer.main.get_command(alone)


def _settings(data_dir: Path | None) -> Settings:
    settings = Settings.from_env(os.environ, data_dir=data_dir)
    logs.configure(settings.log_level, settings.log_format)
    return settings


def _run(work: Coroutine[Any, Any, None]) -> None:
    import asyncio

    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(work)
        sys.stdout.flush()
    except CommonplaceError as error:
        complain(error.message)
    except UnicodeEncodeError:
        complain("An argument is not UTF-8 text.")
    except BrokenPipeError:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # else Python complains once more at its exit
        raise typer.Exit(1) from None
    except OSError as error:
        complain(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}.")
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except Exception as error:
        log.debug("unexpected", exc_info=error)
        complain(
            f"Unexpected {type(error).__name__}: {error} (COMMONPLACE_LOG_LEVEL=debug shows where)."
        )


def _loop_factory() -> Any:
    """Return uvloop's where it is installed; None means asyncio's own."""
    from importlib.util import find_spec

    if find_spec("uvloop") is None:
        return None
    import uvloop

    return uvloop.new_event_loop


def complain(message: str) -> None:
    typer.echo(message, err=True)
    raise typer.Exit(1)
