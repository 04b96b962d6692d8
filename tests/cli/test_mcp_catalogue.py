"""Servers of a catalogue: found, shown with what they see and reach, and only then added."""

from __future__ import annotations

import http.server
import json
import shlex
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.cli import Cli
from vigil.errors import ConfigError, InvalidInput
from vigil.local import catalogue
from vigil.local.catalogue import Published
from vigil.settings import config

OFFICIAL = "io.modelcontextprotocol.registry/official"
FILES = {
    "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
    "name": "io.github.ann/files", "description": "Reads files.\u001b[2K", "version": "1.2.0",
    "packages": [{
        "registryType": "npm", "identifier": "@ann/files", "version": "1.2.0",
        "transport": {"type": "stdio"},
        "packageArguments": [{"type": "named", "name": "--mode", "value": "ro"}],
        "environmentVariables": [
            {"name": "LANGUAGE", "default": "en"},
            {"name": "API_KEY", "isRequired": True, "isSecret": True, "description": "A key."},
        ],
    }],
}  # fmt: skip
WIKI = {
    "name": "com.example/wiki", "description": "Searches a wiki", "version": "2.0.0",
    "remotes": [{
        "type": "streamable-http", "url": "https://wiki.example.com/mcp",
        "headers": [{"name": "X-Client", "value": "mcp"}, {"name": "X-Team"}],
    }],
}  # fmt: skip
OLD = {"name": "io.github.ann/old", "description": "Reads files", "version": "1"}


@pytest.fixture
def registry() -> Iterator[str]:
    """A registry that answers in two pages, in the published form."""
    first = [{"server": FILES, "_meta": {OFFICIAL: {"status": "active", "isLatest": True}}},
             {"server": OLD, "_meta": {OFFICIAL: {"status": "deleted"}}}]  # fmt: skip

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = urlsplit(self.path)
            query = parse_qs(path.query)
            assert path.path == "/v0/servers"
            page: dict[str, Any] = {"servers": first, "metadata": {"nextCursor": "2", "count": 2}}
            if query.get("cursor") == ["2"]:
                page = {"servers": [{"server": WIKI}], "metadata": {"count": 1}}
            data = json.dumps(page).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Not told."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_server_is_found_shown_and_added(
    registry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli = Cli(tmp_path / "home")
    listed = cli.json("mcp", "search", "files", "--registry", registry)["servers"]
    assert [(one["name"], one["by"]) for one in listed] == [("io.github.ann/files", "npm")]
    assert "\x1b" not in str(listed)
    name = ("--from", "io.github.ann/files", "--registry", registry)
    asked = cli("mcp", "add", "files", *name, code=None)
    assert "needs API_KEY: --env-file" in asked.stderr
    secret = tmp_path / "files.env"
    secret.write_text("API_KEY=x")
    secret.chmod(0o600)
    with_key = (*name, "--env-file", str(secret))
    asked = cli("mcp", "add", "files", *with_key, code=None)
    assert asked.returncode != 0
    for told in (
        "runs npx -y @ann/files@1.2.0 --mode ro", "it reaches the network",
        "nothing else of this machine", "needs the variable API_KEY (a secret): A key.", "--yes",
    ):  # fmt: skip
        assert told in asked.stderr
    assert config.load({}, home=cli.home).config.mcp == {}
    (tmp_path / "@ann").mkdir()
    (tmp_path / "@ann" / "files@1.2.0").touch()  # not what runs, whoever put it there
    monkeypatch.chdir(tmp_path)
    cli("mcp", "add", "files", *with_key, "--yes")
    added = config.load({}, home=cli.home).config.mcp["files"]
    assert Path(added.command).name == "npx"
    assert added.args[-4:] == ("-y", "@ann/files@1.2.0", "--mode", "ro")
    assert (added.network, added.env, added.env_file) == (True, {"LANGUAGE": "en"}, str(secret))

    file = tmp_path / "wiki.json"
    file.write_text(json.dumps(WIKI))
    done = cli("mcp", "add", "wiki", "--from", WIKI["name"], "--registry", str(file), "--yes")  # type: ignore[arg-type]
    assert "wiki.example.com sees the arguments" in done.stderr
    assert "may have the header X-Team" in done.stderr
    added = config.load({}, home=cli.home).config.mcp["wiki"]
    assert (added.url, added.headers) == ("https://wiki.example.com/mcp", {"X-Client": "mcp"})


