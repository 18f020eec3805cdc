"""What every command shares: its options, how it reaches the application, and how it fails."""

import inspect
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from commonplace.errors import CommonplaceError, ConfigurationError, ForbiddenScope, Invalid
from commonplace.model import Caller
from commonplace.settings import PREFIX, Settings

if TYPE_CHECKING:  # it brings every adapter along, and `--help` should not wait for them
    from pydantic import BaseModel

    from commonplace.core.services import Services

log = logging.getLogger(__name__)
Command = Callable[..., Coroutine[Any, Any, None]]
Asked = TypeVar("Asked", bound="BaseModel")

DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        help="Data folder; overrides COMMONPLACE_DATA_DIR.",
        rich_help_panel="Everywhere",
    ),
]
Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        envvar=PREFIX + "TOKEN",
        help="Act as this token instead of the owner.",
        rich_help_panel="Everywhere",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel="Everywhere")]
_SHARED = {"data_dir": (DataDir, None), "token": (Token, None), "as_json": (AsJson, False)}


@dataclass(frozen=True, slots=True)
class Desk:
    """Where a command works: the settings, who asks, and how to answer."""

    settings: Settings
    token: str | None
    as_json: bool

    @asynccontextmanager
    async def open(self, workers: int = 0) -> "AsyncIterator[tuple[Services, Caller]]":
        """The application, and the caller: the owner, or whom the token belongs to."""
        from commonplace.app import open_app

        async with open_app(self.settings, workers=workers) as app:
            await app.people.ensure_owner()
            yield app, await self.caller(app)

    async def caller(self, app: "Services") -> Caller:
        """Who asks, as of now: a token may have been revoked since the last time."""
        caller = await app.access.identify(self.token) if self.token else await app.access.owner()
        assert caller is not None
        return caller

    def require_owner(self) -> None:
        """For what concerns the whole installation."""
        if self.token:
            raise ForbiddenScope(
                "Only the owner can do this: leave out --token and COMMONPLACE_TOKEN."
            )


def item_argument(metavar: str | None = None) -> Any:
    """The argument that says which item is meant."""
    return typer.Argument(metavar=metavar, help="Id, public id or entity id.", show_default=False)


def command(group: typer.Typer, name: str, **extra: Any) -> Callable[[Command], Command]:
    """Register `async def function(desk, ...)`. The shared options are added, the desk is made from them."""

    def register(function: Command) -> Command:
        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]

        def run(**values: Any) -> None:
            data_dir, token, as_json = (values.pop(shared) for shared in _SHARED)
            _run(lambda: function(Desk(_settings(data_dir), token, as_json), **_texts(values)))

        shared = [
            inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
            for key, (kind, default) in _SHARED.items()
        ]
        parameters = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own
        ] + shared
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        group.command(name, help=inspect.getdoc(function), **extra)(run)
        return function

    return register


def _texts(values: dict[str, Any]) -> dict[str, Any]:
    """The shell's bytes that are no text, which Python keeps as lone surrogates, fail here: paths alone may have them."""
    for value in values.values():
        if isinstance(value, str):
            value.encode()
    return values


def _settings(data_dir: Path | None) -> Settings:
    settings = Settings.from_env(os.environ, data_dir=data_dir)
    level = settings.log_level.upper()
    if level not in ("DEBUG", "INFO", "WARNING", "ERROR"):
        raise ConfigurationError(
            f"COMMONPLACE_LOG_LEVEL must be debug, info, warning or error, not {settings.log_level!r}."
        )
    logging.basicConfig(
        level=level, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    return settings


def _run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    import asyncio

    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(work())
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


def asked(shape: "type[Asked]", **values: Any) -> "Asked":
    """What was asked for in the shape that all faces share, or what is wrong with it, by the option's name."""
    from pydantic import ValidationError

    from commonplace.interfaces.actions.validation_messages import mistake

    try:
        return shape.model_validate(values, strict=False)
    except ValidationError as error:
        first = error.errors()[0]
        where = " ".join(f"--{part}" for part in first["loc"])
        raise Invalid(
            f"{first['ctx']['error']}." if not where else f"{where} {mistake(first)}."
        ) from None


def _loop_factory() -> Any:
    """uvloop where there is one; None: asyncio's own."""
    from importlib.util import find_spec

    if find_spec("uvloop") is None:
        return None
    import uvloop

    return uvloop.new_event_loop


def complain(message: str) -> None:
    typer.echo(message, err=True)
    raise typer.Exit(1)
