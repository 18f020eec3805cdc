"""A house whose server listens on a port, for programs outside this process."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from anyio.from_thread import start_blocking_portal

from tests.interfaces.house import House, open_house


@contextmanager
def live_house(data_dir: Path, **settings: Any) -> Iterator[tuple[str, House]]:
    """The address of a server without limits, and its house."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        start_blocking_portal("asyncio") as portal,
        portal.wrap_async_context_manager(
            open_house(data_dir, port=listener.getsockname()[1], **settings)
        ) as house,
    ):
        server = uvicorn.Server(uvicorn.Config(house.asgi, lifespan="off", log_level="warning"))
        running = portal.start_task_soon(server.serve, [listener])
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", house
        finally:
            server.should_exit = True
            running.result()
