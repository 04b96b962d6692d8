"""uvicorn, run by us: our socket, our signals, our protocols."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from uvicorn.config import Config
from uvicorn.server import Server as UvicornServer

from vigil.errors import ConfigError
from vigil.net.endpoint import shown_endpoint
from vigil.settings.sections import Gateway

from .connections import Connections, bounds_of
from .decide import LOOPBACK
from .protocol import Deadlines, Protocol, SocketProtocol
from .responses import leave_out_mistakes

STALLED_MS: Final = 30_000
FILES_MAX: Final = 65_536
FILES_ELSEWHERE: Final = 8_192
"""Where the system has no such limit."""
STOP_GRACE_S: Final = 5
REST_S: Final = 75.0
"""Between two requests of somebody signed in."""
WAITING_MAX: Final = 2048
"""Connections that wait to be accepted, and are all accepted at once."""


class Server(UvicornServer):
    """uvicorn's server, which leaves signals to whoever runs the process.

    It is told when to end, where uvicorn looks ten times a second.
    """

    def __init__(self, config: Config, on_listening: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_listening = on_listening
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Ask it to end."""
        self.should_exit = True
        self._stopping.set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_listening()

    async def main_loop(self) -> None:
        # What uvicorn does meanwhile is to make the date of all answers anew: `Protocol` does.
        await self._stopping.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self.server_state.connections or self.server_state.tasks:
            await super().shutdown(sockets)
            return
        # Nobody is connected: uvicorn would wait 0.1 s for them all the same.
        for server in self.servers:
            server.close()
            await server.wait_closed()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def raise_file_limit() -> int:
    """Let this process have as many open sockets as the system allows it (often 1,024 else).

    Returns how many that are, with all other files.
    """
    if sys.platform == "win32":
        return FILES_ELSEWHERE
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_MAX if hard == resource.RLIM_INFINITY else min(hard, FILES_MAX)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted if soft < wanted else FILES_MAX if soft == resource.RLIM_INFINITY else soft


def listen(config: Gateway) -> socket.socket:
    """Bind the address.

    Raises:
        ConfigError: it's not loopback and `gateway.allow_public` isn't set, or can't be bound.
    """
    if not _is_loopback(config.host) and not config.allow_public:
        raise ConfigError(
            f"gateway.host {config.host!r} is not loopback: set gateway.allow_public = true "
            "to listen there, behind TLS"
        )
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    # With the protocol spelled out: asyncio turns Nagle's delay (40 ms an answer) off only then.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if sys.platform == "linux":
            # A peer that takes nothing for that long is gone: don't keep its data for ever.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, STALLED_MS)
        listener.bind((config.host, config.port))
    except OSError as error:
        listener.close()
        where = shown_endpoint(config.host, config.port)
        raise ConfigError(f"the gateway can't listen on {where}: {error.strerror}") from error
    listener.setblocking(False)
    return listener


def _is_loopback(host: str) -> bool:
    return host in LOOPBACK or host.startswith("127.")


def server_for(
    app: Any, config: Gateway, files_max: int, on_listening: Callable[[], None]
) -> Server:
    """Return a server for the ASGI application `app`, in a process with `files_max` files."""
    leave_out_mistakes()
    connections = Connections(
        bounds_of(config.connections_max, config.strangers_of_address_max, files_max)
    )
    deadlines = Deadlines(head_s=config.head_timeout_s, body_s=config.body_timeout_s, rest_s=REST_S)
    protocol: Any = partial(Protocol, connections=connections, deadlines=deadlines)
    socket_protocol: Any = partial(SocketProtocol, connections=connections)
    return Server(
        Config(
            app,
            http=protocol,
            ws=socket_protocol,
            ws_max_size=config.body_bytes_max,
            ws_per_message_deflate=False,
            loop="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            backlog=min(WAITING_MAX, files_max // 8),
            timeout_keep_alive=int(REST_S),
            timeout_graceful_shutdown=STOP_GRACE_S,
        ),
        on_listening,
    )
