"""A command line that is added means later what it means in the shell where it was typed."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.support.cli import Cli
from vigil.local.command_lines import resolved


@pytest.fixture
def bin_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is first on the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    return folder


def program(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)
    return file


def test_a_program_and_the_file_that_it_is_given(bin_: Path, tmp_path: Path) -> None:
    """P-2: by its path, and a script of this folder by its own; what is a word stays a word."""
    node = program(bin_ / "node", "")
    (tmp_path / "server.js").touch()
    assert resolved(["node", "--quiet", "server.js", "server.js"]) == [
        str(node), "--quiet", str(tmp_path / "server.js"), "server.js",
    ]  # fmt: skip
    assert resolved(["node", "stdio"]) == [str(node), "stdio"]
    assert resolved(["no-such-program", "server.js"]) == ["no-such-program", "server.js"]
    assert resolved(["sh", "-c", "true"])[0] in ("/usr/bin/sh", "/bin/sh")


def test_what_env_looks_for_is_what_it_is_here(bin_: Path, tmp_path: Path) -> None:
    """P-2: a shell's own node isn't the system's, and `npx` is a script that asks for one."""
    node = program(bin_ / "node", "")
    cli = program(tmp_path / "lib" / "cli.js", "#!/usr/bin/env -S node --no-warnings\n")
    (bin_ / "npx").symlink_to(cli)
    assert resolved(["npx", "-y", "a-server"]) == [str(node), str(cli), "-y", "a-server"]
    node.unlink()
    program(bin_ / "plain", "#!/usr/bin/env sh\n")
    assert resolved(["plain"]) == [str(bin_ / "plain")]


@pytest.mark.parametrize("manager", ["pyenv", "nodenv", "asdf"])
def test_a_stand_in_is_seen_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, manager: str
) -> None:
    """P-2: what a version manager puts on the PATH works only where that manager does."""
    root = tmp_path / f".{manager}"
    real = program(root / "versions" / "3" / "bin" / "node", "")
    which = f'#!/bin/sh\n[ "$1 $2" = "which node" ] && echo "{real}"\n'
    program(root / "bin" / manager, which)
    for name in ("node", "other"):
        program(root / "shims" / name, "#!/bin/sh\nexit 1\n")
    monkeypatch.setenv("PATH", f"{root}/shims:/usr/bin:/bin")
    assert resolved(["node"]) == [str(real)]
    assert resolved(["other"]) == [str(root / "shims" / "other")]


def test_what_is_kept_is_shown(tmp_path: Path, bin_: Path) -> None:
    """P-2: in vigil.toml, and when it is added; so is that there is no such program."""
    node = program(bin_ / "my-node", "")
    (tmp_path / "a server.js").touch()
    cli = Cli(tmp_path / "home", PATH=f"{bin_}:/usr/bin:/bin")
    told = cli("mcp", "add", "files", "--", "my-node", "a server.js").stdout
    assert f"It runs {node} '{tmp_path}/a server.js'" in told
    found = tomllib.loads((cli.home / "vigil.toml").read_text())["mcp"]["files"]
    assert found == {"command": str(node), "args": [str(tmp_path / "a server.js")]}
    program(bin_ / "npx", "")
    assert "npx fetches the program" in cli("mcp", "add", "c", "--", "npx", "a").stdout
    assert "fetches" not in cli("mcp", "add", "d", "--network", "--", "npx", "a").stdout
    assert "No such program here yet: tickets" in cli("mcp", "add", "b", "--", "tickets").stdout
    # An agent of others is added and taken out like a server, and is none.
    cli("a2a", "add", "pine", "https://pine.example", "--risk", "read")
    agents = {"pine": {"url": "https://pine.example", "risk": "read"}}
    assert tomllib.loads((cli.home / "vigil.toml").read_text())["a2a"] == agents
    assert "take another name" in cli("mcp", "add", "pine", "--", "npx", "a", code=None).stderr
    cli("a2a", "remove", "pine")
    assert "pine" not in (cli.home / "vigil.toml").read_text()
