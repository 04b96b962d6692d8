"""`vigil mcp`: a server is added, one of its tools changes, is approved; the server is removed."""

from __future__ import annotations

import json
import stat
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from services.executor.sandbox import bubblewrap
from tests.support.cli import Cli, eventually, running_vigil
from tests.support.mcp_client import NASTY
from vigil.cli.exits import AlreadyExists, NotReady
from vigil.edits import toml_sections
from vigil.errors import ConfigError

PROGRAM = {"command": sys.executable, "args": [str(NASTY)]}


@pytest.fixture(scope="module")
def vigil(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    if bubblewrap.find() is None:
        pytest.skip("needs bubblewrap")
    with running_vigil(tmp_path_factory.mktemp("mcp") / "home") as cli:
        yield cli


def servers(cli: Cli) -> dict[str, Any]:
    found = json.loads(cli("mcp", "servers", "--json").stdout)["servers"]
    return {one["name"]: one for one in found}


def test_a_server_from_its_addition_to_its_end(vigil: Cli) -> None:
    """P-2, S12: each step as a person takes it, on a Vigil that runs."""
    file = vigil.home / "vigil.toml"
    assert vigil("mcp", "servers").stderr.startswith("No servers: ")
    added = vigil("mcp", "add", "nasty", "--risk", "read", "--", sys.executable, str(NASTY))
    assert str(file) in added.stdout
    eventually(lambda: bool(servers(vigil).get("nasty", {}).get("tools")))
    found = servers(vigil)["nasty"]
    assert found["state"] == "connected"
    assert found["held"] == []
    assert {tool["approved_by"] for tool in found["tools"]} == {"first_sight"}
    assert {tool["risk"] for tool in found["tools"]} == {"read"}
    assert vigil("mcp", "aims", "nasty").stdout.startswith("[mcp.nasty.aims]\n")
    assert vigil("mcp", "approve", "nasty", code=3).stderr.startswith("vigil: nothing of nasty")

    (vigil.home / "mcp" / "nasty" / "mood").write_text("changed more")
    file.write_text(file.read_text().replace('risk = "read"', 'risk = "write"'))
    eventually(lambda: len(servers(vigil)["nasty"]["held"]) == 2)
    shown = vigil("mcp", "servers").stdout
    assert vigil("mcp", "list").stdout == shown
    assert "nasty__add: changed" in shown
    assert "said  Adds numbers." in shown
    assert "says  Adds numbers. <IMPORTANT>" in shown
    assert "nasty__extra: new" in shown
    assert "vigil mcp approve nasty" in shown

    approved = vigil("mcp", "approve", "nasty", "extra", "--json")
    assert [one["name"] for one in json.loads(approved.stdout)["approved"]] == ["nasty__extra"]
    eventually(lambda: len(servers(vigil)["nasty"]["held"]) == 1)
    assert "id_rsa" in vigil("mcp", "approve", "nasty").stdout
    eventually(lambda: not servers(vigil)["nasty"]["held"])
    by = {tool["name"]: tool["approved_by"] for tool in servers(vigil)["nasty"]["tools"]}
    assert by["nasty__add"] == by["nasty__extra"] == "operator"

    vigil("mcp", "remove", "nasty")
    eventually(lambda: "nasty" not in servers(vigil))
    assert vigil("mcp", "remove", "nasty", code=3)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_server_with_secrets_in_files(tmp_path: Path) -> None:
    """P-2: neither a command line nor vigil.toml holds them; a file that others read is told."""
    cli = Cli(tmp_path / "home")
    variables, headers = tmp_path / "tickets.env", tmp_path / "wiki.headers"
    variables.write_text("TICKETS_TOKEN=s3cret\n")
    headers.write_text("Authorization: Bearer s3cret\n")
    variables.chmod(0o600)
    headers.chmod(0o644)
    done = cli("mcp", "add", "tickets", "--env-file", str(variables), "--", "tickets")
    assert "chmod" not in done.stderr
    done = cli("mcp", "add", "wiki", "--url", "http://wiki.test/mcp", "--allow-private",
               "--headers-file", str(headers))  # fmt: skip
    assert "chmod 600" in done.stderr
    found = tomllib.loads((cli.home / "vigil.toml").read_text())["mcp"]
    assert found["tickets"] == {"command": "tickets", "env_file": str(variables)}
    assert found["wiki"] == {
        "url": "http://wiki.test/mcp", "allow_private": True, "headers_file": str(headers)
    }  # fmt: skip
    assert "s3cret" not in (cli.home / "vigil.toml").read_text()
    missing = cli("mcp", "add", "a", "--env-file", str(tmp_path / "no"), "--", "y", code=2)
    assert "--env-file" in missing.stderr
    assert "go with url" in cli("mcp", "add", "a", "--allow-private", "--", "y", code=1).stderr


def test_what_can_not_be_added(vigil: Cli) -> None:
    """X-6: the file stays as it was."""
    before = (vigil.home / "vigil.toml").read_text()
    assert "either command or url" in vigil("mcp", "add", "a", code=1).stderr
    assert "begin or end" in vigil("mcp", "add", "_a", "--url", "https://a.test", code=1).stderr
    assert "NAME=VALUE" in vigil("mcp", "add", "a", "--env", "x", "--", "y", code=2).stderr
    for url in ("https://ann:s3cret@a.test/mcp", "a.test"):
        for added in (("mcp", "add", "a", "--url", url), ("a2a", "add", "a", url)):
            assert "url" in vigil(*added, code=2).stderr
    assert (vigil.home / "vigil.toml").read_text() == before


# ---------------------------------------------------------------- the file

TEXT = """\
# Mine.
[autonomy]
enabled = true  # yes

[mcp.files]   # documents
command = "node"
args = ["x", "y"]
# a remark in it
[mcp.files.env]
A = "[mcp.other]"

# About the person.
[person]
timezone = "Europe/Berlin"
"""


def test_a_section_is_removed_with_what_is_below_it(tmp_path: Path) -> None:
    """P-2: comments and order of the rest stay, the remark above the next section with it."""
    file = tmp_path / "vigil.toml"
    file.write_text(TEXT)
    toml_sections.remove(file, "mcp", "files")
    assert file.read_text() == (
        "# Mine.\n[autonomy]\nenabled = true  # yes\n\n# About the person.\n[person]\n"
        'timezone = "Europe/Berlin"\n'
    )
    with pytest.raises(NotReady):
        toml_sections.remove(file, "mcp", "files")


def test_a_section_is_appended(tmp_path: Path) -> None:
    file = tmp_path / "vigil.toml"
    file.write_text(TEXT)
    values = {
        "command": 'a "b" \\ é',
        "args": ["1", "2\n"],
        "env": {"A B": "c"},
        "network": True,
        "timeout_s": 1.5,
    }
    toml_sections.add(file, "mcp", "more", values)
    text = file.read_text("utf-8")
    assert text.startswith(TEXT)
    assert tomllib.loads(text)["mcp"]["more"] == values
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with pytest.raises(AlreadyExists):
        toml_sections.add(file, "mcp", "files", PROGRAM)
    toml_sections.remove(file, "mcp", "more")
    assert file.read_text("utf-8").rstrip() == TEXT.rstrip()


def test_lines_end_as_they_did(tmp_path: Path) -> None:
    file = tmp_path / "vigil.toml"
    before = TEXT.replace("\n", "\r\n").encode()
    file.write_bytes(before)
    toml_sections.add(file, "mcp", "more", {"command": "x"})
    assert file.read_bytes() == before + b'\r\n[mcp.more]\r\ncommand = "x"\r\n'
    toml_sections.remove(file, "mcp", "more")
    assert file.read_bytes().rstrip() == before.rstrip()


@pytest.mark.parametrize("text", ["", "mcp = 5\n"])
def test_what_can_not_be_written_is_left_alone(tmp_path: Path, text: str) -> None:
    """As an argument that isn't UTF-8 comes from a shell; and a file that is no configuration."""
    file = tmp_path / "vigil.toml"
    file.write_text(text)
    with pytest.raises(ConfigError):
        toml_sections.add(file, "mcp", "more", {"command": "a\udcff"})
    assert file.read_text() == text


@pytest.mark.parametrize(
    "text",
    [
        '[mcp]\nfiles = { command = "x" }\n',
        'mcp.files.command = "x"\n',
        '[mcp]\n[mcp . "files"]\ncommand = """\n[person]\n"""\n',
    ],
)
def test_what_is_not_understood_is_left_alone(tmp_path: Path, text: str) -> None:
    file = tmp_path / "vigil.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match="by hand"):
        toml_sections.remove(file, "mcp", "files")
    assert file.read_text() == text


def test_a_file_that_is_a_link_stays_one(tmp_path: Path) -> None:
    file, real = tmp_path / "vigil.toml", tmp_path / "dotfiles.toml"
    real.write_text(TEXT)
    file.symlink_to(real)
    toml_sections.add(file, "mcp", "more", {"command": "x"})
    assert file.is_symlink()
    assert "[mcp.more]" in real.read_text()
