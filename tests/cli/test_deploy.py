"""The files of deploy/, used as a person would use them: real servers from exactly these files.

What belongs to a machine of its own is given on the command line, over the file: addresses and
ports, since a test shares its machine with others. Only the folder for the data is replaced.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.cli import Cli, eventually
from vigil.broker import conf as nats_conf
from vigil.broker.ports import free_port
from vigil.broker.process import binary
from vigil.errors import InvalidInput
from vigil.settings.sections import Nats
from vigil.topology import SERVICES

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
SIZE = 3


class Server:
    """A nats-server of a file, on ports of its own."""

    def __init__(self, conf: Path, folder: Path, *args: str, **environ: str) -> None:
        self.port, self.monitor = free_port(), free_port()
        self.url = f"nats://127.0.0.1:{self.port}"
        self._folder = folder
        self._command = [
            str(binary()), "-c", str(conf), "-a", "127.0.0.1", "-p", str(self.port),
            "-m", str(self.monitor), *args,
        ]  # fmt: skip
        self._environ = environ
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self._command, stdout=log, stderr=log, cwd=self._folder,
                env=self._environ or None,
            )  # fmt: skip

    def is_healthy(self) -> bool:
        """The healthcheck of docker-compose.yml."""
        with contextlib.suppress(OSError):
            return self.ask("/healthz?js-enabled-only=true") == {"status": "ok"}
        return False

    def ask(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.monitor}{path}", timeout=2) as answer:
            return json.load(answer)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(10)


@contextlib.contextmanager
def running(*servers: Server) -> Iterator[None]:
    try:
        for server in servers:
            server.start()
        eventually(lambda: all(server.is_healthy() for server in servers), timeout_s=30)
        yield
    finally:
        for server in servers:
            server.kill()


def secret_of(conf: Path) -> str:
    found = json.loads(conf.read_text())["cluster"]["authorization"]["password"]
    return str(found)


def test_the_written_files_make_a_cluster(tmp_path: Path) -> None:
    """P-2, X-5: three files by one command; all of Vigil on them, also when a node is gone."""
    cli = Cli(tmp_path / "home", VIGIL_NATS__REPLICAS="3")
    ports = [free_port() for _ in range(SIZE)]
    nodes = [word for port in ports for word in ("--node", f"127.0.0.1:{port}")]
    folder = tmp_path / "conf"
    # On one machine they can't all have their data where a machine of its own has it.
    store = "store"
    cli("provision", "--credentials-only", "--write-nats-conf", str(folder), "--store", store,
        *nodes)  # fmt: skip
    files = sorted(folder.iterdir())
    assert [file.name for file in files] == ["nats-1.conf", "nats-2.conf", "nats-3.conf"]
    # On the command line, `--cluster` takes the place of the file's address and credential.
    user = f"{nats_conf.ROUTE_USER}:{secret_of(files[0])}"
    servers = [
        Server(file, tmp_path / file.stem, "--cluster", f"nats://{user}@127.0.0.1:{port}")
        for file, port in zip(files, ports, strict=True)
    ]
    with running(*servers):
        assert {server.ask("/varz")["cluster"]["name"] for server in servers} == {"vigil"}
        _talk_while_a_node_dies(cli, servers)


def _talk_while_a_node_dies(cli: Cli, servers: list[Server]) -> None:
    up = Cli(cli.home, **_vigil_environ(cli), NATS_URL=",".join(s.url for s in servers))
    try:
        up("up", "--detach")
        assert "hello" in up("send", "hello").stdout
        servers[1].kill()
        eventually(lambda: "again" in up("send", "again", code=None).stdout, timeout_s=40)
        assert all(service["ready"] for service in up.json("status")["services"])
    finally:
        up.end()


def _vigil_environ(cli: Cli) -> dict[str, str]:
    return {k: v for k, v in cli.environ.items() if k.startswith("VIGIL_NATS")}


@pytest.mark.parametrize(
    "nodes",
    [["a", "b"], ["a", "b", "b"], ["a", "b", "c:"], ["a", "b", ":1"], ["a", "b", "c:x"]],
)
def test_nodes_that_make_no_cluster(tmp_path: Path, nodes: list[str]) -> None:
    """X-6: an even number of nodes would be no safer than one less; and nothing is written."""
    with pytest.raises(InvalidInput):
        nats_conf.nodes_of(nodes)
    cli = Cli(tmp_path / "home")
    words = [word for node in nodes for word in ("--node", node)]
    conf = tmp_path / "conf"
    cli("provision", "--credentials-only", "--write-nats-conf", str(conf), *words, code=2)
    cli("provision", "--credentials-only", "--node", "a", code=2)
    assert not conf.exists()


# ---------------------------------------------------------------- deploy/nats*.conf


@pytest.fixture
def conf_folder(tmp_path: Path) -> Path:
    """What a person has on a broker's machine: both files, and what `provision` wrote."""
    folder = tmp_path / "etc"
    folder.mkdir()
    for name in ("nats.conf", "nats-cluster.conf"):
        text = (DEPLOY / name).read_text()
        assert '"/data/jetstream"' in text
        (folder / name).write_text(text.replace('"/data/jetstream"', '"store"'))
    Cli(tmp_path / "home")(
        "provision", "--credentials-only", "--write-nats-accounts", str(folder / "accounts.conf")
    )
    return folder


