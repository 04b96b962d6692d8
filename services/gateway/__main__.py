"""The gateway: the edge between people and the bus. HTTP, WebSocket, who may do what.

It decides nothing about conversations and keeps nothing of them: messages go to the log, and
everything shown is read from the log. Any number of replicas may run.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket

import structlog

from vigil import runtime
from vigil.background.end import end_tasks
from vigil.imports import fastapi  # before anything of ours imports it
from vigil.runtime import Context
from vigil.settings.switches import Switches
from vigil.settings.tokens import Tokens

from .app import build
from .contacts.refresher import ContactRefresher
from .events.from_bus import OutsideEvents
from .events.listeners import Listening
from .http.server import listen, raise_file_limit, server_for
from .push.ends import EndedTokens
from .state.edge import Edge
from .work import configured_grants, skills

del fastapi
log = structlog.get_logger("vigil.gateway")


async def serve(context: Context) -> None:
    """Serve until cancelled.

    Raises:
        ConfigError: the address can't or mustn't be used.
    """
    # What uvicorn logs below a warning has query strings in it.
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    files_max = raise_file_limit()
    async with contextlib.AsyncExitStack() as stack:
        listener = _listener(context, stack)
        host, port = listener.getsockname()[:2]
        context.facts |= {"host": host, "port": port}
        tokens = await Tokens.watch(context.bus, context.settings.config.teams)
        stack.push_async_callback(tokens.close)
        switches = await Switches.watch(context.bus)
        stack.push_async_callback(switches.close)
        skills.ensure(context.settings.skills)
        now, is_erasing = context.clock.now(), switches.is_erasing
        await configured_grants.keep(context.bus, context.settings.config, now, is_erasing)
        edge = Edge(context, tokens, switches)
        stack.push_async_callback(edge.close)
        await _serve_http(context, edge, listener, files_max)


def _listener(context: Context, stack: contextlib.AsyncExitStack) -> socket.socket:
    """Return the socket that people come to. Who comes while the gateway begins anew waits there.

    Raises:
        ConfigError: the address can't or mustn't be used.
    """
    listener: socket.socket | None = context.kept.get("listener")
    if listener is None:
        listener = listen(context.settings.config.gateway)
        (context.lasting or stack).enter_context(contextlib.closing(listener))
        context.kept["listener"] = listener
    return listener


async def _serve_http(
    context: Context, edge: Edge, listener: socket.socket, files_max: int
) -> None:
    def announce() -> None:
        facts = context.facts
        log.info("listening", action="gateway.listening", host=facts["host"], port=facts["port"])
        context.ready.set()

    server = server_for(build(edge), edge.config, files_max, announce)
    serving = context.beside(server.serve(sockets=[listener.dup()]), "gateway-http")
    beside = [
        context.beside(edge.cursors.run(), "gateway-cursors"),
        context.beside(OutsideEvents(edge).run(), "gateway-events"),
        context.beside(edge.unkept.run(), "gateway-attachments"),
        context.beside(edge.throttle.follow(), "gateway-throttle"),
        context.beside(Listening(edge).run(), "gateway-hearing"),
        context.beside(ContactRefresher(edge).run(), "gateway-contacts"),
        context.beside(EndedTokens(edge).run(), "gateway-push"),
    ]
    try:
        await asyncio.wait({serving})
    finally:
        edge.stopping.set()
        server.stop()
        with contextlib.suppress(asyncio.CancelledError):
            await serving
        await end_tasks(*beside)


if __name__ == "__main__":
    runtime.main("gateway")
