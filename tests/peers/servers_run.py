"""Servers of others with a Vigil that runs: each added, listed, called by a model, removed.

What a model calls and what it's told goes the whole way: `vigil mcp add`, the sandbox or HTTP, the
shelf, `find_tools`, the call, its result in the talk.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from tests.support.cli import Cli, running_vigil
from tests.support.listening import is_listening
from tests.support.messages_api import messages_api
from vigil import Client
from vigil.broker.ports import free_port

from . import installed, places
from .mind import behave
from .peer import Asked, Peer

PATIENCE_S: Final = 90.0
ENDED_S: Final = 20.0
"""For one that ends as it starts: it won't come."""
SDKS: Final = ("mcp", "fastmcp")
_MODEL: Final = {"ANTHROPIC_API_KEY": "k", "VIGIL_EXECUTOR__MEMORY_BYTES_MAX": str(4 * 2**30)}


class Came(msgspec.Struct, kw_only=True):
    """What came of one server."""

    peer: Peer
    protocol: str = ""
    tools: int = 0
    problem: str = ""
    took_s: float = 0.0
    sdk: str = ""
    told: list[str] = []
    """What wasn't as expected of a call, with what the talk was told."""

    @property
    def is_well(self) -> bool:
        return not self.problem and not self.told


async def run(peers: Sequence[Peer], folder: Path) -> AsyncIterator[Came]:
    """Run each with one Vigil, one after the other."""
    async with messages_api(behave) as api:
        environ = _MODEL | {"ANTHROPIC_BASE_URL": api.url}
        with places.site() as page:
            running = running_vigil(folder / "home", **environ)
            cli = await asyncio.to_thread(running.__enter__)
            try:
                for peer in peers:
                    yield await asyncio.to_thread(_one, cli, peer, folder / peer.name, page)
            finally:
                await asyncio.to_thread(running.__exit__, None, None, None)


def _one(cli: Cli, peer: Peer, work: Path, page: str) -> Came:
    came, begun = Came(peer=peer), time.monotonic()
    try:
        where = _places(peer, work, page)
        places.make_folder(work, page)
        if peer.source == "pypi":
            versions = installed.versions_of(Path(where["bin"]), SDKS)
            came.sdk = ", ".join(f"{name} {version}" for name, version in versions.items())
        with _served(peer, where):
            file = cli.home / "vigil.toml"
            before = file.read_text() if file.exists() else ""
            _added(cli, peer, where)
            try:
                client = Client(cli.run_state.url, (cli.home / "token").read_text().strip())
                _connected(client, peer, came)
                for asked in peer.asked:
                    _ask(client, peer, asked, where, came)
            finally:
                file.write_text(before)  # a running executor ends it
    except (installed.NotInstalled, AssertionError, OSError, subprocess.TimeoutExpired) as error:
        came.problem = str(error)
    came.took_s = round(time.monotonic() - begun, 1)
    return came


def _places(peer: Peer, work: Path, page: str) -> dict[str, str]:
    if peer.source == "npm":
        code = {"modules": str(installed.of_npm())}
    else:
        code = {"bin": str(installed.of_pypi(peer.name, peer.pins))}
    return code | {
        "node": shutil.which("node") or "node",
        "chromium": shutil.which("chromium") or "chromium",
        "port": str(free_port()),
        "work": str(work),
        "page": page,
    }


@contextlib.contextmanager
def _served(peer: Peer, where: dict[str, str]) -> Iterator[None]:
    """Run a server that is reached over HTTP; of others it's Vigil that starts them."""
    if not peer.path:
        yield
        return
    work = Path(where["work"])
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(work)} | _filled(peer.environ, where)
    with (work.parent / f"{peer.name}.log").open("wb") as log:
        process = subprocess.Popen(
            _filled(list(peer.command), where), env=environ, cwd=work, stdout=log, stderr=log,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    try:
        until = time.monotonic() + PATIENCE_S
        while not is_listening(int(where["port"])):
            assert process.poll() is None, f"it ended with {process.returncode}"
            assert time.monotonic() < until, "it doesn't listen"
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _added(cli: Cli, peer: Peer, where: dict[str, str]) -> None:
    if peer.path:
        way = ["--url", f"http://127.0.0.1:{where['port']}{peer.path}", "--allow-private"]
    else:
        variables = [f"--env={name}={value}" for name, value in peer.environ.items()]
        way = [*_filled([*peer.options, *variables], where), "--"]
        way += _filled(list(peer.command), where)
    cli("mcp", "add", peer.name, "--risk", "read", *way)


def _connected(client: Client, peer: Peer, came: Came) -> None:
    """Wait until its tools are there. Raises: AssertionError."""
    begun = time.monotonic()
    found: dict[str, Any] = {}
    while True:
        found = next((one for one in client.tools() if one["source"] == peer.name), {})
        if found.get("tools"):
            break
        problem = found.get("problem", "")
        patience_s = ENDED_S if "exit code" in problem else PATIENCE_S
        assert time.monotonic() < begun + patience_s, f"no tools: {problem or found}"
        time.sleep(0.5)
    came.protocol = found["facts"]["protocol"]
    came.tools = len(found["tools"])
    if found.get("problem"):
        came.told.append(f"`vigil mcp servers` says: {found['problem']}")


def _ask(client: Client, peer: Peer, asked: Asked, where: dict[str, str], came: Came) -> None:
    given = json.dumps(_filled(asked.given, where))
    order = f"call {peer.name}__{asked.tool} {given}"
    answer = client.chat(
        order, user=client.me()["user"], agent="vigil", thread=f"{peer.name}-{asked.tool}"
    )
    told = str(answer.get("response", "no answer in time"))
    if re.search(asked.expects, told) is None:
        came.told.append(f"{asked.tool}: {told[:1500]}")


def _filled(value: Any, where: dict[str, str]) -> Any:
    """Return texts with what stands for places filled in."""
    if isinstance(value, str):
        for name, place in where.items():
            value = value.replace(f"{{{name}}}", place)
        return value
    if isinstance(value, dict):
        return {key: _filled(one, where) for key, one in value.items()}
    return [_filled(one, where) for one in value] if isinstance(value, list | tuple) else value