def test_the_file_for_one_node_works(conf_folder: Path, tmp_path: Path) -> None:
    """P-2: with accounts.conf beside it, and nothing else."""
    server = Server(conf_folder / "nats.conf", tmp_path / "nats")
    with running(server):
        made = Cli(tmp_path / "home", NATS_URL=server.url)("provision", "--token-user", "me")
        assert "token" in made.stdout
        assert server.ask("/varz")["jetstream"]["config"]["sync_always"] is True


def test_the_file_for_three_nodes_works(conf_folder: Path, tmp_path: Path) -> None:
    """P-2: the same file on each; name, secret and routes from outside."""
    ports = [free_port() for _ in range(SIZE)]
    secret = "s" * 64
    routes = {
        f"VIGIL_ROUTE_{number}": f"nats-route://route:{secret}@127.0.0.1:{port}"
        for number, port in enumerate(ports, start=1)
    }
    servers = [
        Server(
            conf_folder / "nats-cluster.conf", tmp_path / f"nats-{number}",
            "--name", f"nats-{number}", "--cluster", f"nats://route:{secret}@127.0.0.1:{port}",
            VIGIL_CLUSTER_SECRET=secret, **routes,
        )
        for number, port in enumerate(ports, start=1)
    ]  # fmt: skip
    with running(*servers):
        url = ",".join(server.url for server in servers)
        cli = Cli(tmp_path / "home", NATS_URL=url, VIGIL_NATS__REPLICAS="3")
        cli("provision", "--token-user", "me")
        streams = servers[0].ask("/jsz?streams=true&config=true&accounts=true")
        details = [s for account in streams["account_details"] for s in account["stream_detail"]]
        assert details
        assert {stream["config"]["num_replicas"] for stream in details} == {SIZE}


def leaves(value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield every setting by its last name."""
    for name, one in value.items():
        if isinstance(one, dict):
            yield from leaves(one)
        elif not isinstance(one, list):
            yield name, one


@pytest.mark.parametrize(
    ("name", "own"), [("nats.conf", set()), ("nats-cluster.conf", {"server_name", "password"})]
)
def test_the_files_say_what_provision_writes(name: str, own: set[str]) -> None:
    """RELIABILITY 0.7: neither of the two can lack a setting that the other has."""
    users = nats_conf.Users(publics=dict.fromkeys((*SERVICES, "admin", "operator"), "U"))
    store = Path("/data/jetstream")
    if name == "nats.conf":
        text = nats_conf.single(Nats(), users, store=store)
    else:
        nodes = nats_conf.nodes_of(["a", "b", "c"])
        text = nats_conf.clustered(Nats(), users, store=store, nodes=nodes, secret="s")["nats-1"]
    written = msgspec.json.decode(text)
    del written["accounts"]
    shown = re.sub(r"^\s*#.*$", "", (DEPLOY / name).read_text(), flags=re.MULTILINE)
    found = dict(re.findall(r"^\s*(\w+): \"?(.*?)\"?$", shown, re.MULTILINE))
    assert {n: v for n, v in found.items() if n not in {*own, "routes"}} == {
        n: str(v) for n, v in leaves(written) if n not in own
    }
    assert 'include "accounts.conf"' in shown


# ---------------------------------------------------------------- systemd


UNITS = {"vigil.service": "vigil.service", "vigil-serve@.service": "vigil-serve@cortex.service"}


def unit(name: str) -> dict[str, list[str]]:
    """Return the settings of a unit, each with its values."""
    found: dict[str, list[str]] = {}
    for line in (DEPLOY / "systemd" / name).read_text().splitlines():
        if "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


@pytest.mark.parametrize("name", UNITS)
def test_units_start_what_exists(name: str, tmp_path: Path) -> None:
    """P-2: the command takes those words, and is given the time that a clean stop takes."""
    settings = unit(name)
    _, *words = settings["ExecStart"][0].replace("%i", "cortex").split()
    assert Cli(tmp_path)(*words, "--help").returncode == 0
    assert int(settings["TimeoutStopSec"][0]) > 35  # vigil down: 30 s, and 5 more until SIGKILL
    assert settings["UMask"] == ["0077"]
    assert settings["NoNewPrivileges"] == ["yes"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("name", UNITS)
def test_systemd_accepts_the_units(name: str, tmp_path: Path) -> None:
    """P-2: verified by systemd itself, with the path of a command that exists."""
    text = (DEPLOY / "systemd" / name).read_text()
    command = "%h/vigil/.venv/bin/vigil"
    assert command in text
    here = str(Path(sys.executable).parent / "vigil")
    (tmp_path / name).write_text(text.replace(command, here))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", "--man=no", str(tmp_path / UNITS[name])],
        capture_output=True, text=True, timeout=60, check=False,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert name.partition("@")[0] not in done.stderr, done.stderr
