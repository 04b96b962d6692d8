"""`vigil mcp sign-in`, `vigil mcp sign-out`: a person lets agents use a server in their name.

A link is printed. What the browser comes back with is taken by a listener on this machine's
loopback; where the browser is on another machine, by the address that it ends at, which the person
pastes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Collection
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import urlsplit

import typer

from vigil import distribution
from vigil.errors import ConfigError
from vigil.settings import config
from vigil.settings.config import Settings
from vigil.settings.servers import McpServer
from vigil.subjects import check_part
from vigil.words.nearest import meant

from .. import completion, exits, output
from ..tables import Result

if TYPE_CHECKING:
    from vigil.oauth.signing_in import SigningIn

Server = Annotated[
    str,
    typer.Argument(
        metavar="SERVER", help="NAME of [mcp.NAME].", autocompletion=completion.named("mcp")
    ),
]
PATH: Final = "/back"
HEAD_BYTES_MAX: Final = 16 * 1024
_PAGE: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=utf-8\r\nconnection: close\r\n"
    b"cache-control: no-store\r\nreferrer-policy: no-referrer\r\n\r\n"
    b"Vigil has it. You can close this page, and go on where you began.\n"
)
_NOT_FOUND: Final = b"HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


def sign_in(
    server: Server,
    port: Annotated[
        int, typer.Option(help="Where the browser comes back to, on 127.0.0.1. Default: any.")
    ] = 0,
) -> Result:
    """Sign in to a server by its own page, in a browser (OAuth).

    Prints a link. If the browser is on another machine, paste the address here at which it ends.
    """
    settings = config.load()
    section = _known(settings, server)
    try:
        asyncio.run(sign_in_to(settings, server, section, port))
    except ModuleNotFoundError as error:
        raise ConfigError(f"this needs {error.name}: {distribution.command_for()}") from error
    text = f"Signed in. `vigil mcp servers` shows what {server} offers."
    return Result({"name": server, "signed_in": True}, partial(output.data, text))


def sign_out(server: Server) -> Result:
    """End a sign-in, here and at the server that gave its tokens."""
    settings = config.load()
    section = _known(settings, server)
    from vigil.oauth import kept

    if not kept.path_of(settings.home, server).exists():
        raise exits.NotReady(f"nobody is signed in to {server}")
    from vigil.oauth.sign_out import sign_out as end

    is_done = asyncio.run(
        end(settings.home, server, section.url, allow_private=section.allow_private)
    )
    text = "Signed out." if is_done else "Signed out here; there it ends when its tokens expire."
    return Result({"name": server, "revoked": is_done}, partial(output.data, text))


def _known(settings: Settings, name: str) -> McpServer:
    """Return the section of a server with a URL. Raises: NotReady, ConfigError."""
    section = settings.config.mcp.get(check_part("server", name))
    if section is None:
        hint = meant(name, sorted(settings.config.mcp))
        raise exits.NotReady(f"there is no [mcp.{name}] in {settings.file}{hint}")
    if not section.url:
        raise ConfigError(f"{name} is a program, which nobody signs in to")
    return section


async def sign_in_to(settings: Settings, name: str, section: McpServer, port: int) -> None:
    """Print a link, and wait for what comes of it. Raises: SignInFailed, ConfigError."""
    from vigil.oauth.signing_in import SigningIn

    loop = asyncio.get_running_loop()
    asked: asyncio.Future[str] = loop.create_future()
    states: set[str] = set()
    async with _listening(port, asked, states) as found:
        back = f"http://127.0.0.1:{found}{PATH}"
        signing_in = SigningIn(settings.home, name, section, back)
        try:
            link = await signing_in.begin()
            states.add(signing_in.state)
            output.message(f"Open this in a browser, and agree there:\n\n  {link}\n")
            output.message("Browser elsewhere? Paste the address at which it ends:")
            await _back(signing_in, asked)
        finally:
            await signing_in.close()


async def _back(signing_in: SigningIn, asked: asyncio.Future[str]) -> None:
    """Wait for what the browser comes back with, by whichever way."""
    from vigil.oauth.signing_in import came_back

    loop = asyncio.get_running_loop()

    def read() -> None:
        line = os.read(sys.stdin.fileno(), 65536)
        if not line:
            loop.remove_reader(sys.stdin.fileno())
        elif (
            query := urlsplit(line.decode("utf-8", "replace").strip()).query
        ) and not asked.done():
            asked.set_result(query)

    with contextlib.suppress(OSError, ValueError, NotImplementedError):
        loop.add_reader(sys.stdin.fileno(), read)
    finishing = asyncio.create_task(signing_in.finish())
    try:
        await asyncio.wait((finishing, asked), return_when=asyncio.FIRST_COMPLETED)
        if asked.done():
            signing_in.come_back(came_back(asked.result()))
        await finishing
    finally:
        with contextlib.suppress(OSError, ValueError, NotImplementedError):
            loop.remove_reader(sys.stdin.fileno())


@contextlib.asynccontextmanager
async def _listening(
    port: int, asked: asyncio.Future[str], states: Collection[str]
) -> AsyncIterator[int]:
    """Listen on loopback for the browser -> the port.

    Args:
        states: of what may come back: any page may send a browser here with another one.
    """
    from vigil.oauth.signing_in import came_back

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = (await reader.readuntil(b"\r\n")).decode("latin-1").split(" ")
            target = urlsplit(line[1] if len(line) == 3 else "")
            is_it = line[0] == "GET" and target.path == PATH
            is_it = is_it and came_back(target.query).state in states
            writer.write(_PAGE if is_it else _NOT_FOUND)
            await writer.drain()
            if is_it and not asked.done():
                asked.set_result(target.query)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            return
        finally:
            writer.close()

    try:
        server = await asyncio.start_server(answer, "127.0.0.1", port, limit=HEAD_BYTES_MAX)
    except OSError as error:
        raise ConfigError(f"--port: {port} can't be listened on: {error.strerror}") from error
    async with server:
        yield server.sockets[0].getsockname()[1]
