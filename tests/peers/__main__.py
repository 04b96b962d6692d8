"""`make peers`: programs of others that speak MCP, each run with a Vigil that runs.

    make peers                          servers, clients, and a model's server
    make peers ARGS="servers time git"  some of them

Prints a row of a table for each, as docs/measured.md has it; exit code 1 if one isn't as expected.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from . import clients, model_servers, servers_run
from .servers import SERVERS
from .servers_run import Came


async def _servers(names: Sequence[str]) -> bool:
    print("| server | of | protocol | by | tools | asked | came |\n|---|---|---|---|---|---|---|")
    peers = [one for one in SERVERS if not names or one.name in names]
    is_well = True
    with tempfile.TemporaryDirectory(prefix="peers-") as folder:
        async for came in servers_run.run(peers, Path(folder)):
            print(_row(came), flush=True)
            is_well = is_well and came.is_well
            for line in (came.problem, *came.told):
                if line:
                    print(f"    {came.peer.name}: {line}", file=sys.stderr, flush=True)
    return is_well


def _clients(names: Sequence[str]) -> bool:
    print("| client | of | protocol | by | tools | came |\n|---|---|---|---|---|---|")
    hosts = [one for one in clients.CLIENTS if not names or one.name in names]
    is_well = True
    with tempfile.TemporaryDirectory(prefix="peers-") as folder:
        for went in clients.run(hosts, Path(folder)):
            host, result = went.host, "not as expected" if went.problem else "as expected"
            cells = (
                f"{host.package} {host.version}", "npm" if host.is_node else "pypi",
                went.protocol, host.way, str(went.tools), result,
            )  # fmt: skip
            print(f"| {' | '.join(cells)} |", flush=True)
            if went.problem:
                is_well = False
                print(f"    {host.name}: {went.problem}", file=sys.stderr, flush=True)
    return is_well


async def _models() -> bool:
    print("| proxy | wire | text | call | schema | too long |\n|---|---|---|---|---|---|")
    is_well = True
    async for wired in model_servers.run():
        cells = [wrong or "as expected" for wrong in wired.wrong.values()]
        print(f"| litellm {model_servers.VERSION} | {wired.wire} | {' | '.join(cells)} |")
        is_well = is_well and not any(wired.wrong.values())
    return is_well


def _row(came: Came) -> str:
    peer = came.peer
    asked = ", ".join(f"`{one.tool}`" for one in peer.asked)
    result = "as expected" if came.is_well else "not as expected"
    cells = (
        f"{peer.package} {peer.version}", peer.source, came.protocol,
        "HTTP" if peer.path else "stdio", str(came.tools), asked,
        f"{result}; {peer.said}" if peer.said else result,
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


async def main(args: Sequence[str]) -> int:
    what, names = (args[0] if args else ""), args[1:]
    is_well = True
    if what in ("", "servers"):
        is_well = await _servers(names)
    if what in ("", "clients"):
        is_well = await asyncio.to_thread(_clients, names) and is_well
    if what in ("", "models"):
        is_well = await _models() and is_well
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