@pytest.mark.parametrize(
    ("package", "why"),
    [
        ({"registryType": "oci"}, "can't be added by its name: oci"),
        ({"identifier": "--yes"}, "is no name of a package"),
        ({"identifier": "git+https://files.example/x.git"}, "is no name of a package"),
        ({"identifier": "ann/files"}, "is no name of a package"),
        ({"identifier": "../files"}, "is no name of a package"),
        ({"version": "https://files.example/x.tgz"}, "is no version"),
        ({"version": "^1"}, "is no version"),
        ({"version": ""}, "is no version"),
        ({"registryType": "pypi", "identifier": "files @ https://files.example"}, "is no name"),
        ({"registryType": "pypi", "identifier": "files", "version": "1.*"}, "is no version"),
        ({"registryBaseUrl": "https://npm.example"}, "is of the registry 'https://npm.example'"),
        ({"packageArguments": [{"type": "positional", "value": "a\u202eb"}]}, "can't be shown"),
        ({"packageArguments": [{"type": "positional", "value": "a\nis safe"}]}, "can't be shown"),
        ({"environmentVariables": [{"name": "npm_config_registry", "value": "x"}]}, "what runs it"),
        ({"environmentVariables": [{"name": "A=B", "value": "x"}]}, "what runs it"),
        *(
            ({"environmentVariables": [{"name": name, "value": "x"}]}, "what runs it")
            for name in (
                "NODE_OPTIONS",
                "NODE_PATH",
                "PYTHONPATH",
                "PythonStartup",
                "BASH_ENV",
                "GIT_SSH_COMMAND",
                "XDG_CONFIG_HOME",
                "REQUESTS_CA_BUNDLE",
            )
        ),
        ({"environmentVariables": [{"name": "A\nB"}]}, "can't be shown as it is"),
        ({"packageArguments": [{"type": "positional", "value": 4000 * "a"}]}, "shown whole"),
        ({"packageArguments": [{"type": "positional", "isRequired": True}]}, "wants an argument"),
        ({"packageArguments": [{"type": "positional", "value": "{dir}"}]}, "filled in"),
        ({"runtimeArguments": [{"type": "named", "name": "-v"}]}, "for what runs it"),
        ({"transport": {"type": "streamable-http"}}, "can't be added"),
    ],
)
def test_what_cant_be_told_exactly_isnt_added(package: dict[str, Any], why: str) -> None:
    whole = FILES | {"packages": [FILES["packages"][0] | package]}  # type: ignore[index, operator]
    (one,), _ = catalogue.read(json.dumps(whole).encode())
    with pytest.raises(ConfigError, match=why):
        catalogue.offer_of(one, {})


def test_what_is_shown_is_what_runs() -> None:
    """Each argument by itself, also one of blanks or of nothing; a URL without a false front."""
    values = ("a  b", "", "; true", "ä")
    arguments = [{"type": "positional", "value": one} for one in values]
    package = FILES["packages"][0] | {"packageArguments": arguments}  # type: ignore[index, operator]
    (one,), _ = catalogue.read(json.dumps(FILES | {"packages": [package]}).encode())
    offer = catalogue.offer_of(one, {})
    assert shlex.split(offer.lines[0].removeprefix("runs ")) == list(offer.command)
    assert offer.command[-4:] == values
    for url in ("https://good.example@bad.example/mcp", "https://wіki.example/mcp"):
        way = {"type": "streamable-http", "url": url}
        (one,), _ = catalogue.read(json.dumps(WIKI | {"remotes": [way]}).encode())
        with pytest.raises(ConfigError, match="isn't what it seems"):
            catalogue.offer_of(one, {})


def test_what_is_no_catalogue() -> None:
    deep = b'{"servers": [{"server": {"name": "a"}, "_meta": {"a": ' + b"[" * 5000
    for data in (b'{"servers": 1}', b'{"servers": [{"server": {"name": "\xff"}}]}', deep):
        with pytest.raises(InvalidInput):
            catalogue.read(data)
    with pytest.raises(ConfigError, match=r"did you mean com.example/wiki\?"):
        catalogue.named([Published(name="com.example/wiki")], "com.example/wik")
