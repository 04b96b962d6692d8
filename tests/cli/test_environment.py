"""Which process of `vigil up` has which secret in its environment: read from the kernel."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.support.cli import Cli, ColdCli, eventually
from tests.support.mcp_client import NASTY
from vigil.topology import SERVICES

CANARIES = {
    "ANTHROPIC_API_KEY": "canary-model",
    "ANTHROPIC_AUTH_TOKEN": "canary-model-token",
    "OPENAI_API_KEY": "canary-other-model",
    "QDRANT_API_KEY": "canary-vectors",
    "EMBEDDER_API_KEY": "canary-embedder",
    "VIGIL_TOKEN": "canary-person",
    "GITHUB_TOKEN": "canary-of-somebody-else",
    "DATABASE_PASSWORD": "canary-of-another",
}
ALLOWED = {
    "cortex": {"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"},
    "memory": {"QDRANT_API_KEY", "EMBEDDER_API_KEY"},
}
SERVER = """
[mcp.nasty]
command = "{python}"
args = ["{script}"]
"""


def below(pid: int) -> dict[int, str]:
    """Return all that a process started, and what that started, with their command lines."""
    lines: dict[int, tuple[int, str]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        lines[int(folder.name)] = (parent, words)
    found: dict[int, str] = {}
    ahead = [pid]
    while ahead:
        one = ahead.pop()
        children = {child: words for child, (parent, words) in lines.items() if parent == one}
        found |= children
        ahead += children
    return found


def leaked(pid: int) -> set[str]:
    """Return the names of the canaries in a process' environment."""
    environment = Path(f"/proc/{pid}/environ").read_bytes()
    return {name for name, value in CANARIES.items() if f"={value}\0".encode() in environment}


@contextlib.contextmanager
def running(home: Path, *args: str) -> Iterator[Cli]:
    """Vigil with an MCP server and all secrets, started by an interpreter of its own."""
    home.mkdir(mode=0o700)
    (home / "vigil.toml").write_text(SERVER.format(python=sys.executable, script=NASTY))
    cli = ColdCli(home, **CANARIES, VIGIL_MODEL="rehearsal")
    try:
        cli("up", "--detach", *args)
        Cli(home)("memory", "save", "tea")  # the vector engine runs once something is stored
        yield cli
    finally:
        cli.end()


def programs(cli: Cli) -> dict[int, str]:
    """Return what runs in the home beside the services: once the last of it has started."""
    wanted = ("nats-server", "vectors.engine", "nasty.py")
    pid = cli.run_state.pid
    Cli(cli.home)("memory", "save", "has a cat")  # the vector engine starts with the first
    eventually(lambda: all(any(w in line for line in below(pid).values()) for w in wanted))
    services = cli.run_state.services.values()
    return {one: line for one, line in below(pid).items() if one not in services}


def test_programs_get_no_secret_and_services_their_own(tmp_path: Path) -> None:
    """S-5: broker, vector engine and MCP programs have no key; a service only what it reads."""
    with running(tmp_path / "home", "--processes=6") as cli:
        services = cli.run_state.services
        assert {name: leaked(services[name]) for name in SERVICES} == {
            name: ALLOWED.get(name, set()) for name in SERVICES
        }
        assert {line: leaked(pid) for pid, line in programs(cli).items() if leaked(pid)} == {}


def test_programs_get_no_secret_of_services_in_one_process(tmp_path: Path) -> None:
    """S-5: in one process the cortex has the key; what that process starts has it not."""
    with running(tmp_path / "home") as cli:
        assert leaked(cli.run_state.pid) == set(CANARIES), "the test can see one"
        assert {line: leaked(pid) for pid, line in programs(cli).items() if leaked(pid)} == {}
