"""Clients of others with Vigil's own MCP server: each lists its tools, saves a memory, finds it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from tests.support.cli import Cli, running_vigil

from . import installed

PROGRAMS: Final = Path(__file__).parent / "programs"
PATIENCE_S: Final = 120.0
PARROT: Final = "Kiwi"


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """A program of others that uses MCP servers."""

    name: str
    package: str
    version: str
    program: str
    """A file of `programs`; of Node if it ends so."""
    extra: str = ""
    way: str = "HTTP"

    @property
    def is_node(self) -> bool:
        return self.program.endswith(".mjs")


CLIENTS: Final = (
    Host(name="sdk-2", package="mcp", version="2.3.0", program="sdk_2.py"),
    Host(name="sdk-1", package="mcp", version="1.30.0", program="sdk_1.py", way="stdio"),
    Host(name="sdk-ts", package="@modelcontextprotocol/sdk", version="1.32.2", program="sdk.mjs"),
    Host(name="fastmcp", package="fastmcp", version="4.1.6", program="fastmcp_client.py"),
    Host(
        name="langchain", package="langchain-mcp-adapters", version="0.3.2",
        program="langchain_client.py",
    ),
    Host(
        name="openai-agents", package="openai-agents", version="0.24.0",
        program="openai_agents.py",
    ),
    Host(
        name="pydantic-ai", package="pydantic-ai-slim", version="2.68.0", extra="[mcp]",
        program="pydantic_client.py",
    ),
    Host(name="mcp-use", package="mcp-use", version="1.7.1", program="mcp_use_client.py"),
    Host(name="ai-sdk", package="@ai-sdk/mcp", version="2.0.99", program="ai_sdk.mjs"),
)  # fmt: skip


class Went(msgspec.Struct, kw_only=True):
    """What came of one client."""

    host: Host
    protocol: str = ""
    tools: int = 0
    problem: str = ""


def run(hosts: Sequence[Host], folder: Path) -> Iterator[Went]:
    """Run each with one Vigil, one after the other."""
    with running_vigil(folder / "home") as cli:
        for host in hosts:
            went = Went(host=host)
            try:
                told = _told(cli, host, folder)
                went.protocol, went.tools = told.get("protocol", ""), len(told["tools"])
                if PARROT not in told["found"]:
                    went.problem = f"it found {told['found'][:500]}"
            except (installed.NotInstalled, AssertionError, subprocess.TimeoutExpired) as error:
                went.problem = str(error)
            yield went


def _told(cli: Cli, host: Host, folder: Path) -> dict[str, Any]:
    """Run a program to its end; return what it printed. Raises: AssertionError, NotInstalled."""
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "VIGIL": str(Path(sys.executable).with_name("vigil")),
        "VIGIL_HOME": str(cli.home),
        "VIGIL_URL": cli.run_state.url,
        "VIGIL_MCP": f"{cli.run_state.url}/mcp",
        "VIGIL_TOKEN": (cli.home / "token").read_text().strip(),
        "SAYS": f"The parrot of {host.name} is called {PARROT}.",
        "MCP_USE_ANONYMIZED_TELEMETRY": "false",
    }
    if host.is_node:
        # Modules are looked for beside the program, so it's where they are.
        program = installed.of_npm().parent / host.program
        shutil.copy(PROGRAMS / host.program, program)
        command = [shutil.which("node") or "node", str(program)]
    else:
        pins = [f"{host.package}{host.extra}=={host.version}"]
        bin_ = installed.of_pypi(f"client-{host.name}", pins)
        command = [str(bin_ / "python"), str(PROGRAMS / host.program)]
    done = subprocess.run(
        command, env=environ, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S,
        check=False,
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    assert lines, f"ended with {done.returncode}: {done.stderr[-800:]}"
    told: dict[str, Any] = json.loads(lines[-1])
    return told
