"""serve, mcp, worker."""

import asyncio
import errno
import gc
import json
import os
import signal
import socket
import sys
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from commonplace import __version__
from commonplace.core.people.client_setup import MCP_PATH, Client, address, instructions
from commonplace.errors import CommonplaceError, ConfigurationError
from commonplace.hooks import SERVER_FILE
from commonplace.interfaces.cli import output
from commonplace.interfaces.cli.client_files import write_private
from commonplace.interfaces.cli.command import CommandContext, Commands
from commonplace.model import now
from commonplace.telemetry import exporting

if TYPE_CHECKING:
    from commonplace.core.services import Services

STOPPING = (signal.SIGINT, signal.SIGTERM)
# That whoever answers waits for a thread that works in the background, instead of five times
# that.
SWITCH_SECONDS = 0.001


async def serve(
    context: CommandContext,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.")
    ] = None,
    browser: Annotated[
        bool, typer.Option("--browser", help="Open the library in a browser.")
    ] = False,
) -> None:
    """Run the server: web app, MCP, REST and job workers."""
    sys.setswitchinterval(SWITCH_SECONDS)
    # Until all is imported and set up: none of it goes away, and looking for what does takes
    # a tenth of the time.
    gc.disable()
    listener = _listen(
        host or context.settings.host, context.settings.port if port is None else port
    )
    settings = replace(
        context.settings, host=host or context.settings.host, port=listener.getsockname()[1]
    )
    with listener, exporting(__version__):
        async with replace(context, settings=settings, token=None).open(settings.workers) as (
            app,
            _,
        ):
            await app.store.check(trusting=True)
            secret = await app.people.first_token()
            claim = await app.accounts.first_invitation()
            url = address(settings)
            with server_file(settings.data_dir, url):
                await _beside(
                    app.models.keep_trying(output.note),
                    _http(app, listener, lambda: _greet(context, url, secret, claim, browser)),
                )


async def mcp(context: CommandContext) -> None:
    """Serve MCP over standard input and output, for desktop clients."""
    from commonplace.app import serve_stdio

    sys.setswitchinterval(SWITCH_SECONDS)
    async with context.open(workers=min(1, context.settings.workers)) as (app, _):
        serving = asyncio.create_task(serve_stdio(app, lambda: context.find_caller(app)))
        told = asyncio.create_task(_stop_signal().wait())
        ended = asyncio.wait([serving, told], return_when=asyncio.FIRST_COMPLETED)
        await _beside(_prepare(app), ended)
    if not serving.done():
        os._exit(0)  # a thread still waits for a line of standard input, and nothing can wake it
    told.cancel()
    await serving


async def worker(context: CommandContext) -> None:
    """Run jobs outside the server, on this or another machine."""
    with exporting(__version__):
        async with replace(context, token=None).open(workers=1) as (app, _):
            told = _stop_signal()
            output.note("Working on jobs.")
            await _beside(app.models.keep_trying(output.note), told.wait())


@contextmanager
def server_file(data_dir: Path, url: str) -> Iterator[None]:
    """Tell `connect` and hooks where the server of this data folder listens, while it does."""
    file, pid = data_dir / SERVER_FILE, os.getpid()
    facts = {"url": url, "pid": pid, "started_at": now().isoformat()}
    with suppress(OSError):  # with Postgres, the folder may be read-only
        write_private(file, json.dumps(facts).encode())
    try:
        yield
    finally:
        with suppress(OSError, ValueError):  # missing, or of a server that took its place
            if json.loads(file.read_text())["pid"] == pid:
                file.unlink()


def _listen(host: str, port: int) -> socket.socket:
    """Bind the port before anything is opened, so that a second server fails at once."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ConfigurationError(
                f"Port {port} is in use, perhaps by another `commonplace serve`. Stop that, "
                f"or choose another port: commonplace serve --port {port + 1}"
            ) from error
        raise ConfigurationError(f"Cannot listen on {host}:{port}: {error.strerror}.") from error


def _greet(
    context: CommandContext, url: str, secret: str | None, claim: str | None, browser: bool
) -> None:
    made = instructions(Client.CLAUDE_CODE, url, "", context.settings)
    link = f"{url}/claim/{claim}" if claim else None
    facts = {
        "address": url,
        "mcp": url + MCP_PATH,
        "token": secret,
        "connect": made.lines,
        "claim": link,
    }
    lines = [f"Commonplace is at {url} (MCP at {url}{MCP_PATH}, documentation at {url}/docs)"]
    if link:
        lines.append(
            "\nOpen your library in a browser and choose a password (this link works once, "
            f"for a day):\n  {link}"
        )
        if context.settings.public_url:
            lines.append("Until there is a password or passkey, no client can connect with OAuth.")
    lines.append(
        f"\nConnect Claude Code; it signs in with your browser:\n  {made.lines}\n  {made.sign_in}"
        "\nOther clients: commonplace connect --help"
    )
    if secret:
        lines.append(
            f"\nYour token, shown this once: {secret}\nIt has full access for a year, for programs "
            "without a browser. Revoke it under Tokens once you have signed in."
        )
    context.show(facts, "\n".join(lines))
    sys.stdout.flush()
    if browser:
        import webbrowser

        webbrowser.open(link or url)


async def _http(app: "Services", listener: socket.socket, ready: Any) -> None:
    from commonplace.app import make_asgi
    from commonplace.interfaces.http.connections import LimitedServer

    class Server(LimitedServer):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            ready()
            gc.freeze()  # what is there now stays; each collection would look at all of it again
            gc.enable()

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            # uvicorn's own raises the signal again when it is done, and the store
            # would not be closed.
            before = {sign: signal.signal(sign, self.handle_exit) for sign in STOPPING}
            yield
            for sign, handler in before.items():
                signal.signal(sign, handler)

    await Server(make_asgi(app), app.settings, timeout_graceful_shutdown=5).serve([listener])


async def _prepare(app: "Services") -> None:
    """Load the model and the library before the first search, after downloading what is missing."""
    await app.models.keep_trying(output.note)
    try:
        await app.search.warm()
    except CommonplaceError as error:
        output.note(f"The embedder does not work yet: {error.message}")


async def _beside(first: Coroutine[Any, Any, None], main: Coroutine[Any, Any, Any]) -> None:
    task = asyncio.create_task(first)
    try:
        await main
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def _stop_signal() -> asyncio.Event:
    """Return an event that SIGINT or SIGTERM sets, so that everything is closed in order."""
    told = asyncio.Event()
    for sign in STOPPING:
        asyncio.get_running_loop().add_signal_handler(sign, told.set)
    return told


COMMANDS: Commands = {"serve": serve, "mcp": mcp, "worker": worker}
